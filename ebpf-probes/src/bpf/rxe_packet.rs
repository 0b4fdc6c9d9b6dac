//! Soft-RoCE packets that leave: the first kernel event that carries the wr_id.

use aya_ebpf::macros::kprobe;
use aya_ebpf::programs::ProbeContext;
use ebpf_probes::{Kind, Program, RxeXmit};

use super::globals::*;
use super::hit::{Hit, now_ns};
use super::read;
use super::rxe::{qpn_of, wanted};

/// RC answers (READ response, ACK, ATOMIC ACK): their packets have no work request.
const RC_ANSWERS: core::ops::RangeInclusive<u8> = 0x0d..=0x12;

/// `rxe_xmit_packet(struct rxe_qp *qp, struct rxe_pkt_info *pkt, struct sk_buff *skb)`.
#[kprobe]
pub fn rxe_xmit(ctx: ProbeContext) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(Program::RxeXmit) else { return 0 };
    let (Some(qp), Some(pkt)) = (ctx.arg::<u64>(0), ctx.arg::<u64>(1)) else { return 0 };
    let _ = sent(&hit, ts_ns, qp, pkt);
    0
}

/// `rxe_send(struct rxe_pkt_info *pkt, struct sk_buff *skb)` of kernels without `rxe_xmit_packet`.
#[kprobe]
pub fn rxe_send(ctx: ProbeContext) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(Program::RxeSend) else { return 0 };
    let Some(pkt) = ctx.arg::<u64>(0) else { return 0 };
    let _ = sent_by(&hit, ts_ns, pkt);
    0
}

/// `rxe_loopback(struct sk_buff *skb)` of kernels without `rxe_xmit_packet`; the packet lies in `skb->cb`.
#[kprobe]
pub fn rxe_loopback(ctx: ProbeContext) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(Program::RxeLoopback) else { return 0 };
    let (Some(skb), Some(cb)) = (ctx.arg::<u64>(0), known(&OFF_SKB_CB)) else { return 0 };
    let _ = sent_by(&hit, ts_ns, skb + u64::from(cb));
    0
}

#[inline(always)]
fn sent_by(hit: &Hit, ts_ns: u64, pkt: u64) -> Option<()> {
    sent(hit, ts_ns, read(pkt, known(&OFF_PKT_QP)?)?, pkt)
}

/// Records a request packet. `None` when a field could not be read: the record is left out, the hit is counted.
#[inline(always)]
fn sent(hit: &Hit, ts_ns: u64, qp: u64, pkt: u64) -> Option<()> {
    let opcode = read::<u8>(pkt, known(&OFF_PKT_OPCODE)?)?;
    if RC_ANSWERS.contains(&opcode) {
        return None;
    }
    let qpn = qpn_of(qp);
    if !wanted(qpn) {
        return None;
    }
    let wqe = read::<u64>(pkt, known(&OFF_PKT_WQE)?)?;
    let wr_id = read(wqe, known(&OFF_WQE_WR_ID)?)?;
    let psn = read(pkt, known(&OFF_PKT_PSN)?)?;
    hit.emit_at(ts_ns, Kind::RxeXmit, RxeXmit { qp, wr_id, qpn, psn, opcode: u32::from(opcode), reserved: 0 });
    Some(())
}
