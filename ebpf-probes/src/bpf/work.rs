//! Work items of drivers that complete through a workqueue.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use ebpf_probes::{Kind, Program, Work};

use super::globals::*;
use super::hit::{Hit, now_ns};
use super::{field, raw_argument};

/// `workqueue_queue_work(req_cpu, struct pool_workqueue *pwq, struct work_struct *work)`.
#[raw_tracepoint(tracepoint = "workqueue_queue_work")]
pub fn work_queue(ctx: RawTracePointContext) -> i32 {
    work(raw_argument(&ctx, 2), Program::WorkQueue, Kind::WorkQueue)
}

/// `workqueue_execute_start(struct work_struct *work)`.
#[raw_tracepoint(tracepoint = "workqueue_execute_start")]
pub fn work_start(ctx: RawTracePointContext) -> i32 {
    work(raw_argument(&ctx, 0), Program::WorkStart, Kind::WorkStart)
}

#[inline(always)]
fn work(work: u64, program: Program, kind: Kind) -> i32 {
    let Some(hit) = Hit::of(program) else { return 0 };
    let Some(offset) = known(&OFF_WORK_FUNC) else { return 0 };
    let Some(func) = field::<u64>(work, offset) else { return 0 };
    if WORK_FILTER.load() == 0 || leads_to_a_completion(func) {
        hit.emit_at(now_ns(), kind, Work { work, func });
    }
    0
}

#[inline(always)]
fn leads_to_a_completion(func: u64) -> bool {
    func == WORK_FUNC_0.load() || func == WORK_FUNC_1.load() || func == WORK_FUNC_2.load() || func == WORK_FUNC_3.load()
}
