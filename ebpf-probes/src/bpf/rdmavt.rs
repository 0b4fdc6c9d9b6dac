//! rdmavt (hfi1, qib): the CQE is posted; the wr_id is in the kernel's work completion.

use aya_ebpf::macros::kprobe;
use aya_ebpf::programs::ProbeContext;
use ebpf_probes::config::NONE;
use ebpf_probes::{CqPost, Kind, Program};

use super::globals::*;
use super::hit::{Hit, now_ns};
use super::rxe::is_user_cq;
use super::{read, tracked};

/// The head of `struct ib_wc`, the same since 5.4.
#[repr(C)]
#[derive(Clone, Copy)]
struct WorkCompletion {
    wr_id: u64,
    status: u32,
    opcode: u32,
    vendor_err: u32,
    byte_len: u32,
}

/// `rvt_cq_enter(struct rvt_cq *cq, struct ib_wc *entry, bool solicited)`: just before the CQE becomes visible.
#[kprobe]
pub fn rvt_cq_enter(ctx: ProbeContext) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(Program::RvtCqEnter) else { return 0 };
    let (Some(rvt_cq), Some(entry)) = (ctx.arg::<u64>(0), ctx.arg::<u64>(1)) else { return 0 };
    let cq = rvt_cq + u64::from(known(&OFF_RVT_CQ_IBCQ).unwrap_or(0));
    let qp = known(&OFF_WC_QP).and_then(|offset| read::<u64>(entry, offset));
    let qpn = qp.zip(known(&OFF_IB_QP_NUM)).and_then(|(qp, offset)| read(qp, offset)).unwrap_or(NONE);
    // A kernel CQ's wr_id is a pointer: never one of ours.
    let is_wanted = is_user_cq(cq) && (TRACE_ALL_QPS.load() != 0 || qpn == NONE || tracked::qpn(qpn));
    if is_wanted && let Some(wc) = read::<WorkCompletion>(entry, 0) {
        let WorkCompletion { wr_id, status, opcode, byte_len, .. } = wc;
        hit.emit_at(ts_ns, Kind::CqPost, CqPost { cq, wr_id, qpn, status, opcode, byte_len });
    }
    0
}
