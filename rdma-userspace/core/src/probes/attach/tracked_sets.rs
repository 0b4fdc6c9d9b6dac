//! The sets of threads, processes, queue pairs and interrupts that the programs record: bitmaps shared with them.

use aya::Ebpf;
use aya::maps::{Array, MapData, MapError};
use ebpf_probes::config::{
    Bits, IRQ_BITS, PID_BITS, QPN_BITS, TGID_BITS, TRACKED_IRQS_MAP, TRACKED_PIDS_MAP, TRACKED_QPNS_MAP, TRACKED_TGIDS_MAP, TRACKED_WAITER,
};

use crate::probes::ProbeError;

/// One set.
pub(super) struct Set {
    name: &'static str,
    bits: Bits,
    map: Array<MapData, u64>,
}

impl Set {
    fn take(ebpf: &mut Ebpf, name: &'static str, bits: Bits) -> Result<Self, ProbeError> {
        let map = ebpf.take_map(name).ok_or(ProbeError::NotInObject { what: "map", name })?;
        let map = Array::try_from(map).map_err(|error| ProbeError::from_map(name, error))?;
        Ok(Set { name, bits, map })
    }

    /// Adds a number; one that is there already stays.
    pub(super) fn add(&mut self, number: u32) -> Result<(), ProbeError> {
        self.set(number, TRACKED_WAITER)
    }

    /// Adds a number with a value of its own. Number 0 (the idle thread, no process) is never in a set.
    pub(super) fn set(&mut self, number: u32, value: u32) -> Result<(), ProbeError> {
        if number == 0 {
            return Ok(());
        }
        self.write(number, value).map_err(|error| ProbeError::from_map(self.name, error))
    }

    /// Takes a number out; one that is not there is no error.
    pub(super) fn remove(&mut self, number: u32) -> Result<(), ProbeError> {
        if number >= self.bits.numbers {
            return Ok(());
        }
        self.write(number, 0).map_err(|error| ProbeError::from_map(self.name, error))
    }

    fn write(&mut self, number: u32, value: u32) -> Result<(), MapError> {
        if number >= self.bits.numbers {
            return Err(MapError::OutOfBounds { index: number, max_entries: self.bits.numbers });
        }
        let (index, shift, mask) = place(self.bits, number);
        let word = self.map.get(&index, 0)?;
        self.map.set(index, (word & !mask) | ((u64::from(value) << shift) & mask), 0)
    }
}

/// Word, shift and mask of a number.
fn place(bits: Bits, number: u32) -> (u32, u32, u64) {
    let bit = u64::from(number) * u64::from(bits.each);
    let shift = (bit % 64) as u32;
    ((bit / 64) as u32, shift, ((1 << bits.each) - 1) << shift)
}

/// The four sets.
pub(super) struct TrackedSets {
    pub(super) pids: Set,
    pub(super) tgids: Set,
    pub(super) qpns: Set,
    pub(super) irqs: Set,
}

impl TrackedSets {
    pub(super) fn take(ebpf: &mut Ebpf) -> Result<Self, ProbeError> {
        Ok(TrackedSets {
            pids: Set::take(ebpf, TRACKED_PIDS_MAP, PID_BITS)?,
            tgids: Set::take(ebpf, TRACKED_TGIDS_MAP, TGID_BITS)?,
            qpns: Set::take(ebpf, TRACKED_QPNS_MAP, QPN_BITS)?,
            irqs: Set::take(ebpf, TRACKED_IRQS_MAP, IRQ_BITS)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebpf_probes::config::words;

    #[test]
    fn every_number_has_its_own_bits_within_the_map() {
        for bits in [PID_BITS, TGID_BITS, QPN_BITS, IRQ_BITS] {
            let last = place(bits, bits.numbers - 1);
            assert_eq!(last.0, words(bits) - 1, "{bits:?}");
            let (one, other) = (place(bits, 41), place(bits, 42));
            assert!(one.0 != other.0 || one.2 & other.2 == 0, "{bits:?}");
            assert_eq!(one.2.count_ones(), bits.each);
        }
    }
}
