//! Event queues: the entries, their ring with its owner bits, and when an interrupt is due.

use crate::bits::{low24, put32};
use crate::engine::buffer::QueueBuffer;

/// Bytes of an EQE.
pub const ENTRY: usize = 64;

/// Event types of the interface (`MLX5_EVENT_TYPE_*`).
pub mod event {
    /// A completion queue.
    pub const COMPLETION: u8 = 0x00;
    /// A completion queue has an error.
    pub const CQ_ERROR: u8 = 0x04;
    /// The port has changed.
    pub const PORT_CHANGE: u8 = 0x09;
    /// A command has ended.
    pub const COMMAND: u8 = 0x0a;
    /// A queue pair got an invalid request.
    pub const INVALID_REQUEST: u8 = 0x10;
    /// A queue pair got a request that was not allowed.
    pub const ACCESS: u8 = 0x11;
    /// A shared receive queue is below its limit.
    pub const SRQ_LIMIT: u8 = 0x14;
}

/// Subtype of a port change: down.
const PORT_DOWN: u8 = 1;
/// Subtype of a port change: active.
const PORT_ACTIVE: u8 = 4;
/// Resource type of an event about a queue pair or a shared receive queue (`MLX5_EVENT_QUEUE_TYPE_*`, `MLX5_RES_*`).
const RESOURCE_QP: u8 = 0;
const RESOURCE_RMP: u8 = 2;
/// Syndrome of a completion queue's error: overrun.
const CQ_OVERRUN: u8 = 1;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Completion queue `cq` has a CQE; which one asked.
    Completion {
        /// The completion queue.
        cq: u32,
        /// The CQE.
        cqe: u64,
    },
    /// An event of a completion queue that is not there.
    Foreign(u32),
    /// Commands of these slots have ended.
    Command(u32),
    /// A completion queue was full.
    CqOverrun(u32),
    /// A queue pair got an invalid request.
    InvalidRequest(u32),
    /// A queue pair got a request that was not allowed.
    Access(u32),
    /// A shared receive queue is below its limit.
    SrqLimit(u32),
    /// The port is up or down.
    Port(bool),
}

impl Event {
    /// Its type.
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Completion { .. } | Self::Foreign(_) => event::COMPLETION,
            Self::Command(_) => event::COMMAND,
            Self::CqOverrun(_) => event::CQ_ERROR,
            Self::InvalidRequest(_) => event::INVALID_REQUEST,
            Self::Access(_) => event::ACCESS,
            Self::SrqLimit(_) => event::SRQ_LIMIT,
            Self::Port(_) => event::PORT_CHANGE,
        }
    }

    /// The 64 bytes of `struct mlx5_eqe` (include/linux/mlx5/device.h).
    pub fn encode(&self, owner: bool) -> [u8; ENTRY] {
        let mut entry = [0; ENTRY];
        entry[1] = self.kind();
        match *self {
            Self::Completion { cq, .. } | Self::Foreign(cq) => put32(&mut entry, 56, cq),
            Self::Command(slots) => put32(&mut entry, 32, slots),
            Self::CqOverrun(cq) => {
                put32(&mut entry, 32, cq);
                entry[43] = CQ_OVERRUN;
            }
            Self::InvalidRequest(qp) | Self::Access(qp) => {
                entry[52] = RESOURCE_QP;
                put32(&mut entry, 56, qp);
            }
            Self::SrqLimit(srq) => {
                entry[52] = RESOURCE_RMP;
                put32(&mut entry, 56, srq);
            }
            Self::Port(is_up) => {
                entry[3] = if is_up { PORT_ACTIVE } else { PORT_DOWN };
                entry[40] = 1 << 4;
            }
        }
        entry[63] = u8::from(owner);
        entry
    }
}

/// An event queue.
#[derive(Debug)]
pub struct EventQueue {
    /// Its pages.
    pub buffer: QueueBuffer,
    /// Entries, log 2.
    pub log_size: u32,
    /// Its interrupt.
    pub vector: u32,
    /// The asynchronous events that it wants, a bit each; 0 for a queue of completions.
    pub mask: u64,
    produced: u64,
    is_armed: bool,
    told: u64,
    held: u32,
    generation: u64,
}

/// What an EQE or an arm asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing.
    Nothing,
    /// An interrupt.
    Interrupt,
    /// An interrupt, if no more EQEs come; the number tells apart later ones.
    InterruptLater(u64),
}

impl EventQueue {
    /// An empty one.
    pub fn new(buffer: QueueBuffer, log_size: u32, vector: u32, mask: u64) -> Self {
        Self { buffer, log_size, vector, mask, produced: 0, is_armed: false, told: 0, held: 0, generation: 0 }
    }

    /// Whether it is for completions, so that the knobs hold for it.
    pub const fn is_for_completions(&self) -> bool {
        self.mask == 0
    }

    /// EQEs written so far; the index of the next one.
    pub const fn produced(&self) -> u64 {
        self.produced
    }

    /// The place of the next EQE and its owner bit.
    pub fn next_slot(&self) -> (Option<u64>, bool) {
        let slot = self.produced & ((1 << self.log_size) - 1);
        (self.buffer.address(slot * ENTRY as u64), self.produced >> self.log_size & 1 == 1)
    }

    /// Counts an EQE that was written. `coalesce` EQEs have one interrupt.
    pub fn written(&mut self, coalesce: u32) -> Wanted {
        self.produced += 1;
        if !self.is_armed {
            return Wanted::Nothing;
        }
        self.held += 1;
        if self.held >= coalesce {
            self.is_armed = false;
            self.held = 0;
            return Wanted::Interrupt;
        }
        if self.held == 1 {
            self.generation += 1;
            return Wanted::InterruptLater(self.generation);
        }
        Wanted::Nothing
    }

    /// No more EQEs came in time: whether the interrupt is still due.
    pub fn time_is_over(&mut self, generation: u64) -> bool {
        let is_due = self.is_armed && self.held > 0 && self.generation == generation;
        if is_due {
            self.is_armed = false;
            self.held = 0;
        }
        is_due
    }

    /// The driver has taken EQEs up to `consumer`, and arms or does not. An arm fires at once where an EQE is there.
    pub fn doorbell(&mut self, consumer: u32, arms: bool) -> Wanted {
        if !arms {
            return Wanted::Nothing;
        }
        self.held = 0;
        self.is_armed = low24(self.produced as u32) == consumer;
        if self.is_armed { Wanted::Nothing } else { Wanted::Interrupt }
    }

    /// The EQEs that an interrupt of now stands for: first and last index.
    pub fn tell(&mut self) -> (u64, u64) {
        let last = self.produced.saturating_sub(1);
        (std::mem::replace(&mut self.told, self.produced).min(last), last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> EventQueue {
        EventQueue::new(QueueBuffer::new(&0x7000_u64.to_be_bytes(), 0, 0, 128), 1, 3, 0)
    }

    #[test]
    fn entries_lie_as_the_driver_reads_them() {
        let entry = Event::Completion { cq: 0x12_3456, cqe: 1 }.encode(true);
        assert_eq!((entry[1], &entry[56..60], entry[63]), (0, &[0, 0x12, 0x34, 0x56][..], 1));
        assert_eq!(Event::Command(1 << 4).encode(false)[32..36], [0, 0, 0, 16]);
        assert_eq!(Event::Port(true).encode(false)[40], 0x10);
        assert_eq!(Event::CqOverrun(5).encode(false)[43], 1);
    }

    #[test]
    fn the_owner_bit_flips_with_every_lap() {
        let mut eq = queue();
        let mut owners = Vec::new();
        for _ in 0..5 {
            owners.push(eq.next_slot());
            eq.written(1);
        }
        assert_eq!(owners[1], (Some(0x7040), false));
        assert_eq!((owners[2], owners[4]), ((Some(0x7000), true), (Some(0x7000), false)));
    }

    #[test]
    fn an_armed_queue_interrupts_once() {
        let mut eq = queue();
        assert_eq!(eq.written(1), Wanted::Nothing);
        assert_eq!(eq.doorbell(0, true), Wanted::Interrupt);
        assert_eq!(eq.tell(), (0, 0));
        assert_eq!(eq.doorbell(1, true), Wanted::Nothing);
        assert_eq!(eq.written(1), Wanted::Interrupt);
        assert_eq!(eq.written(1), Wanted::Nothing);
        assert_eq!(eq.tell(), (1, 2));
    }

    #[test]
    fn coalesced_entries_share_an_interrupt() {
        let mut eq = queue();
        eq.doorbell(0, true);
        let Wanted::InterruptLater(generation) = eq.written(3) else { panic!("later") };
        assert_eq!(eq.written(3), Wanted::Nothing);
        assert_eq!(eq.written(3), Wanted::Interrupt);
        assert!(!eq.time_is_over(generation));
        eq.doorbell(3, true);
        let Wanted::InterruptLater(generation) = eq.written(3) else { panic!("later") };
        assert!(eq.time_is_over(generation));
    }
}
