//! Queue pair and the work requests that are posted to it.
use super::{RawCq, RawMr, RawPd, check, report_leak, sys};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

/// A queue pair with its two completion queues.
pub(in crate::verbs) struct RawQp {
    ptr: NonNull<sys::ibv_qp>,
    // Dropped after the QP.
    _send_cq: Arc<RawCq>,
    _recv_cq: Arc<RawCq>,
    _pd: Arc<RawPd>,
}

// SAFETY: libibverbs allows posts and modifications from any thread; it locks each queue.
unsafe impl Send for RawQp {}
// SAFETY: as above.
unsafe impl Sync for RawQp {}

impl RawQp {
    /// Creates a queue pair of this type; every WR that asks for it is signalled. `cap` holds what the device really gave afterwards.
    pub fn create(
        pd: &Arc<RawPd>,
        send_cq: &Arc<RawCq>,
        recv_cq: &Arc<RawCq>,
        qp_type: sys::ibv_qp_type::Type,
        cap: &mut sys::ibv_qp_cap,
    ) -> io::Result<Self> {
        if !Arc::ptr_eq(send_cq.context(), pd.context()) || !Arc::ptr_eq(recv_cq.context(), pd.context()) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mut init = sys::ibv_qp_init_attr {
            qp_context: std::ptr::null_mut(),
            send_cq: send_cq.as_ptr(),
            recv_cq: recv_cq.as_ptr(),
            srq: std::ptr::null_mut(),
            cap: *cap,
            qp_type,
            sq_sig_all: 0,
        };
        // SAFETY: PD and CQs exist, belong to one context and are kept alive by the QP; `init` is valid.
        let ptr = unsafe { sys::ibv_create_qp(pd.as_ptr(), &mut init) };
        let ptr = NonNull::new(ptr).ok_or_else(io::Error::last_os_error)?;
        *cap = init.cap;
        Ok(Self { ptr, _send_cq: Arc::clone(send_cq), _recv_cq: Arc::clone(recv_cq), _pd: Arc::clone(pd) })
    }

    pub fn number(&self) -> u32 {
        // SAFETY: the QP exists; the field is set once.
        unsafe { (*self.ptr.as_ptr()).qp_num }
    }

    pub fn modify(&self, attr: &mut sys::ibv_qp_attr, mask: sys::ibv_qp_attr_mask) -> io::Result<()> {
        // SAFETY: the QP exists and `attr` is valid for every bit of the mask.
        check(unsafe { sys::ibv_modify_qp(self.ptr.as_ptr(), attr, mask.0 as i32) })
    }

    pub fn query(&self, mask: sys::ibv_qp_attr_mask) -> io::Result<sys::ibv_qp_attr> {
        let mut attr = Self::zeroed_attr();
        let mut init = MaybeUninit::<sys::ibv_qp_init_attr>::zeroed();
        // SAFETY: the QP exists; both places are valid for what the call fills.
        check(unsafe { sys::ibv_query_qp(self.ptr.as_ptr(), &mut attr, mask.0 as i32, init.as_mut_ptr()) })?;
        Ok(attr)
    }

    pub fn zeroed_attr() -> sys::ibv_qp_attr {
        // SAFETY: the structure holds integers and arrays of integers only; all zeroes is valid.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }

    #[inline]
    pub fn post_send(&self, wr: &mut RawSendWr) -> io::Result<()> {
        wr.wr.sg_list = &mut wr.sge;
        let mut bad = std::ptr::null_mut();
        // SAFETY: the QP exists; the WR and its one SGE are valid for the call, which copies them. The SGE lies inside a registered region
        // (checked when it was set) that `wr` keeps alive at least until the call ends, which is all that inline data needs; the device
        // itself reaches memory only through keys of registered regions.
        check(unsafe { sys::ibv_post_send(self.ptr.as_ptr(), &mut wr.wr, &mut bad) })
    }

    #[inline]
    pub fn post_recv(&self, wr: &mut RawRecvWr) -> io::Result<()> {
        wr.wr.sg_list = &mut wr.sge;
        let mut bad = std::ptr::null_mut();
        // SAFETY: as for `post_send`; the device writes only to memory of a registered region.
        check(unsafe { sys::ibv_post_recv(self.ptr.as_ptr(), &mut wr.wr, &mut bad) })
    }
}

impl Drop for RawQp {
    fn drop(&mut self) {
        // SAFETY: created by us, destroyed once, before the queues and the PD that it holds.
        report_leak("queue pair", check(unsafe { sys::ibv_destroy_qp(self.ptr.as_ptr()) }));
    }
}

/// A send work request with one SGE, built once and posted many times.
pub(in crate::verbs) struct RawSendWr {
    wr: sys::ibv_send_wr,
    sge: sys::ibv_sge,
    mr: Arc<RawMr>,
}

// SAFETY: its pointers are null or set to its own SGE just before each post.
unsafe impl Send for RawSendWr {}

impl RawSendWr {
    /// Over nothing of the region yet; its operation is for the caller to set.
    pub fn new(mr: &Arc<RawMr>, flags: u32) -> Self {
        // SAFETY: integers, unions of integers and null pointers: all zeroes is valid.
        let mut wr: sys::ibv_send_wr = unsafe { std::mem::zeroed() };
        wr.num_sge = 1;
        wr.send_flags = flags;
        Self { wr, sge: sys::ibv_sge { addr: mr.address(), length: 0, lkey: mr.lkey() }, mr: Arc::clone(mr) }
    }

    /// An operation that names no memory of the peer.
    #[inline]
    pub fn set_message(&mut self, opcode: sys::ibv_wr_opcode::Type) {
        self.wr.opcode = opcode;
    }

    /// An operation on memory of the peer.
    #[inline]
    pub fn set_rdma(&mut self, opcode: sys::ibv_wr_opcode::Type, remote_addr: u64, rkey: u32) {
        self.wr.opcode = opcode;
        self.wr.wr.rdma = sys::rdma_t { remote_addr, rkey };
    }

    /// An atomic on 8 bytes of the peer.
    #[inline]
    pub fn set_atomic(&mut self, opcode: sys::ibv_wr_opcode::Type, remote_addr: u64, rkey: u32, compare_add: u64, swap: u64) {
        self.wr.opcode = opcode;
        self.wr.wr.atomic = sys::atomic_t { remote_addr, compare_add, swap, rkey };
    }

    #[inline]
    pub fn set_wr_id(&mut self, wr_id: u64) {
        self.wr.wr_id = wr_id;
    }

    /// Points the SGE at a part of the region; false (and unchanged) when it does not lie inside.
    #[inline]
    pub fn set_range(&mut self, offset: usize, len: u32) -> bool {
        set_range(&mut self.sge, &self.mr, offset, len)
    }
}

/// A receive work request with one SGE.
pub(in crate::verbs) struct RawRecvWr {
    wr: sys::ibv_recv_wr,
    sge: sys::ibv_sge,
    mr: Arc<RawMr>,
}

// SAFETY: its pointers are null or set to its own SGE just before each post.
unsafe impl Send for RawRecvWr {}

impl RawRecvWr {
    pub fn new(mr: &Arc<RawMr>) -> Self {
        let wr = sys::ibv_recv_wr { wr_id: 0, next: std::ptr::null_mut(), sg_list: std::ptr::null_mut(), num_sge: 1 };
        Self { wr, sge: sys::ibv_sge { addr: mr.address(), length: 0, lkey: mr.lkey() }, mr: Arc::clone(mr) }
    }

    #[inline]
    pub fn set_wr_id(&mut self, wr_id: u64) {
        self.wr.wr_id = wr_id;
    }

    #[inline]
    pub fn set_range(&mut self, offset: usize, len: u32) -> bool {
        set_range(&mut self.sge, &self.mr, offset, len)
    }
}

#[inline]
fn set_range(sge: &mut sys::ibv_sge, mr: &RawMr, offset: usize, len: u32) -> bool {
    if offset.checked_add(len as usize).is_none_or(|end| end > mr.len()) {
        return false;
    }
    sge.addr = mr.address() + offset as u64;
    sge.length = len;
    true
}
