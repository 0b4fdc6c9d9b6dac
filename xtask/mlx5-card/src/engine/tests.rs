//! Operations between two engines.

use super::message::{Body, Message, Transport};
use super::queue_pair::State;
use super::testing::{CQN, DATA, KEY, Pair, QPN, remote};
use super::{Asynchronous, Effect, Timer};
use crate::bits::{be32, put};

const SEND: u32 = 0x0a;
const SEND_IMMEDIATE: u32 = 0x0b;
const WRITE: u32 = 0x08;
const WRITE_IMMEDIATE: u32 = 0x09;
const READ: u32 = 0x10;
const COMPARE_SWAP: u32 = 0x11;
const FETCH_ADD: u32 = 0x12;

fn none(_: &Message) -> bool {
    false
}

fn put_data(pair: &Pair, side: usize, at: u64, bytes: &[u8]) {
    pair.engines[side].memory.write(DATA + at, bytes).unwrap();
}

fn data(pair: &Pair, side: usize, at: u64) -> Vec<u8> {
    pair.engines[side].memory.bytes(DATA + at, 8).unwrap()
}

fn opcode(cqe: &[u8]) -> u8 {
    cqe[63] >> 4
}

#[test]
fn a_send_fills_a_receive_and_completes_on_both_sides() {
    let mut pair = Pair::new(Transport::Reliable);
    put_data(&pair, 0, 0, b"12345678");
    pair.post_receive(1, 0, 64);
    pair.post(0, 0, SEND_IMMEDIATE, &[]);
    pair.carry(none);
    assert_eq!(data(&pair, 1, 0x800), b"12345678");
    let (sent, received) = (pair.cqe(0, 0), pair.cqe(1, 0));
    assert_eq!((opcode(&sent), opcode(&received)), (0, 3));
    assert_eq!(be32(&received, 36), 0xabcd);
    assert_eq!(be32(&received, 44), 8);
    assert_eq!(be32(&received, 24), QPN);
    assert_eq!(be32(&sent, 56), SEND_IMMEDIATE << 24 | QPN);
}

#[test]
fn a_write_with_immediate_takes_a_receive_and_a_write_does_not() {
    let mut pair = Pair::new(Transport::Reliable);
    put_data(&pair, 0, 0, b"abcdefgh");
    pair.post(0, 0, WRITE, &remote(0xa100, KEY));
    pair.carry(none);
    assert_eq!((data(&pair, 1, 0x100), pair.cqes(1)), (b"abcdefgh".to_vec(), 0));
    pair.post_receive(1, 0, 8);
    pair.post(0, 1, WRITE_IMMEDIATE, &remote(0xa108, KEY));
    pair.carry(none);
    assert_eq!(data(&pair, 1, 0x108), b"abcdefgh");
    assert_eq!((opcode(&pair.cqe(1, 0)), pair.cqes(0)), (1, 2));
}

#[test]
fn a_read_and_atomics_bring_what_was_there() {
    let mut pair = Pair::new(Transport::Reliable);
    put_data(&pair, 1, 0x200, &40_u64.to_le_bytes());
    pair.post(0, 0, READ, &remote(0xa200, KEY));
    pair.carry(none);
    assert_eq!(data(&pair, 0, 0), 40_u64.to_le_bytes());
    let operands = |first: u64, second: u64| {
        let mut bytes = remote(0xa200, KEY);
        bytes.extend(first.to_be_bytes());
        bytes.extend(second.to_be_bytes());
        bytes
    };
    pair.post(0, 1, FETCH_ADD, &operands(2, 0));
    pair.carry(none);
    assert_eq!(data(&pair, 0, 0), 40_u64.to_le_bytes());
    assert_eq!(data(&pair, 1, 0x200), 42_u64.to_le_bytes());
    pair.post(0, 2, COMPARE_SWAP, &operands(7, 41));
    pair.carry(none);
    assert_eq!(data(&pair, 1, 0x200), 42_u64.to_le_bytes());
    pair.post(0, 3, COMPARE_SWAP, &operands(7, 42));
    pair.carry(none);
    assert_eq!(data(&pair, 1, 0x200), 7_u64.to_le_bytes());
    assert_eq!((data(&pair, 0, 0), pair.cqes(0)), (42_u64.to_le_bytes().to_vec(), 4));
}

#[test]
fn an_access_that_is_not_allowed_ends_both_queue_pairs() {
    let mut pair = Pair::new(Transport::Reliable);
    pair.post(0, 0, WRITE, &remote(0xaffc, KEY));
    pair.carry(none);
    let failed = pair.cqe(0, 0);
    assert_eq!((opcode(&failed), failed[55]), (13, 0x13));
    assert!(pair.engines.iter().all(|engine| engine.qps[&QPN].state == State::Error));
    let told = pair.wanted.iter().any(|(side, effect)| *side == 1 && matches!(effect, Effect::Asynchronous(Asynchronous::Access(QPN))));
    assert!(told);
}

#[test]
fn a_queue_pair_that_is_its_own_peer_is_told_what_was_wrong() {
    let mut pair = Pair::new(Transport::Reliable);
    let own = pair.engines[0].qps.get_mut(&QPN).unwrap();
    own.attributes.remote_function = Some(0);
    pair.post(0, 0, WRITE, &remote(0xaffc, KEY));
    pair.carry(none);
    let failed = pair.cqe(0, 0);
    assert_eq!((opcode(&failed), failed[55], pair.cqes(0)), (13, 0x13, 1));
}

#[test]
fn after_an_error_everything_posted_is_flushed() {
    let mut pair = Pair::new(Transport::Reliable);
    pair.post_receive(0, 0, 8);
    pair.post_receive(0, 1, 8);
    pair.post(0, 0, 0x25, &[]);
    pair.carry(none);
    let syndromes: Vec<(u8, u8)> = (0..3).map(|index| pair.cqe(0, index)).map(|cqe| (opcode(&cqe), cqe[55])).collect();
    assert_eq!(syndromes, [(13, 0x02), (14, 0x05), (14, 0x05)]);
    pair.post(0, 1, SEND, &[]);
    assert_eq!((opcode(&pair.cqe(0, 3)), pair.cqe(0, 3)[55]), (13, 0x05));
    pair.post_receive(0, 2, 8);
    pair.engines[0].timer(Timer::Errored);
    assert_eq!(pair.cqes(0), 5);
}

#[test]
fn a_sender_waits_for_a_receive_and_gives_up_after_its_retries() {
    let mut pair = Pair::new(Transport::Reliable);
    pair.post(0, 0, SEND, &[]);
    pair.carry(none);
    assert_eq!(pair.cqes(0), 0);
    pair.post_receive(1, 0, 8);
    pair.engines[0].timer(Timer::ReceiverNotReady(QPN));
    pair.carry(none);
    assert_eq!((opcode(&pair.cqe(0, 0)), pair.engines[0].counters.rnr_nak_retry), (0, 1));
    pair.post(0, 1, SEND, &[]);
    pair.carry(none);
    pair.engines[0].timer(Timer::ReceiverNotReady(QPN));
    pair.carry(none);
    assert_eq!(pair.cqe(0, 1)[55], 0x16);
}

#[test]
fn a_message_that_does_not_fit_fails_on_both_sides() {
    let mut pair = Pair::new(Transport::Reliable);
    pair.post_receive(1, 0, 4);
    pair.post(0, 0, SEND, &[]);
    pair.carry(none);
    assert_eq!(pair.cqe(1, 0)[55], 0x01);
    assert_eq!(pair.cqe(0, 0)[55], 0x12);
}

#[test]
fn a_lost_request_is_sent_again_and_the_one_after_it_is_out_of_sequence() {
    let mut pair = Pair::new(Transport::Reliable);
    pair.post(0, 0, WRITE, &remote(0xa100, KEY));
    let mut is_first = true;
    pair.carry(|_| std::mem::take(&mut is_first));
    pair.post(0, 1, WRITE, &remote(0xa100, KEY));
    pair.carry(none);
    assert_eq!(pair.cqes(0), 2);
    assert_eq!((pair.engines[1].counters.out_of_sequence, pair.engines[0].counters.packet_sequence_error), (1, 1));
}

#[test]
fn a_lost_answer_of_an_atomic_does_not_do_it_twice() {
    let mut pair = Pair::new(Transport::Reliable);
    let mut operands = remote(0xa200, KEY);
    operands.extend([0, 0, 0, 0, 0, 0, 0, 1]);
    operands.extend([0; 8]);
    pair.post(0, 0, FETCH_ADD, &operands);
    pair.carry(|message| matches!(message.body, Body::Done { .. }));
    assert_eq!(pair.cqes(0), 0);
    std::thread::sleep(std::time::Duration::from_millis(3));
    pair.engines[0].timer(Timer::Answer(QPN));
    pair.carry(none);
    assert_eq!(pair.cqes(0), 1);
    assert_eq!(data(&pair, 1, 0x200), 1_u64.to_le_bytes());
    assert_eq!((pair.engines[0].counters.ack_timeout, pair.engines[1].counters.duplicate_request), (1, 1));
}

#[test]
fn without_any_answer_the_retries_end() {
    let mut pair = Pair::new(Transport::Reliable);
    pair.post(0, 0, WRITE, &remote(0xa100, KEY));
    for _ in 0..3 {
        pair.carry(|_| true);
        std::thread::sleep(std::time::Duration::from_millis(3));
        pair.engines[0].timer(Timer::Answer(QPN));
    }
    assert_eq!(pair.cqe(0, 0)[55], 0x15);
}

#[test]
fn an_unreliable_send_without_a_receive_is_lost() {
    let mut pair = Pair::new(Transport::Unreliable);
    pair.post(0, 0, SEND, &[]);
    pair.carry(none);
    assert_eq!((opcode(&pair.cqe(0, 0)), pair.cqes(1)), (0, 0));
    assert_eq!(pair.engines[1].counters.out_of_buffer, 1);
}

#[test]
fn a_datagram_needs_the_queue_key_and_has_40_bytes_before_it() {
    let mut pair = Pair::new(Transport::Datagram);
    put_data(&pair, 0, 0, b"datagram");
    let vector = |q_key: u32| {
        let mut bytes = vec![0; 16];
        put(&mut bytes, 0, &q_key.to_be_bytes());
        put(&mut bytes, 8, &QPN.to_be_bytes());
        put(&mut bytes, 14, &2_u16.to_be_bytes());
        bytes
    };
    pair.post_receive(1, 0, 64);
    pair.post(0, 0, SEND, &vector(6));
    pair.carry(none);
    assert_eq!(pair.cqes(1), 0);
    pair.post(0, 1, SEND, &vector(5));
    pair.carry(none);
    assert_eq!(data(&pair, 1, 0x800 + 40), b"datagram");
    assert_eq!(be32(&pair.cqe(1, 0), 44), 48);
}

#[test]
fn a_full_completion_queue_loses_its_cqe_and_says_so() {
    let mut pair = Pair::new(Transport::Reliable);
    for index in 0..17 {
        pair.post(0, index, WRITE, &remote(0xa100, KEY));
        pair.carry(none);
    }
    assert_eq!(pair.cqes(0), 16);
    let told = pair.wanted.iter().any(|(_, effect)| matches!(effect, Effect::Asynchronous(Asynchronous::CqOverrun(CQN))));
    assert!(told);
    assert_eq!(pair.engines[0].qps[&QPN].state, State::Error);
}
