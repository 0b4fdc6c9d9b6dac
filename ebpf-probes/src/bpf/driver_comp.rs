//! Drivers that name the CQ just before its handler runs, and the one function that only polling through the kernel calls.

use aya_ebpf::macros::kprobe;
use aya_ebpf::programs::ProbeContext;
use ebpf_probes::config::NONE;
use ebpf_probes::{DriverCq, Kind, Program};

use super::globals::{OFF_BNXT_CQ_ID, known};
use super::hit::{Hit, now_ns};
use super::read;

/// `bnxt_re_cqn_handler(struct bnxt_qplib_nq *nq, struct bnxt_qplib_cq *handle)`.
#[kprobe]
pub fn bnxt_comp(ctx: ProbeContext) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(Program::BnxtComp) else { return 0 };
    let Some(driver_cq) = ctx.arg::<u64>(1) else { return 0 };
    let cqn = known(&OFF_BNXT_CQ_ID).and_then(|offset| read(driver_cq, offset)).unwrap_or(NONE);
    hit.emit_at(ts_ns, Kind::DriverComp, DriverCq { driver_cq, cqn, irq: NONE });
    0
}

/// `mana_ib_cq_handler(void *ctx, struct gdma_queue *gdma_cq)`: argument 0 is the driver's CQ, which begins with its `ib_cq`.
#[kprobe]
pub fn mana_comp(ctx: ProbeContext) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(Program::ManaComp) else { return 0 };
    let Some(driver_cq) = ctx.arg::<u64>(0) else { return 0 };
    hit.emit_at(ts_ns, Kind::DriverComp, DriverCq { driver_cq, cqn: NONE, irq: NONE });
    0
}

/// `c4iw_ev_handler(struct c4iw_dev *dev, u32 qid)`.
#[kprobe]
pub fn cxgb4_comp(ctx: ProbeContext) -> u32 {
    by_number(&ctx, Program::Cxgb4Comp)
}

/// `hns_roce_cq_completion(struct hns_roce_dev *hr_dev, u32 cqn)`.
#[kprobe]
pub fn hns_comp(ctx: ProbeContext) -> u32 {
    by_number(&ctx, Program::HnsComp)
}

/// Records a CQ of which the function knows the device's number only.
#[inline(always)]
fn by_number(ctx: &ProbeContext, program: Program) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(program) else { return 0 };
    let Some(cqn) = ctx.arg::<u32>(1) else { return 0 };
    hit.emit_at(ts_ns, Kind::DriverComp, DriverCq { driver_cq: 0, cqn, irq: NONE });
    0
}

/// `ib_uverbs_poll_cq(struct uverbs_attr_bundle *attrs)`: one run per poll of a provider that polls through the kernel; only counted.
#[kprobe]
pub fn uverbs_poll(_ctx: ProbeContext) -> u32 {
    let _ = Hit::of(Program::UverbsPoll);
    0
}
