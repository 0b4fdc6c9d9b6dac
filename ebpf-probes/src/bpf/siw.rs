//! Soft-iWARP: the CQE is posted; the wr_id is the first word of the queue element.

use aya_ebpf::Global;
use aya_ebpf::macros::kprobe;
use aya_ebpf::programs::ProbeContext;
use ebpf_probes::config::NONE;
use ebpf_probes::{CqPost, Kind, Program};

use super::globals::*;
use super::hit::{Hit, now_ns};
use super::read;
use super::rxe::wanted;

/// `IB_WC_RECV`.
const OPCODE_RECV: u32 = 128;
/// `IB_WC_WR_FLUSH_ERR` and `IB_WC_GENERAL_ERR`.
const FLUSHED: u32 = 5;
const GENERAL: u32 = 21;

/// `siw_sqe_complete(struct siw_qp *qp, struct siw_sqe *sqe, u32 bytes, enum siw_wc_status status)`.
#[kprobe]
pub fn siw_send_done(ctx: ProbeContext) -> u32 {
    let status = ctx.arg::<u32>(3);
    done(&ctx, Program::SiwSendDone, &OFF_SIW_QP_SCQ, NONE, status)
}

/// `siw_rqe_complete(struct siw_qp *qp, struct siw_rqe *rqe, u32 bytes, u32 inval_stag, enum siw_wc_status status)`.
#[kprobe]
pub fn siw_recv_done(ctx: ProbeContext) -> u32 {
    let status = ctx.arg::<u32>(4);
    done(&ctx, Program::SiwRecvDone, &OFF_SIW_QP_RCQ, OPCODE_RECV, status)
}

#[inline(always)]
fn done(ctx: &ProbeContext, program: Program, cq_offset: &Global<u32>, opcode: u32, status: Option<u32>) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(program) else { return 0 };
    let (Some(qp), Some(element), Some(byte_len), Some(status)) = (ctx.arg::<u64>(0), ctx.arg::<u64>(1), ctx.arg::<u32>(2), status) else {
        return 0;
    };
    let offsets = known(&OFF_SIW_QP_IBQP).zip(known(&OFF_IB_QP_NUM));
    let qpn = offsets.and_then(|(ibqp, num)| read(qp, ibqp + num)).unwrap_or(NONE);
    let siw_cq = known(cq_offset).and_then(|offset| read::<u64>(qp, offset)).unwrap_or(0);
    // A queue pair without a CQ posts nothing.
    if siw_cq == 0 || !wanted(qpn) {
        return 0;
    }
    let Some(wr_id) = read(element, 0) else { return 0 };
    let cq = siw_cq + u64::from(known(&OFF_SIW_CQ_IBCQ).unwrap_or(0));
    hit.emit_at(ts_ns, Kind::CqPost, CqPost { cq, wr_id, qpn, status: verbs_status(status), opcode, byte_len });
    0
}

/// The driver has its own numbers; the ones that are not told apart become a general error.
#[inline(always)]
fn verbs_status(status: u32) -> u32 {
    match status {
        0 => 0,
        4 => FLUSHED,
        _ => GENERAL,
    }
}
