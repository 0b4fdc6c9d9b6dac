//! Soft-RoCE: the doorbell, received packets, tasks and the posted CQE. Packets that leave are in `rxe_packet`.
//!
//! On one host half of the hits belong to the peer's queue pair: the clock is read after the filter.

use aya_ebpf::macros::kprobe;
use aya_ebpf::programs::ProbeContext;
use ebpf_probes::config::NONE;
use ebpf_probes::{CqPost, Kind, Program, RxePost, RxeRcv, RxeTask, path};

use super::globals::*;
use super::hit::Hit;
use super::{argument, field, read, tracked};

/// Queue pair number of an `rxe_qp`; [`NONE`] where the offsets are not known.
#[inline(always)]
pub fn qpn_of(qp: u64) -> u32 {
    let offsets = known(&OFF_RXE_QP_IBQP).zip(known(&OFF_IB_QP_NUM));
    offsets.and_then(|(ibqp, num)| field(qp, ibqp + num)).unwrap_or(NONE)
}

/// Whether the queue pair's events are wanted. One whose number is not known is.
#[inline(always)]
pub fn wanted(qpn: u32) -> bool {
    TRACE_ALL_QPS.load() != 0 || qpn == NONE || tracked::qpn(qpn)
}

/// `rxe_post_send(struct ib_qp *ibqp, ...)`.
#[kprobe]
pub fn rxe_post(ctx: ProbeContext) -> u32 {
    let Some(hit) = Hit::of(Program::RxePost) else { return 0 };
    let Some(ibqp) = argument(&ctx, 0) else { return 0 };
    let qpn = known(&OFF_IB_QP_NUM).and_then(|offset| field(ibqp, offset)).unwrap_or(NONE);
    if wanted(qpn) {
        let qp = ibqp - u64::from(known(&OFF_RXE_QP_IBQP).unwrap_or(0));
        hit.emit(Kind::RxePost, RxePost { qp, qpn, reserved: 0 });
    }
    0
}

/// `rxe_comp_queue_pkt(struct rxe_qp *qp, struct sk_buff *skb)`: an answer arrived.
#[kprobe]
pub fn rxe_comp_queue(ctx: ProbeContext) -> u32 {
    received(&ctx, Program::RxeCompQueue, path::COMPLETER)
}

/// `rxe_resp_queue_pkt(struct rxe_qp *qp, struct sk_buff *skb)`: a request arrived.
#[kprobe]
pub fn rxe_resp_queue(ctx: ProbeContext) -> u32 {
    received(&ctx, Program::RxeRespQueue, path::RESPONDER)
}

#[inline(always)]
fn received(ctx: &ProbeContext, program: Program, path: u32) -> u32 {
    let Some(hit) = Hit::of(program) else { return 0 };
    let (Some(qp), Some(skb)) = (argument(ctx, 0), argument(ctx, 1)) else { return 0 };
    let qpn = qpn_of(qp);
    if wanted(qpn) {
        hit.emit(Kind::RxeRcv, RxeRcv { qp, skb, qpn, path });
    }
    0
}

/// `rxe_requester(qp)`.
#[kprobe]
pub fn rxe_requester(ctx: ProbeContext) -> u32 {
    task(&ctx, Program::RxeRequester, path::REQUESTER)
}

/// `rxe_completer(qp)`.
#[kprobe]
pub fn rxe_completer(ctx: ProbeContext) -> u32 {
    task(&ctx, Program::RxeCompleter, path::COMPLETER)
}

/// `rxe_responder(qp)`.
#[kprobe]
pub fn rxe_responder(ctx: ProbeContext) -> u32 {
    task(&ctx, Program::RxeResponder, path::RESPONDER)
}

/// `rxe_sender(qp)`: requester and completer merged.
#[kprobe]
pub fn rxe_sender(ctx: ProbeContext) -> u32 {
    task(&ctx, Program::RxeSender, path::SENDER)
}

/// `rxe_receiver(qp)`: the responder's work.
#[kprobe]
pub fn rxe_receiver(ctx: ProbeContext) -> u32 {
    task(&ctx, Program::RxeReceiver, path::RECEIVER)
}

#[inline(always)]
fn task(ctx: &ProbeContext, program: Program, path: u32) -> u32 {
    let Some(hit) = Hit::of(program) else { return 0 };
    let Some(qp) = argument(ctx, 0) else { return 0 };
    let qpn = qpn_of(qp);
    if wanted(qpn) {
        hit.emit(Kind::RxeTask, RxeTask { qp, qpn, path });
    }
    0
}

/// The head of `struct ib_uverbs_wc` (UAPI, fixed), which is what an `rxe_cqe` of a user CQ holds.
#[repr(C)]
#[derive(Clone, Copy)]
struct UverbsWc {
    wr_id: u64,
    status: u32,
    opcode: u32,
    vendor_err: u32,
    byte_len: u32,
    imm_data: u32,
    qp_num: u32,
}

/// `rxe_cq_post(struct rxe_cq *cq, struct rxe_cqe *cqe, int solicited)`: just before the CQE becomes visible.
#[kprobe]
pub fn rxe_cq_post(ctx: ProbeContext) -> u32 {
    let Some(hit) = Hit::of(Program::RxeCqPost) else { return 0 };
    let (Some(rxe_cq), Some(cqe)) = (argument(&ctx, 0), argument(&ctx, 1)) else { return 0 };
    let cq = rxe_cq + u64::from(known(&OFF_RXE_CQ_IBCQ).unwrap_or(0));
    let Some(wc) = read::<UverbsWc>(cqe, 0) else { return 0 };
    // The CQE of a kernel CQ has another layout: only a filter by number or the user object tells them apart.
    let is_wanted = if TRACE_ALL_QPS.load() != 0 { is_user_cq(cq) } else { tracked::qpn(wc.qp_num) };
    if is_wanted {
        let UverbsWc { wr_id, status, opcode, byte_len, qp_num, .. } = wc;
        hit.emit(Kind::CqPost, CqPost { cq, wr_id, qpn: qp_num, status, opcode, byte_len });
    }
    0
}

/// Whether the `ib_cq` belongs to user space.
#[inline(always)]
pub fn is_user_cq(cq: u64) -> bool {
    known(&OFF_CQ_UOBJECT).and_then(|offset| field::<u64>(cq, offset)).is_some_and(|uobject| uobject != 0)
}
