//! Protection domain and memory region.
use super::memory::Mapping;
use super::{RawContext, check, report_leak, sys};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

/// A protection domain.
pub(in crate::verbs) struct RawPd {
    ptr: NonNull<sys::ibv_pd>,
    // Dropped after the PD.
    context: Arc<RawContext>,
}

// SAFETY: libibverbs allows its use from any thread.
unsafe impl Send for RawPd {}
// SAFETY: as above.
unsafe impl Sync for RawPd {}

impl RawPd {
    pub fn alloc(context: &Arc<RawContext>) -> io::Result<Self> {
        // SAFETY: the context is open.
        let ptr = unsafe { sys::ibv_alloc_pd(context.as_ptr()) };
        let ptr = NonNull::new(ptr).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { ptr, context: Arc::clone(context) })
    }

    pub fn as_ptr(&self) -> *mut sys::ibv_pd {
        self.ptr.as_ptr()
    }

    pub fn context(&self) -> &Arc<RawContext> {
        &self.context
    }
}

impl Drop for RawPd {
    fn drop(&mut self) {
        // SAFETY: allocated by us, freed once; MRs and QPs hold an `Arc` of it and are gone.
        report_leak("protection domain", check(unsafe { sys::ibv_dealloc_pd(self.ptr.as_ptr()) }));
    }
}

/// A memory region over a part of a [`Mapping`], which it keeps mapped.
pub(in crate::verbs) struct RawMr {
    ptr: NonNull<sys::ibv_mr>,
    // Dropped after the deregistration, in this order.
    _pd: Arc<RawPd>,
    memory: Arc<Mapping>,
    offset: usize,
    len: usize,
}

// SAFETY: libibverbs allows its use from any thread; keys and addresses never change.
unsafe impl Send for RawMr {}
// SAFETY: as above.
unsafe impl Sync for RawMr {}

impl RawMr {
    /// Registers `len` bytes of `memory` from `offset`. The range must lie inside the mapping.
    pub fn register(pd: &Arc<RawPd>, memory: &Arc<Mapping>, offset: usize, len: usize, access: u32) -> io::Result<Self> {
        if offset.checked_add(len).is_none_or(|end| end > memory.len()) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let addr = memory.address(offset) as *mut libc::c_void;
        let access = i32::try_from(access).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: the range is mapped, and stays so for the life of the region, which holds an `Arc` of the mapping. The mapping hands out
        // no references to plain memory, so that the device may write to it at any time. No optional access flag is used.
        let ptr = unsafe { sys::ibv_reg_mr(pd.as_ptr(), addr, len, access) };
        let ptr = NonNull::new(ptr).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { ptr, _pd: Arc::clone(pd), memory: Arc::clone(memory), offset, len })
    }

    pub fn lkey(&self) -> u32 {
        // SAFETY: the region is registered; the field is set once.
        unsafe { (*self.ptr.as_ptr()).lkey }
    }

    pub fn rkey(&self) -> u32 {
        // SAFETY: the region is registered; the field is set once.
        unsafe { (*self.ptr.as_ptr()).rkey }
    }

    pub fn address(&self) -> u64 {
        self.memory.address(self.offset)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn memory(&self) -> &Mapping {
        &self.memory
    }

    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl Drop for RawMr {
    fn drop(&mut self) {
        // SAFETY: registered by us, deregistered once, before the mapping it holds is dropped.
        report_leak("memory region", check(unsafe { sys::ibv_dereg_mr(self.ptr.as_ptr()) }));
    }
}
