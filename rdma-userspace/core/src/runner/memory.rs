//! The memory of one end: the area that its messages leave from, and the one where data arrives.
use super::error::RunnerError;
use super::payload::Layout;
use crate::verbs::{Access, Buffer, MemlockBudget, Mr, Pd, VerbsError};
use capture::Side;
use std::sync::atomic::{AtomicU64, Ordering};

/// Least distance between the end of the send area and the begin of the receive area: they share no huge page and no prefetched line.
const AREA_DISTANCE_BYTES: usize = 2 << 20;

/// Registered memory in slots, one message each.
pub(crate) struct Area {
    pub mr: Mr,
    pub layout: Layout,
}

/// Both areas of one end.
pub(crate) struct Memory {
    pub send: Area,
    pub recv: Area,
}

impl Memory {
    /// One mapping with the send area at its begin and the receive area well away from it; only the areas themselves are locked and
    /// registered. `access` is what the peer may do in the receive area; the send area is read only by this side's own device.
    pub fn register(pd: &Pd, send: Layout, recv: Layout, access: Access) -> Result<Self, RunnerError> {
        let page = crate::verbs::ffi::os::page_bytes();
        let send_bytes = send.area_bytes().next_multiple_of(page);
        let recv_bytes = recv.area_bytes().next_multiple_of(page);
        MemlockBudget::read()?.check((send_bytes + recv_bytes) as u64)?;
        let recv_offset = (send_bytes + AREA_DISTANCE_BYTES).next_multiple_of(AREA_DISTANCE_BYTES);
        let buffer = Buffer::map(recv_offset + recv_bytes)?;
        let send_mr = Mr::register(pd, &buffer, 0, send_bytes, Access::default())?;
        let recv_mr = Mr::register(pd, &buffer, recv_offset, recv_bytes, access)?;
        Ok(Self { send: Area { mr: send_mr, layout: send }, recv: Area { mr: recv_mr, layout: recv } })
    }
}

impl Area {
    /// Writes the sequence into a slot.
    #[inline]
    pub fn store(&self, slot_offset: usize, on_wire: u64) -> Result<(), VerbsError> {
        let end = slot_offset + self.layout.size_bytes as usize;
        if self.layout.is_wide() {
            self.mr.atomic_u64(end - 8)?.store(on_wire, Ordering::Release);
        } else {
            self.mr.atomic_u8(end - 1)?.store(on_wire as u8, Ordering::Release);
        }
        Ok(())
    }

    /// Reads the sequence of a slot.
    #[inline]
    pub fn load(&self, slot_offset: usize) -> Result<u64, VerbsError> {
        let end = slot_offset + self.layout.size_bytes as usize;
        if self.layout.is_wide() {
            Ok(self.mr.atomic_u64(end - 8)?.load(Ordering::Acquire))
        } else {
            Ok(u64::from(self.mr.atomic_u8(end - 1)?.load(Ordering::Acquire)))
        }
    }

    /// Checks the sequence of a slot.
    #[inline]
    pub fn check_sequence(&self, slot_offset: usize, sequence: u64) -> Result<(), RunnerError> {
        let got = self.load(slot_offset)?;
        let expected = self.layout.on_wire(sequence);
        if got == expected { Ok(()) } else { Err(RunnerError::wrong_sequence(expected, got)) }
    }

    /// Its first 8 bytes: what atomics work on.
    #[inline]
    pub fn word(&self) -> Result<&AtomicU64, VerbsError> {
        self.mr.atomic_u64(0)
    }

    /// Fills every slot with the pattern of a side; sequences stay 0.
    pub fn fill(&self, from: Side) -> Result<(), VerbsError> {
        let pattern = self.layout.pattern(from);
        (0..u64::from(self.layout.slots)).try_for_each(|slot| self.mr.write(self.layout.offset(slot), &pattern))
    }

    /// Checks a message byte by byte.
    pub fn verify(&self, number: u64, from: Side, sequence: u64) -> Result<(), RunnerError> {
        let offset = self.layout.offset(number);
        let expected = self.layout.pattern(from);
        let mut got = vec![0; expected.len()];
        self.mr.read(offset, &mut got)?;
        if let Some(at) = expected.iter().zip(&got).position(|(a, b)| a != b) {
            return Err(RunnerError::Payload(format!(
                "byte {at} of {} in slot {} is {:#04x}, expected {:#04x}",
                self.layout.size_bytes,
                number % u64::from(self.layout.slots),
                got[at],
                expected[at]
            )));
        }
        self.check_sequence(offset, sequence)
    }
}
