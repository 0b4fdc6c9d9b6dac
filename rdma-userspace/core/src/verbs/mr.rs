//! Protection domain, buffers and memory regions.
use super::device::Device;
use super::error::{VerbsError, create_cause};
use super::ffi::{RawMr, RawPd, memory::Mapping, sys};
use super::memlock::MemlockBudget;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64};

/// A protection domain of a device.
#[derive(Clone)]
pub struct Pd {
    pub(super) raw: Arc<RawPd>,
    pub(super) device: Device,
}

impl Pd {
    /// Allocates one.
    pub fn alloc(device: &Device) -> Result<Self, VerbsError> {
        match RawPd::alloc(device.raw()) {
            Ok(raw) => Ok(Self { raw: Arc::new(raw), device: device.clone() }),
            Err(source) => Err(VerbsError::AllocPd { device: device.name().into(), max_pd: device.limits().max_pd, source }),
        }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// Page-aligned, zeroed memory that is never swapped once it is part of a region.
#[derive(Clone)]
pub struct Buffer(Arc<Mapping>);

impl Buffer {
    /// Maps `bytes` of memory; pages appear when they are locked or touched.
    pub fn map(bytes: usize) -> Result<Self, VerbsError> {
        let cause = "not enough memory or address space";
        let mapped = Mapping::anonymous(bytes);
        mapped.map(|map| Self(Arc::new(map))).map_err(|source| VerbsError::Memory { what: "map", bytes: bytes as u64, cause, source })
    }
}

/// What a region allows. Local reads always are; nothing remote unless it is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The device may write here for local requests: receives, results of READ and atomics.
    pub local_write: bool,
    /// The peer may write.
    pub remote_write: bool,
    /// The peer may read.
    pub remote_read: bool,
    /// The peer may execute atomics.
    pub remote_atomic: bool,
}

impl Access {
    /// The peer may reach the memory in some way.
    pub fn is_remote(self) -> bool {
        self.remote_write || self.remote_read || self.remote_atomic
    }

    pub(super) fn flags(self) -> u32 {
        let bit = |on, flag: sys::ibv_access_flags| if on { flag.0 } else { 0 };
        // Remote writes and atomics need the local right too (man ibv_reg_mr).
        bit(self.local_write || self.remote_write || self.remote_atomic, sys::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE)
            | bit(self.remote_write, sys::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE)
            | bit(self.remote_read, sys::ibv_access_flags::IBV_ACCESS_REMOTE_READ)
            | bit(self.remote_atomic, sys::ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC)
    }
}

/// A memory region: a locked part of a buffer that the device may use. Its memory stays mapped for as long as any work request refers to it.
#[derive(Clone)]
pub struct Mr(pub(super) Arc<RawMr>);

impl Mr {
    /// Checks the limit of locked memory, locks the part of the buffer, and registers it.
    pub fn register(pd: &Pd, buffer: &Buffer, offset: usize, len: usize, access: Access) -> Result<Self, VerbsError> {
        MemlockBudget::read()?.check(len as u64)?;
        buffer.0.lock(offset, len).map_err(|source| VerbsError::Memory {
            what: "lock",
            bytes: len as u64,
            cause: "RLIMIT_MEMLOCK, or not enough memory",
            source,
        })?;
        let registered = RawMr::register(&pd.raw, &buffer.0, offset, len, access.flags());
        registered.map(|raw| Self(Arc::new(raw))).map_err(|source| VerbsError::RegisterMr {
            bytes: len as u64,
            address: buffer.0.address(offset),
            access: format!("{access:?}"),
            max_mr_bytes: pd.device.limits().max_mr_bytes,
            cause: create_cause(&source),
            source,
        })
    }

    /// Key for the local side of a work request.
    pub fn lkey(&self) -> u32 {
        self.0.lkey()
    }

    /// Key for the peer.
    pub fn rkey(&self) -> u32 {
        self.0.rkey()
    }

    /// Virtual address of its first byte, which is also the address that the peer names.
    pub fn address(&self) -> u64 {
        self.0.address()
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Copies bytes into the region.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), VerbsError> {
        self.check(offset, bytes.len())?;
        self.0.memory().write(self.0.offset() + offset, bytes).map_err(|_| self.outside(offset, bytes.len()))
    }

    /// Copies bytes out of the region. What a device writes at the same time may be seen half.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), VerbsError> {
        self.check(offset, bytes.len())?;
        self.0.memory().read(self.0.offset() + offset, bytes).map_err(|_| self.outside(offset, bytes.len()))
    }

    /// A byte of the region as an atomic, to watch what a peer writes.
    pub fn atomic_u8(&self, offset: usize) -> Result<&AtomicU8, VerbsError> {
        self.check(offset, 1)?;
        self.0.memory().atomic_u8(self.0.offset() + offset).ok_or_else(|| self.outside(offset, 1))
    }

    /// Eight bytes of the region as an atomic; the offset must be a multiple of 8.
    pub fn atomic_u64(&self, offset: usize) -> Result<&AtomicU64, VerbsError> {
        self.check(offset, 8)?;
        self.0.memory().atomic_u64(self.0.offset() + offset).ok_or_else(|| self.outside(offset, 8))
    }

    pub(super) fn check(&self, offset: usize, len: usize) -> Result<(), VerbsError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.bytes() => Ok(()),
            _ => Err(self.outside(offset, len)),
        }
    }

    pub(super) fn outside(&self, offset: usize, len: usize) -> VerbsError {
        VerbsError::Range { offset: offset as u64, len: len as u64, region_bytes: self.bytes() as u64 }
    }
}
