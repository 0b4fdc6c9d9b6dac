//! The verbs half of a function: objects, and what they do with the guest's memory. It knows no PCI, no commands and no event
//! queues; what it wants from the rest of the card it leaves as an [`Effect`].

pub mod buffer;
pub mod completion;
pub mod completion_queue;
pub mod datagram;
pub mod memory;
pub mod message;
pub mod mkey;
pub mod queue_pair;
mod receive;
mod requester;
mod responder;
pub mod shared_receive;
pub mod wqe;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use crate::bits::low24;
use crate::oracle::{Entry, Oracle};
use completion::Completion;
use completion_queue::{ArmOutcome, Armed, CompletionQueue, Notify};
use memory::{Memory, OutsideMemory};
use message::Message;
use mkey::{Access, MemoryKey, RESERVED_LKEY};
use queue_pair::{QueuePair, Receives, State};
use shared_receive::SharedReceives;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// How often queue pairs in the error state are looked at for receives posted since: their doorbell is memory only.
pub const ERROR_POLL: Duration = Duration::from_micros(500);

/// What the engine wants from the rest of the card.
#[derive(Debug)]
pub enum Effect {
    /// A message is to be carried.
    Send(Message),
    /// A completion queue asks for an event.
    Completed {
        /// Its event queue.
        eqn: u32,
        /// The completion queue.
        cqn: u32,
        /// The CQE that asked.
        cqe: u64,
    },
    /// Something happened that the driver is told of.
    Asynchronous(Asynchronous),
    /// Call [`Engine::timer`] after a while.
    Timer(Duration, Timer),
}

/// An asynchronous event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asynchronous {
    /// A completion queue was full.
    CqOverrun(u32),
    /// A peer's request was not one that the queue pair serves.
    InvalidRequest(u32),
    /// A peer's request was not allowed.
    Access(u32),
    /// A shared receive queue has fewer receives than its limit.
    SharedReceiveLimit(u32),
}

/// Something that is due later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// A queue pair may have waited too long for an answer.
    Answer(u32),
    /// A queue pair has waited after "receiver not ready".
    ReceiverNotReady(u32),
    /// The moderation's period of a completion queue is over.
    Moderation(u32, u64),
    /// Queue pairs in the error state are looked at.
    Errored,
}

/// Counters of the port that move when things go wrong (`QUERY_Q_COUNTER`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// WRITEs that came in.
    pub write_requests: u32,
    /// READs that came in.
    pub read_requests: u32,
    /// Atomics that came in.
    pub atomic_requests: u32,
    /// Messages for which no receive was posted.
    pub out_of_buffer: u32,
    /// Messages that came in before one that is missing.
    pub out_of_sequence: u32,
    /// Messages that came in twice.
    pub duplicate_request: u32,
    /// "Receiver not ready" that came back.
    pub rnr_nak_retry: u32,
    /// "Out of sequence" that came back.
    pub packet_sequence_error: u32,
    /// READs and atomics whose answer was lost, seen by a later answer.
    pub implied_nak: u32,
    /// Time-outs.
    pub ack_timeout: u32,
}

/// The objects of one function.
#[derive(Debug)]
pub struct Engine {
    /// Which card of the process.
    pub function: usize,
    /// The guest's memory.
    pub memory: Memory,
    /// Completion queues by number.
    pub cqs: BTreeMap<u32, CompletionQueue>,
    /// Queue pairs by number.
    pub qps: HashMap<u32, QueuePair>,
    /// Shared receive queues by number.
    pub srqs: BTreeMap<u32, SharedReceives>,
    /// Memory keys by index (the key's upper 24 bits).
    pub mkeys: HashMap<u32, MemoryKey>,
    /// GIDs that the driver has set (RoCE), by index.
    pub gids: BTreeMap<u32, datagram::Gid>,
    /// Whether the port is Ethernet.
    pub is_roce: bool,
    /// Whether the port is up; a port that is down loses everything.
    pub is_up: bool,
    /// Counters.
    pub counters: Counters,
    /// What it wants done; the card takes it after every call.
    pub effects: Vec<Effect>,
    errored: BTreeSet<u32>,
    /// Queue pairs whose CQE was lost because its queue was full.
    doomed: Vec<u32>,
    oracle: Arc<Oracle>,
}

impl Engine {
    /// An engine without objects.
    pub fn new(function: usize, is_roce: bool, oracle: Arc<Oracle>) -> Self {
        Self {
            function,
            memory: Memory::default(),
            cqs: BTreeMap::new(),
            qps: HashMap::new(),
            srqs: BTreeMap::new(),
            mkeys: HashMap::new(),
            gids: BTreeMap::new(),
            is_roce,
            is_up: true,
            counters: Counters::default(),
            effects: Vec::new(),
            errored: BTreeSet::new(),
            doomed: Vec::new(),
            oracle,
        }
    }

    /// Forgets every object, as after a reset of the function.
    pub fn reset(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        *self = Self { memory, ..Self::new(self.function, self.is_roce, Arc::clone(&self.oracle)) };
    }

    fn note(&self, entry: &Entry) {
        self.oracle.note(self.function, entry);
    }

    fn trouble(&self, what: impl Into<String>) {
        self.oracle.trouble(self.function, what);
    }

    fn wire(&self, qp: u32, sequence: u32, what: &'static str) {
        self.note(&Entry::Wire { qp, sequence, what });
    }

    /// The driver rings a queue pair's send doorbell.
    pub fn ring(&mut self, qpn: u32) {
        match self.qps.remove(&qpn) {
            Some(mut qp) => {
                self.serve_send_queue(&mut qp);
                self.qps.insert(qpn, qp);
                self.fail_doomed();
            }
            None => self.trouble(format!("doorbell of queue pair {qpn:#x}, which is not there")),
        }
    }

    /// A message has arrived.
    pub fn arrive(&mut self, message: Message) {
        let to = message.to.qpn;
        if !self.is_up {
            return;
        }
        // Messages for a queue pair that is gone are lost, as on a wire.
        let Some(mut qp) = self.qps.remove(&to) else { return };
        match message.body {
            message::Body::Request(request) => self.respond(&mut qp, message.from, request),
            message::Body::Done { sequence, data } => self.answered(&mut qp, sequence, &data),
            message::Body::Refused { sequence, reason } => self.refused(&mut qp, sequence, reason),
        }
        self.qps.insert(to, qp);
        self.fail_doomed();
    }

    /// Something is due.
    pub fn timer(&mut self, timer: Timer) {
        match timer {
            Timer::Answer(qpn) | Timer::ReceiverNotReady(qpn) => {
                let Some(mut qp) = self.qps.remove(&qpn) else { return };
                if matches!(timer, Timer::Answer(_)) {
                    self.check_answers(&mut qp)
                } else {
                    self.wait_is_over(&mut qp)
                }
                self.qps.insert(qpn, qp);
            }
            Timer::Moderation(cqn, generation) => {
                let due = self.cqs.get_mut(&cqn).and_then(|cq| cq.period_over(generation).map(|cqe| (cq.eqn, cqe)));
                if let Some((eqn, cqe)) = due {
                    self.effects.push(Effect::Completed { eqn, cqn, cqe });
                }
            }
            Timer::Errored => {
                for qpn in self.errored.clone() {
                    if let Some(mut qp) = self.qps.remove(&qpn) {
                        self.flush(&mut qp);
                        self.qps.insert(qpn, qp);
                    }
                }
                if !self.errored.is_empty() {
                    self.effects.push(Effect::Timer(ERROR_POLL, Timer::Errored));
                }
            }
        }
    }

    /// The driver arms a completion queue.
    pub fn arm(&mut self, cqn: u32, sequence: u8, consumer: u32, solicited: bool) {
        let Some(cq) = self.cqs.get_mut(&cqn) else {
            return self.trouble(format!("arm of completion queue {cqn:#x}, which is not there"));
        };
        let outcome = cq.arm(sequence, consumer, if solicited { Armed::Solicited } else { Armed::Any });
        if let ArmOutcome::Fired(cqe) = outcome {
            self.effects.push(Effect::Completed { eqn: cq.eqn, cqn, cqe });
        }
        self.note(&Entry::Arm { cq: cqn, sequence, consumer, solicited, outcome: outcome.word() });
    }

    /// Puts a queue pair into the error state and flushes it.
    pub fn fail(&mut self, qpn: u32, why: &str) {
        if let Some(mut qp) = self.qps.remove(&qpn) {
            self.fail_taken(&mut qp, why);
            self.qps.insert(qpn, qp);
        }
    }

    /// A queue pair is destroyed or reset: nothing is due for it any more.
    pub fn forget_error(&mut self, qpn: u32) {
        self.errored.remove(&qpn);
    }

    /// A completion queue that was full takes the queue pairs down that lost a CQE to it.
    fn fail_doomed(&mut self) {
        for qpn in std::mem::take(&mut self.doomed) {
            if self.qps.get(&qpn).is_some_and(|qp| qp.state != State::Error) {
                self.fail(qpn, "its completion queue was full");
            }
        }
    }

    fn fail_taken(&mut self, qp: &mut QueuePair, why: &str) {
        if qp.state != State::Error {
            self.note(&Entry::QpError { qp: qp.qpn, why: why.to_owned() });
        }
        qp.state = State::Error;
        self.flush(qp);
        if matches!(qp.receives, Receives::Own { .. }) && self.errored.insert(qp.qpn) && self.errored.len() == 1 {
            self.effects.push(Effect::Timer(ERROR_POLL, Timer::Errored));
        }
    }

    /// Flushes everything that is posted, requests first.
    fn flush(&mut self, qp: &mut QueuePair) {
        self.flush_requests(qp);
        self.flush_receives(qp);
    }

    /// Writes a CQE and asks for its event where the queue is armed.
    fn complete(&mut self, cqn: u32, completion: &Completion) {
        let Some(cq) = self.cqs.get_mut(&cqn) else {
            return self.trouble(format!("a completion for queue {cqn:#x}, which is not there"));
        };
        if cq.is_overrun {
            return self.doomed.push(completion.qpn);
        }
        let consumer = self.memory.word(cq.doorbell).map_or(0, low24);
        if cq.is_full(consumer) {
            cq.is_overrun = true;
            self.doomed.push(completion.qpn);
            self.effects.push(Effect::Asynchronous(Asynchronous::CqOverrun(cqn)));
            return self.note(&Entry::Overrun { cq: cqn, qp: completion.qpn });
        }
        let (address, owner) = cq.next_slot();
        let ticks = self.oracle.ticks();
        let written = address.map(|address| self.memory.publish(address, &completion.encode(ticks, owner)));
        let index = cq.produced();
        let notify = cq.written(completion.solicited || completion.syndrome.is_some());
        let eqn = cq.eqn;
        self.oracle.note_at(
            ticks,
            self.function,
            &Entry::Cqe {
                cq: cqn,
                index,
                qp: completion.qpn,
                opcode: completion.kind as u8,
                wqe: completion.wqe,
                syndrome: completion.syndrome.map_or(0, |syndrome| syndrome as u8),
            },
        );
        if !matches!(written, Some(Ok(()))) {
            self.trouble(format!("the ring of completion queue {cqn:#x} is outside of the guest's memory"));
        }
        match notify {
            Notify::No => {}
            Notify::Now => self.effects.push(Effect::Completed { eqn, cqn, cqe: index }),
            Notify::Later(after, generation) => self.effects.push(Effect::Timer(after, Timer::Moderation(cqn, generation))),
        }
    }

    /// The guest's memory behind a key.
    fn pieces(&self, key: u32, pd: u32, address: u64, length: usize, access: Access) -> Option<Vec<(u64, usize)>> {
        if length == 0 {
            return Some(Vec::new());
        }
        let is_local = matches!(access, Access::LocalRead | Access::LocalWrite);
        if key == RESERVED_LKEY && is_local {
            return Some(vec![(address, length)]);
        }
        self.mkeys.get(&(key >> 8))?.pieces(key, pd, address, length, access)
    }

    /// Appends what lies behind a key to `data`.
    fn gather(&self, key: u32, pd: u32, address: u64, length: usize, access: Access, data: &mut Vec<u8>) -> Option<()> {
        for (address, length) in self.pieces(key, pd, address, length, access)? {
            let start = data.len();
            data.resize(start + length, 0);
            self.said(self.memory.read(address, &mut data[start..]))?;
        }
        Some(())
    }

    /// Writes `data` to where a key's address lies.
    fn scatter(&self, key: u32, pd: u32, address: u64, access: Access, data: &[u8]) -> Option<()> {
        let mut rest = data;
        for (address, length) in self.pieces(key, pd, address, data.len(), access)? {
            let (piece, after) = rest.split_at(length);
            self.said(self.memory.write(address, piece))?;
            rest = after;
        }
        Some(())
    }

    /// The value; where there is none, the reason goes to the log.
    fn said<T>(&self, result: Result<T, OutsideMemory>) -> Option<T> {
        result.inspect_err(|error| self.trouble(error.to_string())).ok()
    }
}
