//! The guest's memory as the device sees it: what QEMU has mapped for DMA.

use std::fs::File;
use std::sync::atomic::Ordering;
use vm_memory::mmap::MmapRegionError;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

/// An access of the device that is outside of everything mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("DMA of {length} bytes at {address:#x} is outside of the guest's memory")]
pub struct OutsideMemory {
    /// Where it began.
    pub address: u64,
    /// How long it was.
    pub length: usize,
}

#[derive(Debug)]
struct Region {
    address: u64,
    map: MmapRegion<()>,
}

/// All regions of one function.
#[derive(Debug, Default)]
pub struct Memory {
    regions: Vec<Region>,
}

impl Memory {
    /// Maps `size` bytes of `file` from `offset` on as the guest's memory at `address`.
    pub fn map(&mut self, address: u64, file: File, offset: u64, size: u64) -> Result<(), MmapRegionError> {
        let map = MmapRegion::from_file(FileOffset::new(file, offset), size as usize)?;
        self.regions.push(Region { address, map });
        Ok(())
    }

    /// Forgets the region that begins at `address` and has `size` bytes.
    pub fn unmap(&mut self, address: u64, size: u64) {
        self.regions.retain(|region| region.address != address || region.map.size() as u64 != size);
    }

    /// Memory of the device's own for tests, at `address`.
    #[cfg(test)]
    pub fn anonymous(address: u64, size: usize) -> Self {
        Self { regions: vec![Region { address, map: MmapRegion::new(size).expect("anonymous memory") }] }
    }

    fn slice(&self, address: u64, length: usize) -> Result<VolatileSlice<'_>, OutsideMemory> {
        self.regions
            .iter()
            .find_map(|region| region.map.get_slice(address.checked_sub(region.address)? as usize, length).ok())
            .ok_or(OutsideMemory { address, length })
    }

    /// Fills `bytes` from the guest.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), OutsideMemory> {
        let outside = OutsideMemory { address, length: bytes.len() };
        self.slice(address, bytes.len())?.read_slice(bytes, 0).map_err(|_| outside)
    }

    /// `length` bytes of the guest.
    pub fn bytes(&self, address: u64, length: usize) -> Result<Vec<u8>, OutsideMemory> {
        let mut bytes = vec![0; length];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes to the guest.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), OutsideMemory> {
        let outside = OutsideMemory { address, length: bytes.len() };
        self.slice(address, bytes.len())?.write_slice(bytes, 0).map_err(|_| outside)
    }

    /// Writes an entry whose last byte tells the guest that it is there: everything before it is visible first.
    pub fn publish(&self, address: u64, entry: &[u8]) -> Result<(), OutsideMemory> {
        let Some((last, body)) = entry.split_last() else { return Ok(()) };
        self.write(address, body)?;
        let at = address + body.len() as u64;
        self.slice(at, 1)?.store(*last, 0, Ordering::Release).map_err(|_| OutsideMemory { address: at, length: 1 })
    }

    /// The big-endian word at `address`, read after everything that the guest wrote before it.
    pub fn word(&self, address: u64) -> Result<u32, OutsideMemory> {
        let value: u32 = self.slice(address, 4)?.load(0, Ordering::Acquire).map_err(|_| OutsideMemory { address, length: 4 })?;
        Ok(u32::from_be(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_outside_is_refused() {
        let memory = Memory::anonymous(0x1000, 0x2000);
        memory.write(0x1ffe, &[1, 2, 3, 4]).unwrap();
        assert_eq!(memory.bytes(0x1ffe, 4).unwrap(), [1, 2, 3, 4]);
        assert_eq!(memory.write(0x2ffe, &[0; 4]), Err(OutsideMemory { address: 0x2ffe, length: 4 }));
        assert!(memory.bytes(0xfff, 1).is_err());
        memory.publish(0x1100, &[7; 64]).unwrap();
        assert_eq!(memory.word(0x113c).unwrap(), 0x0707_0707);
    }

    #[test]
    fn an_unmapped_region_is_outside() {
        let mut memory = Memory::anonymous(0, 0x1000);
        memory.unmap(0, 0x2000);
        assert!(memory.bytes(0, 8).is_ok());
        memory.unmap(0, 0x1000);
        assert!(memory.bytes(0, 8).is_err());
    }
}
