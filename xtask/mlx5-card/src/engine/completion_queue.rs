//! Completion queues: their ring with its owner bits, the rules of arming, and moderation.

use super::buffer::QueueBuffer;
use crate::bits::low24;
use std::time::Duration;

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
}
