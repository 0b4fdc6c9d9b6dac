//! Doorbells: what a write to a user access region means.

use crate::bits::{be32, low24};
use std::collections::HashMap;

/// A doorbell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doorbell {
    /// EQEs were taken up to `consumer`.
    Events {
        /// The event queue.
        eqn: u32,
        /// Consumer counter, 24 bits.
        consumer: u32,
        /// Whether it is armed.
        arms: bool,
    },
    /// A completion queue is armed.
    Arm {
        /// The completion queue.
        cqn: u32,
        /// Sequence of the arm, 2 bits.
        sequence: u8,
        /// Consumer counter, 24 bits.
        consumer: u32,
        /// Whether solicited completions alone count.
        solicited: bool,
    },
    /// Requests were posted.
    Send {
        /// The queue pair.
        qpn: u32,
    },
}

/// Offsets within a page.
const EVENTS_ARM: u64 = 0x40;
const EVENTS: u64 = 0x48;
const ARM: u64 = 0x20;
const SEND: u64 = 0x800;
/// Between one send doorbell of a page and the next.
const SEND_STRIDE: u64 = 0x100;

/// First halves of doorbells of 8 bytes that come as two writes of 4.
#[derive(Debug, Default)]
pub struct Halves {
    first: HashMap<u64, u32>,
}

impl Halves {
    /// What a write to a user access region means; nothing where it is half of something, or data of a request that the
    /// driver writes to the card (which reads it from memory instead).
    pub fn decode(&mut self, offset: u64, data: &[u8]) -> Option<Doorbell> {
        let at = offset & 0xfff;
        match (at, data.len()) {
            (EVENTS_ARM | EVENTS, 4) => {
                let word = be32(data, 0);
                Some(Doorbell::Events { eqn: word >> 24, consumer: low24(word), arms: at == EVENTS_ARM })
            }
            (_, 8) => of_words(at, be32(data, 0), be32(data, 4)),
            (_, 4) if at & 4 == 0 => {
                self.first.insert(offset, be32(data, 0));
                None
            }
            (_, 4) => of_words(at - 4, self.first.remove(&(offset - 4))?, be32(data, 0)),
            _ => None,
        }
    }
}

fn of_words(at: u64, first: u32, second: u32) -> Option<Doorbell> {
    const SOLICITED: u32 = 1 << 24;
    if at == ARM {
        let (sequence, solicited) = ((first >> 28 & 3) as u8, first & SOLICITED != 0);
        return Some(Doorbell::Arm { cqn: low24(second), sequence, consumer: low24(first), solicited });
    }
    (at >= SEND && at.is_multiple_of(SEND_STRIDE)).then_some(Doorbell::Send { qpn: second >> 8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_has_its_sequence_and_its_consumer_counter() {
        let data = [0x21, 0, 0, 7, 0, 0, 0, 0x41];
        let expected = Doorbell::Arm { cqn: 0x41, sequence: 2, consumer: 7, solicited: true };
        assert_eq!(Halves::default().decode(0x9020, &data), Some(expected));
    }

    #[test]
    fn two_halves_are_one_doorbell() {
        let mut halves = Halves::default();
        assert_eq!(halves.decode(0x8800, &[0, 0, 1, 0x0a]), None);
        assert_eq!(halves.decode(0x8804, &[0, 0, 0x50, 2]), Some(Doorbell::Send { qpn: 0x50 }));
        assert_eq!(halves.decode(0x8804, &[0, 0, 0x50, 2]), None);
    }

    #[test]
    fn events_are_taken_with_and_without_arming() {
        let decode = |at| Halves::default().decode(at, &[5, 0, 1, 0]);
        assert_eq!(decode(0x8040), Some(Doorbell::Events { eqn: 5, consumer: 0x100, arms: true }));
        assert_eq!(decode(0x8048), Some(Doorbell::Events { eqn: 5, consumer: 0x100, arms: false }));
    }
}
