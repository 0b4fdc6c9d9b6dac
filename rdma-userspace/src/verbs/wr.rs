//! Work requests that are built once and posted many times.
//!
//! Contract of a post: the device may use the memory of the SGE until the completion of the WR is polled. Until then the program may read
//! it, but what it writes may or may not be what is sent. A WR keeps its region registered and mapped, so that a completion that never
//! comes cannot turn into a write to foreign memory.
use super::error::VerbsError;
use super::ffi::{RawRecvWr, RawSendWr, SendKind, sys};
use super::mr::Mr;

/// Operation of a send work request, with the peer's memory where it needs some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOp {
    /// Message into the peer's next receive.
    Send,
    /// RDMA WRITE to the peer's memory.
    Write {
        /// Peer's virtual address.
        remote_address: u64,
        /// Peer's key.
        rkey: u32,
    },
    /// RDMA READ of the peer's memory.
    Read {
        /// Peer's virtual address.
        remote_address: u64,
        /// Peer's key.
        rkey: u32,
    },
    /// Adds to 8 bytes of the peer's memory; the old value arrives here.
    FetchAdd {
        /// Peer's virtual address, a multiple of 8.
        remote_address: u64,
        /// Peer's key.
        rkey: u32,
        /// What is added.
        add: u64,
    },
    /// Replaces 8 bytes of the peer's memory if they hold `compare`; the old value arrives here.
    CmpSwap {
        /// Peer's virtual address, a multiple of 8.
        remote_address: u64,
        /// Peer's key.
        rkey: u32,
        /// The expected value.
        compare: u64,
        /// The new value.
        swap: u64,
    },
}

impl SendOp {
    #[inline]
    fn kind(self) -> SendKind {
        match self {
            Self::Send => SendKind::Send,
            Self::Write { remote_address, rkey } => SendKind::Write { remote_address, rkey },
            Self::Read { remote_address, rkey } => SendKind::Read { remote_address, rkey },
            Self::FetchAdd { remote_address, rkey, add } => SendKind::FetchAdd { remote_address, rkey, add },
            Self::CmpSwap { remote_address, rkey, compare, swap } => SendKind::CmpSwap { remote_address, rkey, compare, swap },
        }
    }
}

/// A send work request with one SGE. Always signalled.
pub struct SendWr {
    pub(super) raw: RawSendWr,
    pub(super) wr_id: u64,
    mr: Mr,
}

impl SendWr {
    /// A WR over `len` bytes at `offset` of a region; `inline` sends by copy (the QP must have room for it).
    pub fn new(mr: &Mr, op: SendOp, offset: usize, len: u32, inline: bool) -> Result<Self, VerbsError> {
        let inline = if inline { sys::ibv_send_flags::IBV_SEND_INLINE.0 } else { 0 };
        let raw = RawSendWr::new(&mr.0, op.kind(), sys::ibv_send_flags::IBV_SEND_SIGNALED.0 | inline);
        let mut this = Self { raw, wr_id: 0, mr: mr.clone() };
        this.set_range(offset, len)?;
        Ok(this)
    }

    /// The wr_id of the next post.
    #[inline]
    pub fn set_wr_id(&mut self, wr_id: u64) {
        self.wr_id = wr_id;
        self.raw.set_wr_id(wr_id);
    }

    /// Changes the operation.
    #[inline]
    pub fn set_op(&mut self, op: SendOp) {
        self.raw.set_kind(op.kind());
    }

    /// Moves the SGE within the region.
    #[inline]
    pub fn set_range(&mut self, offset: usize, len: u32) -> Result<(), VerbsError> {
        if self.raw.set_range(offset, len) { Ok(()) } else { Err(self.mr.outside(offset, len as usize)) }
    }
}

/// A receive work request with one SGE.
pub struct RecvWr {
    pub(super) raw: RawRecvWr,
    pub(super) wr_id: u64,
    mr: Mr,
}

impl RecvWr {
    /// A receive into `len` bytes at `offset` of a region.
    pub fn new(mr: &Mr, offset: usize, len: u32) -> Result<Self, VerbsError> {
        let mut this = Self { raw: RawRecvWr::new(&mr.0), wr_id: 0, mr: mr.clone() };
        this.set_range(offset, len)?;
        Ok(this)
    }

    /// The wr_id of the next post.
    #[inline]
    pub fn set_wr_id(&mut self, wr_id: u64) {
        self.wr_id = wr_id;
        self.raw.set_wr_id(wr_id);
    }

    /// Moves the SGE within the region.
    #[inline]
    pub fn set_range(&mut self, offset: usize, len: u32) -> Result<(), VerbsError> {
        if self.raw.set_range(offset, len) { Ok(()) } else { Err(self.mr.outside(offset, len as usize)) }
    }
}
