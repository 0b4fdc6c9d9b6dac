//! Two engines over memory of their own, joined by hand.

use super::buffer::QueueBuffer;
use super::completion_queue::CompletionQueue;
use super::memory::Memory;
use super::message::{Message, Transport};
use super::mkey::{MemoryKey, Rights, Translation};
use super::queue_pair::{Attributes, QueuePair, Receives, Requester, Responder, SendQueue, State};
use super::{Effect, Engine};
use crate::bits::{put, put32};
use crate::oracle::Oracle;
use std::sync::Arc;

/// Where things lie in a side's memory.
pub const RECORDS: u64 = 0x1000;
const CQ_RECORD: u64 = RECORDS + 0x100;
const RING: u64 = 0x2000;
pub const CQ_RING: u64 = 0x3000;
pub const DATA: u64 = 0x4000;
pub const QPN: u32 = 0x50;
pub const CQN: u32 = 0x41;
pub const KEY: u32 = 0x6007;

/// Function 0 and function 1, a queue pair each, connected.
pub struct Pair {
    pub engines: [Engine; 2],
    /// Messages that were not carried.
    pub held: Vec<Message>,
    /// Everything else that the engines wanted.
    pub wanted: Vec<(usize, Effect)>,
}

fn engine(function: usize, transport: Transport) -> Engine {
    let oracle = Arc::new(Oracle::new(None).unwrap());
    let mut engine = Engine::new(function, false, oracle);
    engine.memory = Memory::anonymous(0, 0x8000);
    let page = |address: u64| address.to_be_bytes();
    engine.cqs.insert(CQN, CompletionQueue::new(QueueBuffer::new(&page(CQ_RING), 0, 0, 64 << 4), 4, false, 3, CQ_RECORD));
    let rights = Rights { local_read: true, local_write: true, remote_read: true, remote_write: true, atomic: true };
    let translation = Translation::Pages { shift: 12, pages: vec![DATA] };
    engine.mkeys.insert(KEY >> 8, MemoryKey { low_byte: KEY as u8, pd: 1, start: 0xa000, length: Some(0x1000), rights, translation });
    let attributes = Attributes {
        remote_qpn: QPN,
        remote_function: Some(1 - function),
        remote_read: true,
        remote_write: true,
        remote_atomic: true,
        min_rnr_timer: 1,
        retry_count: 2,
        rnr_retry: 1,
        ack_timeout: 8,
        first_send: 0xff_fffe,
        first_receive: 0xff_fffe,
        q_key: 5,
    };
    engine.qps.insert(
        QPN,
        QueuePair {
            qpn: QPN,
            transport,
            state: State::Init,
            pd: 1,
            user_index: 9,
            buffer: QueueBuffer::new(&page(RING), 0, 0, 4096),
            doorbell: RECORDS,
            send: Some(SendQueue { offset: 16 << 3, log_size: 3, cqn: CQN, head: 0 }),
            receives: Receives::Own { log_size: 3, stride: 16, head: 0 },
            receive_cqn: CQN,
            context: Vec::new(),
            attributes,
            requester: Requester::default(),
            responder: Responder::default(),
        },
    );
    engine.transit(QPN, State::ReadyToReceive);
    engine.transit(QPN, State::ReadyToSend);
    engine
}

impl Pair {
    pub fn new(transport: Transport) -> Self {
        Self { engines: [engine(0, transport), engine(1, transport)], held: Vec::new(), wanted: Vec::new() }
    }

    /// Posts a receive of `length` bytes as number `index`.
    pub fn post_receive(&mut self, side: usize, index: u16, length: u32) {
        let mut element = [0; 16];
        put32(&mut element, 0, length);
        put32(&mut element, 4, KEY);
        put(&mut element, 8, &0xa800_u64.to_be_bytes());
        let memory = &self.engines[side].memory;
        memory.write(RING + u64::from(index % 8) * 16, &element).unwrap();
        memory.write(RECORDS, &u32::from(index + 1).to_be_bytes()).unwrap();
    }

    /// Posts a request of 8 bytes at the start of the data as number `index`, and rings; `remote` is the part between.
    pub fn post(&mut self, side: usize, index: u16, opcode: u32, remote: &[u8]) {
        let mut element = vec![0; 16];
        put32(&mut element, 0, u32::from(index) << 8 | opcode);
        put32(&mut element, 4, QPN << 8 | (2 + remote.len() as u32 / 16));
        element[11] = 8;
        put32(&mut element, 12, 0xabcd);
        element.extend_from_slice(remote);
        let at = element.len();
        element.resize(64, 0);
        put32(&mut element, at, 8);
        put32(&mut element, at + 4, KEY);
        put(&mut element, at + 8, &0xa000_u64.to_be_bytes());
        let engine = &mut self.engines[side];
        engine.memory.write(RING + (16 << 3) + u64::from(index % 8) * 64, &element).unwrap();
        engine.memory.write(RECORDS + 4, &u32::from(index + 1).to_be_bytes()).unwrap();
        engine.ring(QPN);
    }

    /// Carries messages until there are none; those for which `lose` is true are held.
    pub fn carry(&mut self, mut lose: impl FnMut(&Message) -> bool) {
        loop {
            let mut messages = Vec::new();
            for side in 0..2 {
                for effect in std::mem::take(&mut self.engines[side].effects) {
                    match effect {
                        Effect::Send(message) => messages.push(message),
                        other => self.wanted.push((side, other)),
                    }
                }
            }
            if messages.is_empty() {
                return;
            }
            for message in messages {
                if lose(&message) { self.held.push(message) } else { self.engines[message.to.function].arrive(message) }
            }
        }
    }

    /// CQE number `index` of a side: opcode, syndrome, 32-bit word at `at`.
    pub fn cqe(&self, side: usize, index: u64) -> Vec<u8> {
        self.engines[side].memory.bytes(CQ_RING + index * 64, 64).unwrap()
    }

    /// CQEs that a side has.
    pub fn cqes(&self, side: usize) -> u64 {
        self.engines[side].cqs[&CQN].produced()
    }
}

/// The segment of a remote address.
pub fn remote(address: u64, rkey: u32) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    put(&mut bytes, 0, &address.to_be_bytes());
    put32(&mut bytes, 8, rkey);
    bytes
}
