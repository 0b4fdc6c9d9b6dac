//! Work requests that are built once and posted many times.
//!
//! Contract of a post: the device may use the memory of the SGE until the completion of the WR is polled. Until then the program may read
//! it, but what it writes may or may not be what is sent. A WR keeps its region registered and mapped, so that a completion that never
//! comes cannot turn into a write to foreign memory.
use super::error::VerbsError;
use super::ffi::{RawRecvWr, RawSendWr, sys};
use super::mr::Mr;

/// Memory of the peer that a work request reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteMemory {
    /// Peer's virtual address.
    pub address: u64,
    /// Peer's key.
    pub rkey: u32,
}

/// Operation of a send work request, with the peer's memory where it needs some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOp {
    /// Message into the peer's next receive.
    Send,
    /// RDMA WRITE to the peer's memory.
    Write(RemoteMemory),
    /// RDMA READ of the peer's memory.
    Read(RemoteMemory),
    /// Adds to 8 bytes of the peer's memory; the old value arrives here.
    FetchAdd {
        /// Where; the address is a multiple of 8.
        at: RemoteMemory,
        /// What is added.
        add: u64,
    },
    /// Replaces 8 bytes of the peer's memory if they hold `compare`; the old value arrives here.
    CmpSwap {
        /// Where; the address is a multiple of 8.
        at: RemoteMemory,
        /// The expected value.
        compare: u64,
        /// The new value.
        swap: u64,
    },
}

impl SendOp {
    #[inline]
    fn set(self, raw: &mut RawSendWr) {
        use sys::ibv_wr_opcode as opcode;
        match self {
            Self::Send => raw.set_message(opcode::IBV_WR_SEND),
            Self::Write(at) => raw.set_rdma(opcode::IBV_WR_RDMA_WRITE, at.address, at.rkey),
            Self::Read(at) => raw.set_rdma(opcode::IBV_WR_RDMA_READ, at.address, at.rkey),
            Self::FetchAdd { at, add } => raw.set_atomic(opcode::IBV_WR_ATOMIC_FETCH_AND_ADD, at.address, at.rkey, add, 0),
            Self::CmpSwap { at, compare, swap } => raw.set_atomic(opcode::IBV_WR_ATOMIC_CMP_AND_SWP, at.address, at.rkey, compare, swap),
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
        let mut raw = RawSendWr::new(&mr.0, sys::ibv_send_flags::IBV_SEND_SIGNALED.0 | inline);
        op.set(&mut raw);
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
        op.set(&mut self.raw);
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
