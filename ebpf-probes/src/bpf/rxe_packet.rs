//! Soft-RoCE packets that leave: the first kernel event that carries the wr_id.

use aya_ebpf::macros::kprobe;
use aya_ebpf::programs::ProbeContext;
use ebpf_probes::{Kind, Program, RxeXmit};

use super::globals::*;
use super::hit::Hit;
use super::rxe::{qpn_of, wanted};
use super::{argument, field};

/// RC answers (READ response, ACK, ATOMIC ACK): their packets have no work request.
const RC_ANSWERS: core::ops::RangeInclusive<u8> = 0x0d..=0x12;

/// `rxe_xmit_packet(struct rxe_qp *qp, struct rxe_pkt_info *pkt, struct sk_buff *skb)`.
#[kprobe]
pub fn rxe_xmit(ctx: ProbeContext) -> u32 {
    let Some(hit) = Hit::of(Program::RxeXmit) else { return 0 };
    let (Some(qp), Some(pkt)) = (argument(&ctx, 0), argument(&ctx, 1)) else { return 0 };
    let _ = sent(&hit, qp, pkt);
    0
}

/// `rxe_send(struct rxe_pkt_info *pkt, struct sk_buff *skb)` of kernels without `rxe_xmit_packet`.
#[kprobe]
pub fn rxe_send(ctx: ProbeContext) -> u32 {
    let Some(hit) = Hit::of(Program::RxeSend) else { return 0 };
    let Some(pkt) = argument(&ctx, 0) else { return 0 };
    let _ = sent_by(&hit, pkt);
    0
}

/// `rxe_loopback(struct sk_buff *skb)` of kernels without `rxe_xmit_packet`; the packet lies in `skb->cb`.
#[kprobe]
pub fn rxe_loopback(ctx: ProbeContext) -> u32 {
    let Some(hit) = Hit::of(Program::RxeLoopback) else { return 0 };
    let (Some(skb), Some(cb)) = (argument(&ctx, 0), known(&OFF_SKB_CB)) else { return 0 };
    let _ = sent_by(&hit, skb + u64::from(cb));
    0
}

#[inline(always)]
fn sent_by(hit: &Hit, pkt: u64) -> Option<()> {
    sent(hit, field(pkt, known(&OFF_PKT_QP)?)?, pkt)
}

/// Records a request packet. `None` when a field could not be read: the record is left out, the hit is counted.
#[inline(always)]
fn sent(hit: &Hit, qp: u64, pkt: u64) -> Option<()> {
    let opcode = field::<u8>(pkt, known(&OFF_PKT_OPCODE)?)?;
    if RC_ANSWERS.contains(&opcode) {
        return None;
    }
    let qpn = qpn_of(qp);
    if !wanted(qpn) {
        return None;
    }
    let wqe = field::<u64>(pkt, known(&OFF_PKT_WQE)?)?;
    let wr_id = field(wqe, known(&OFF_WQE_WR_ID)?)?;
    let psn = field(pkt, known(&OFF_PKT_PSN)?)?;
    hit.emit(Kind::RxeXmit, RxeXmit { qp, wr_id, qpn, psn, opcode: u32::from(opcode), reserved: 0 });
    Some(())
}
