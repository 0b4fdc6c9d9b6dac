//! What a message holds: a pattern that tells the side it comes from, and a sequence number in its last bytes.
//!
//! The sequence takes the last 8 bytes where the size is a multiple of 8, and the last byte otherwise; it is never 0 and differs from the
//! one before, so that a watcher of zeroed memory sees each message arrive. A message begins on a cache line, so 8 bytes are aligned.
use super::error::RunnerError;
use super::params::Role;
use crate::verbs::{Mr, VerbsError};
use std::sync::atomic::Ordering;

/// Where the messages of an area lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub size_bytes: u32,
    pub stride_bytes: usize,
    pub slots: u32,
}

impl Layout {
    pub fn area_bytes(&self) -> usize {
        self.stride_bytes * self.slots as usize
    }

    /// Offset of the slot that the message with this number uses.
    #[inline]
    pub fn offset(&self, number: u64) -> usize {
        (number % u64::from(self.slots)) as usize * self.stride_bytes
    }

    fn is_wide(&self) -> bool {
        self.size_bytes.is_multiple_of(8)
    }

    /// The sequence as a message carries it.
    #[inline]
    pub fn on_wire(&self, sequence: u64) -> u64 {
        if self.is_wide() { sequence } else { sequence.wrapping_sub(1) % 255 + 1 }
    }

    /// Writes the sequence into a slot.
    #[inline]
    pub fn store(&self, mr: &Mr, slot_offset: usize, on_wire: u64) -> Result<(), VerbsError> {
        let end = slot_offset + self.size_bytes as usize;
        if self.is_wide() {
            mr.atomic_u64(end - 8)?.store(on_wire, Ordering::Release);
        } else {
            mr.atomic_u8(end - 1)?.store(on_wire as u8, Ordering::Release);
        }
        Ok(())
    }

    /// Reads the sequence of a slot.
    #[inline]
    pub fn load(&self, mr: &Mr, slot_offset: usize) -> Result<u64, VerbsError> {
        let end = slot_offset + self.size_bytes as usize;
        if self.is_wide() {
            Ok(mr.atomic_u64(end - 8)?.load(Ordering::Acquire))
        } else {
            Ok(u64::from(mr.atomic_u8(end - 1)?.load(Ordering::Acquire)))
        }
    }

    fn pattern(&self, from: Role) -> Vec<u8> {
        let salt = if from == Role::Client { 0x35 } else { 0xca };
        let tail = if self.is_wide() { 8 } else { 1 };
        (0..self.size_bytes as usize - tail).map(|i| (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ salt).collect()
    }

    /// Fills every slot with the pattern of a side; sequences stay 0.
    pub fn fill(&self, mr: &Mr, from: Role) -> Result<(), VerbsError> {
        let pattern = self.pattern(from);
        (0..u64::from(self.slots)).try_for_each(|slot| mr.write(self.offset(slot), &pattern))
    }

    /// Checks a message byte by byte.
    pub fn verify(&self, mr: &Mr, number: u64, from: Role, sequence: u64) -> Result<(), RunnerError> {
        let offset = self.offset(number);
        let expected = self.pattern(from);
        let mut got = vec![0; expected.len()];
        mr.read(offset, &mut got)?;
        if let Some(at) = expected.iter().zip(&got).position(|(a, b)| a != b) {
            return Err(RunnerError::Payload(format!(
                "byte {at} of {} in slot {} is {:#04x}, expected {:#04x}",
                self.size_bytes,
                number % u64::from(self.slots),
                got[at],
                expected[at]
            )));
        }
        self.check_sequence(mr, offset, sequence)
    }

    /// Checks the sequence of a slot.
    #[inline]
    pub fn check_sequence(&self, mr: &Mr, slot_offset: usize, sequence: u64) -> Result<(), RunnerError> {
        let got = self.load(mr, slot_offset)?;
        let expected = self.on_wire(sequence);
        if got == expected { Ok(()) } else { Err(wrong_sequence(expected, got)) }
    }
}

#[cold]
pub(crate) fn wrong_sequence(expected: u64, got: u64) -> RunnerError {
    RunnerError::Payload(format!("sequence {got}, expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn sequences_are_never_zero_and_never_repeat_at_once() {
        for size_bytes in [1, 7, 8, 12, 64, 4096] {
            let layout = Layout { size_bytes, stride_bytes: (size_bytes as usize).next_multiple_of(64), slots: 3 };
            for sequence in 1..2000 {
                let on_wire = layout.on_wire(sequence);
                assert_ne!(on_wire, 0);
                assert_ne!(on_wire, layout.on_wire(sequence + 1));
                assert!(size_bytes % 8 == 0 || on_wire <= 255);
            }
            assert_eq!((layout.offset(0), layout.offset(3)), (0, 0));
            assert!(layout.offset(5) + size_bytes as usize <= layout.area_bytes());
        }
    }
}
