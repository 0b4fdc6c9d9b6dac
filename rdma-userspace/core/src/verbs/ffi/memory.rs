//! Page-aligned memory that a device may read and write at any time: reached through atomics and copies only, never through a reference to plain bytes.
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64};

/// An anonymous private mapping, zeroed, unmapped on drop.
pub(crate) struct Mapping {
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is only reached through atomics and raw copies; the mapping itself never changes until drop.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes, rounded up to whole pages by the kernel.
    pub fn anonymous(len: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no existing memory.
        let ptr = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if ptr == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ptr = NonNull::new(ptr.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { ptr, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Virtual address of a byte. The caller keeps `offset` within the mapping; a wrong one is harmless until the address is used.
    pub fn address(&self, offset: usize) -> u64 {
        self.ptr.as_ptr().wrapping_add(offset) as u64
    }

    /// Locks a part into memory and so also touches each of its pages.
    pub fn lock(&self, offset: usize, len: usize) -> io::Result<()> {
        self.range(offset, len)?;
        // SAFETY: the range lies inside our own mapping.
        let ret = unsafe { libc::mlock(self.ptr.as_ptr().wrapping_add(offset).cast(), len) };
        if ret == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Copies bytes into the mapping.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        self.range(offset, bytes.len())?;
        // SAFETY: the range was checked; the source is a Rust slice, which never overlaps memory that no reference points to.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr.as_ptr().add(offset), bytes.len()) };
        Ok(())
    }

    /// Copies bytes out of the mapping; a device that writes meanwhile gives a mixture, not undefined behaviour on this side of the bus.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> io::Result<()> {
        self.range(offset, bytes.len())?;
        // SAFETY: the range was checked; the destination is a Rust slice outside of the mapping.
        unsafe { std::ptr::copy_nonoverlapping(self.ptr.as_ptr().add(offset), bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    /// One byte as an atomic; `None` outside of the mapping.
    pub fn atomic_u8(&self, offset: usize) -> Option<&AtomicU8> {
        self.range(offset, 1).ok()?;
        // SAFETY: inside the mapping, which lives as long as the reference; alignment 1 always holds.
        Some(unsafe { AtomicU8::from_ptr(self.ptr.as_ptr().add(offset)) })
    }

    /// Eight bytes as an atomic; `None` outside of the mapping or where `offset` is not a multiple of 8.
    pub fn atomic_u64(&self, offset: usize) -> Option<&AtomicU64> {
        self.range(offset, 8).ok()?;
        if !offset.is_multiple_of(8) {
            return None;
        }
        // SAFETY: inside the mapping, which lives as long as the reference; the mapping is page-aligned and the offset a multiple of 8.
        Some(unsafe { AtomicU64::from_ptr(self.ptr.as_ptr().add(offset).cast()) })
    }

    fn range(&self, offset: usize, len: usize) -> io::Result<()> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length, unmapped once; regions over it hold an `Arc` and are gone.
        let ret = unsafe { libc::munmap(self.ptr.as_ptr().cast(), self.len) };
        if ret != 0 {
            eprintln!("rdmascope: {} bytes of buffer could not be unmapped: {}", self.len, io::Error::last_os_error());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mapping;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_range_outside_is_an_error_and_inside_is_kept() {
        let map = Mapping::anonymous(4096).unwrap();
        assert!(map.write(4090, &[1; 7]).is_err());
        assert!(map.write(usize::MAX, &[1; 7]).is_err());
        assert!(map.atomic_u64(4092).is_none());
        assert!(map.atomic_u64(4).is_none());
        map.write(8, &7u64.to_le_bytes()).unwrap();
        assert_eq!(map.atomic_u64(8).unwrap().load(Ordering::Relaxed), 7);
        let mut back = [0; 8];
        map.read(8, &mut back).unwrap();
        assert_eq!(u64::from_le_bytes(back), 7);
    }
}
