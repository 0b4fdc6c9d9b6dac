//! Completion queues: the entries, their ring with its owner bits, and the rules of arming.

use super::buffer::QueueBuffer;
use crate::bits::{low24, put, put32};
use std::time::Duration;

/// Why a work request failed, as a CQE says it (`MLX5_CQE_SYNDROME_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Syndrome {
    /// A message does not fit into the receive's buffers.
    LocalLength = 0x01,
    /// The operation is not one of this queue pair.
    LocalQpOperation = 0x02,
    /// A local key does not allow it.
    LocalProtection = 0x04,
    /// The queue pair was in the error state.
    Flushed = 0x05,
    /// The peer refused the request.
    RemoteInvalidRequest = 0x12,
    /// The peer's key does not allow it.
    RemoteAccess = 0x13,
    /// The peer could not do it.
    RemoteOperation = 0x14,
    /// No answer, retries used up.
    RetryExceeded = 0x15,
    /// The peer had no receive posted, retries used up.
    RnrRetryExceeded = 0x16,
}

/// What a CQE is of (the opcode in its last byte).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A request of the send queue.
    Requester = 0,
    /// A WRITE with immediate that came in.
    WriteImmediate = 1,
    /// A SEND that came in.
    Send = 2,
    /// A SEND with immediate that came in.
    SendImmediate = 3,
    /// A request that failed.
    RequesterError = 13,
    /// A receive that failed.
    ResponderError = 14,
}

/// A completion, before it has a place in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// What it is of.
    pub kind: Kind,
    /// The queue pair.
    pub qpn: u32,
    /// The number that the driver gave the queue pair.
    pub user_index: u32,
    /// Index of the work queue's element.
    pub wqe: u16,
    /// Opcode of the send WQE; 0 for receives.
    pub wqe_opcode: u8,
    /// Bytes that came in or were read.
    pub bytes: u32,
    /// Immediate data, as it was in the request; for datagrams on queue pair 1 the partition key.
    pub immediate: u32,
    /// Flags of the headers (GRH, kind) and number of the sending queue pair.
    pub source: u32,
    /// LID of the sender.
    pub source_lid: u16,
    /// Why it failed.
    pub syndrome: Option<Syndrome>,
    /// Whether it counts for an arm that waits for solicited completions.
    pub solicited: bool,
}

/// Bytes of a CQE.
pub const ENTRY: usize = 64;
/// Vendor's syndrome of a flushed request.
const VENDOR_FLUSHED: u8 = 0xf9;

impl Completion {
    /// The 64 bytes of `struct mlx5_cqe64` or `struct mlx5_err_cqe` (include/linux/mlx5/device.h).
    pub fn encode(&self, ticks: u64, owner: bool) -> [u8; ENTRY] {
        let mut entry = [0_u8; ENTRY];
        put32(&mut entry, 32, self.user_index);
        if let Some(syndrome) = self.syndrome {
            entry[54] = if syndrome == Syndrome::Flushed { VENDOR_FLUSHED } else { 0 };
            entry[55] = syndrome as u8;
        } else {
            put(&mut entry, 22, &self.source_lid.to_be_bytes());
            put32(&mut entry, 24, self.source);
            put32(&mut entry, 36, self.immediate);
            put32(&mut entry, 44, self.bytes);
            put(&mut entry, 48, &ticks.to_be_bytes());
        }
        put32(&mut entry, 56, u32::from(self.wqe_opcode) << 24 | self.qpn);
        put(&mut entry, 60, &self.wqe.to_be_bytes());
        entry[63] = (self.kind as u8) << 4 | u8::from(owner);
        entry
    }
}

/// What an arm waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Armed {
    /// Nothing.
    No,
    /// A solicited completion or an error.
    Solicited,
    /// Any completion.
    Any,
}

/// What an arm led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArmOutcome {
    /// It waits.
    Armed,
    /// A CQE was there for it: the event is due now, asked for by this CQE.
    Fired(u64),
    /// The event of this sequence was raised before.
    Ignored,
}

impl ArmOutcome {
    /// The word of the log.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Armed => "armed",
            Self::Fired(_) => "fired",
            Self::Ignored => "ignored",
        }
    }
}

/// Whether a CQE asks for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    /// It does not.
    No,
    /// Now.
    Now,
    /// When the moderation's period is over, unless its count is reached before; the number tells apart later ones.
    Later(Duration, u64),
}

/// How many CQEs one event may stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moderation {
    /// CQEs until the event; 0 and 1 are none.
    pub count: u16,
    /// Longest time that an event is held back, in µs.
    pub period_us: u16,
}

/// A completion queue.
#[derive(Debug)]
pub struct CompletionQueue {
    /// Its pages.
    pub buffer: QueueBuffer,
    /// Entries, log 2.
    pub log_size: u32,
    /// Whether an entry takes 128 bytes, of which the CQE is the second half.
    pub is_wide: bool,
    /// Its event queue.
    pub eqn: u32,
    /// Address of its doorbell record: consumer counter, then the last arm.
    pub doorbell: u64,
    /// Whether a full ring is not checked.
    pub ignores_overrun: bool,
    /// How events are held back.
    pub moderation: Moderation,
    /// Whether it was full once; nothing is written any more.
    pub is_overrun: bool,
    produced: u64,
    armed: Armed,
    sequence: u8,
    raised: Option<u8>,
    notified: u64,
    last_solicited: Option<u64>,
    held: u32,
    generation: u64,
}

impl CompletionQueue {
    /// An empty one.
    pub fn new(buffer: QueueBuffer, log_size: u32, is_wide: bool, eqn: u32, doorbell: u64) -> Self {
        Self {
            buffer,
            log_size,
            is_wide,
            eqn,
            doorbell,
            ignores_overrun: false,
            moderation: Moderation::default(),
            is_overrun: false,
            produced: 0,
            armed: Armed::No,
            sequence: 0,
            raised: None,
            notified: 0,
            last_solicited: None,
            held: 0,
            generation: 0,
        }
    }

    /// CQEs written so far; the index of the next one.
    pub fn produced(&self) -> u64 {
        self.produced
    }

    /// Whether another CQE would overwrite one that the driver, at consumer counter `consumer`, has not taken.
    pub fn is_full(&self, consumer: u32) -> bool {
        !self.ignores_overrun && low24((self.produced as u32).wrapping_sub(consumer)) >= 1 << self.log_size
    }

    /// The place of the next CQE and its owner bit, which flips with every lap of the ring.
    pub fn next_slot(&self) -> (Option<u64>, bool) {
        let slot = self.produced & ((1 << self.log_size) - 1);
        let offset = if self.is_wide { slot * 128 + 64 } else { slot * 64 };
        (self.buffer.address(offset), self.produced >> self.log_size & 1 == 1)
    }

    /// Counts a CQE that was written and says whether it asks for an event.
    pub fn written(&mut self, solicited: bool) -> Notify {
        let index = self.produced;
        self.produced += 1;
        if solicited {
            self.last_solicited = Some(index);
        }
        let asks = match self.armed {
            Armed::No => false,
            Armed::Solicited => solicited,
            Armed::Any => true,
        };
        if !asks {
            return Notify::No;
        }
        self.held += 1;
        if self.moderation.count <= 1 || self.moderation.period_us == 0 || self.held >= u32::from(self.moderation.count) {
            self.raise();
            return Notify::Now;
        }
        if self.held == 1 {
            self.generation += 1;
            return Notify::Later(Duration::from_micros(self.moderation.period_us.into()), self.generation);
        }
        Notify::No
    }

    /// The moderation's period is over: the CQE that the event stands for, where one is still due.
    pub fn period_over(&mut self, generation: u64) -> Option<u64> {
        (self.held > 0 && self.generation == generation && self.armed != Armed::No).then(|| {
            self.raise();
            self.produced - 1
        })
    }

    fn raise(&mut self) {
        self.armed = Armed::No;
        self.raised = Some(self.sequence);
        self.notified = self.produced;
        self.held = 0;
    }

    /// The driver arms, with the sequence of its arm and its consumer counter.
    ///
    /// One event per sequence: the driver counts it up when it has taken the event, so an arm that repeats the sequence of
    /// an event already raised is of no effect. An arm fires at once where a CQE is there that no event has told of.
    pub fn arm(&mut self, sequence: u8, consumer: u32, wanted: Armed) -> ArmOutcome {
        if self.raised == Some(sequence) {
            return ArmOutcome::Ignored;
        }
        self.sequence = sequence;
        self.raised = None;
        self.armed = wanted;
        self.held = 0;
        let is_there = match wanted {
            Armed::Any => self.produced > self.notified,
            Armed::Solicited => self.last_solicited.is_some_and(|index| index >= self.notified),
            Armed::No => false,
        };
        if is_there && low24(self.produced as u32) != consumer {
            self.raise();
            return ArmOutcome::Fired(self.produced - 1);
        }
        ArmOutcome::Armed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> CompletionQueue {
        let pages = 0x4000_u64.to_be_bytes();
        CompletionQueue::new(QueueBuffer::new(&pages, 0, 0, 256), 2, false, 5, 0)
    }

    #[test]
    fn the_owner_bit_flips_with_every_lap() {
        let mut cq = queue();
        let mut seen = Vec::new();
        for _ in 0..9 {
            seen.push(cq.next_slot());
            cq.written(false);
        }
        assert_eq!(seen[0], (Some(0x4000), false));
        assert_eq!(seen[3], (Some(0x40c0), false));
        assert_eq!(seen[4], (Some(0x4000), true));
        assert_eq!(seen[8], (Some(0x4000), false));
    }

    #[test]
    fn a_wide_entry_has_its_cqe_in_the_second_half() {
        let mut cq = queue();
        cq.is_wide = true;
        cq.written(false);
        assert_eq!(cq.next_slot().0, Some(0x4000 + 128 + 64));
    }

    #[test]
    fn the_ring_is_full_after_its_size() {
        let mut cq = queue();
        for _ in 0..4 {
            assert_eq!(cq.written(false), Notify::No);
        }
        assert!(cq.is_full(0));
        assert!(!cq.is_full(1));
        cq.ignores_overrun = true;
        assert!(!cq.is_full(0));
    }

    #[test]
    fn an_arm_waits_for_the_next_cqe_and_fires_once() {
        let mut cq = queue();
        assert_eq!(cq.written(false), Notify::No);
        assert_eq!(cq.arm(0, 1, Armed::Any), ArmOutcome::Armed);
        assert_eq!(cq.written(false), Notify::Now);
        assert_eq!(cq.written(false), Notify::No);
    }

    #[test]
    fn an_arm_that_repeats_a_raised_sequence_is_ignored() {
        let mut cq = queue();
        cq.arm(0, 0, Armed::Any);
        cq.written(false);
        assert_eq!(cq.arm(0, 1, Armed::Any), ArmOutcome::Ignored);
        assert_eq!(cq.written(false), Notify::No);
        assert_eq!(cq.arm(1, 1, Armed::Any), ArmOutcome::Fired(1));
        assert_eq!(cq.arm(1, 2, Armed::Any), ArmOutcome::Ignored);
        assert_eq!(cq.arm(2, 2, Armed::Any), ArmOutcome::Armed);
        assert_eq!(cq.arm(2, 2, Armed::Any), ArmOutcome::Armed, "armed twice without an event between is no repetition");
    }

    #[test]
    fn an_arm_fires_for_a_cqe_that_no_event_told_of_and_only_then() {
        let mut cq = queue();
        cq.written(false);
        assert_eq!(cq.arm(0, 0, Armed::Any), ArmOutcome::Fired(0));
        assert_eq!(cq.arm(1, 0, Armed::Any), ArmOutcome::Armed, "told of already");
        let mut cq = queue();
        cq.written(false);
        assert_eq!(cq.arm(0, 1, Armed::Any), ArmOutcome::Armed, "taken already");
    }

    #[test]
    fn a_solicited_arm_waits_for_a_solicited_cqe() {
        let mut cq = queue();
        cq.written(false);
        assert_eq!(cq.arm(0, 0, Armed::Solicited), ArmOutcome::Armed);
        assert_eq!(cq.written(false), Notify::No);
        assert_eq!(cq.written(true), Notify::Now);
    }

    #[test]
    fn moderation_holds_an_event_back_until_its_count_or_its_period() {
        let mut cq = queue();
        cq.moderation = Moderation { count: 3, period_us: 16 };
        cq.arm(0, 0, Armed::Any);
        let Notify::Later(period, generation) = cq.written(false) else { panic!("held back") };
        assert_eq!(period, Duration::from_micros(16));
        assert_eq!(cq.written(false), Notify::No);
        assert_eq!(cq.written(false), Notify::Now);
        assert_eq!(cq.period_over(generation), None);
        cq.arm(1, 3, Armed::Any);
        let Notify::Later(_, generation) = cq.written(false) else { panic!("held back") };
        assert_eq!(cq.period_over(generation), Some(3));
        assert_eq!(cq.period_over(generation), None);
    }

    #[test]
    fn an_error_cqe_lies_as_the_driver_reads_it() {
        let failed = Completion {
            kind: Kind::RequesterError,
            qpn: 0x12_3456,
            user_index: 9,
            wqe: 0x0102,
            wqe_opcode: 0x10,
            bytes: 77,
            immediate: 0,
            source: 0,
            source_lid: 0,
            syndrome: Some(Syndrome::RemoteAccess),
            solicited: true,
        };
        let entry = failed.encode(5, true);
        assert_eq!(entry[55], 0x13);
        assert_eq!(entry[56..60], [0x10, 0x12, 0x34, 0x56]);
        assert_eq!(entry[60..62], [1, 2]);
        assert_eq!(entry[63], 0xd1);
        let good = Completion { kind: Kind::Send, syndrome: None, ..failed }.encode(0x0102_0304_0506_0708, false);
        assert_eq!(good[48..56], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(good[44..48], [0, 0, 0, 77]);
        assert_eq!(good[63], 0x20);
    }
}
