//! Idle exit, hard interrupts, softirqs, tasklets and NAPI polls.
//!
//! Interrupts and softirqs that run in a tracked thread are all recorded, begin and end: they take its CPU.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use ebpf_probes::config::NONE;
use ebpf_probes::{CpuIdle, Irq, Kind, Napi, Program, Softirq, Tasklet};

use super::globals::*;
use super::hit::Hit;
use super::tracked;

const VEC_NET_RX: u32 = 3;
const VEC_TASKLET: u32 = 6;
/// `PWR_EVENT_EXIT`: the state that says "left idle".
const IDLE_EXIT: u32 = u32::MAX;

/// `cpu_idle(unsigned int state, unsigned int cpu)`: exits only.
#[raw_tracepoint(tracepoint = "cpu_idle")]
pub fn cpu_idle(ctx: RawTracePointContext) -> i32 {
    if ctx.arg::<u32>(0) == IDLE_EXIT
        && let Some(hit) = Hit::of(Program::CpuIdle)
    {
        hit.emit(Kind::CpuIdleExit, CpuIdle { state: NONE, reserved: 0 });
    }
    0
}

/// `irq_handler_entry(int irq, struct irqaction *action)`.
#[raw_tracepoint(tracepoint = "irq_handler_entry")]
pub fn irq_entry(ctx: RawTracePointContext) -> i32 {
    irq(&ctx, Program::IrqEntry, Kind::IrqEntry, true)
}

/// `irq_handler_exit(int irq, struct irqaction *action, int ret)`.
#[raw_tracepoint(tracepoint = "irq_handler_exit")]
pub fn irq_exit(ctx: RawTracePointContext) -> i32 {
    irq(&ctx, Program::IrqExit, Kind::IrqExit, EVERY_END.load() != 0)
}

#[inline(always)]
fn irq(ctx: &RawTracePointContext, program: Program, kind: Kind, everywhere: bool) -> i32 {
    let Some(hit) = Hit::of(program) else { return 0 };
    let irq = ctx.arg::<u32>(0);
    if (everywhere && (IRQ_FILTER.load() == 0 || tracked::irq(irq))) || tracked::current() {
        hit.emit(kind, Irq { irq, reserved: 0 });
    }
    0
}

/// `softirq_entry(unsigned int vec)`: the vectors that lead to completions, and all that take the CPU of a tracked thread.
#[raw_tracepoint(tracepoint = "softirq_entry")]
pub fn softirq_entry(ctx: RawTracePointContext) -> i32 {
    let vec = ctx.arg::<u32>(0);
    let everywhere = vec == VEC_NET_RX || vec == VEC_TASKLET && TASKLET_SOFTIRQS.load() != 0;
    if (everywhere || takes_the_cpu(vec))
        && let Some(hit) = Hit::of(Program::SoftirqEntry)
    {
        hit.emit(Kind::SoftirqEntry, Softirq { vec, reserved: 0 });
    }
    0
}

/// `softirq_exit(unsigned int vec)`.
#[raw_tracepoint(tracepoint = "softirq_exit")]
pub fn softirq_exit(ctx: RawTracePointContext) -> i32 {
    let vec = ctx.arg::<u32>(0);
    let everywhere = EVERY_END.load() != 0 && (vec == VEC_NET_RX || vec == VEC_TASKLET);
    if (everywhere || takes_the_cpu(vec))
        && let Some(hit) = Hit::of(Program::SoftirqExit)
    {
        hit.emit(Kind::SoftirqExit, Softirq { vec, reserved: 0 });
    }
    0
}

/// Whether the softirq takes the CPU of a tracked thread. The tasklets that a waiting thread runs itself are its own completion path
/// (soft-RoCE on one host up to 6.1, in every sample).
#[inline(always)]
fn takes_the_cpu(vec: u32) -> bool {
    if vec == VEC_TASKLET { tracked::current_polls() } else { tracked::current() }
}

/// `tasklet_entry(struct tasklet_struct *t, void *func)`.
#[raw_tracepoint(tracepoint = "tasklet_entry")]
pub fn tasklet_entry(ctx: RawTracePointContext) -> i32 {
    let Some(hit) = Hit::of(Program::TaskletEntry) else { return 0 };
    let func = ctx.arg::<u64>(1);
    if TASKLET_FILTER.load() == 0 || leads_to_a_handler(func) {
        hit.emit(Kind::TaskletEntry, Tasklet { tasklet: ctx.arg(0), func });
    }
    0
}

#[inline(always)]
fn leads_to_a_handler(func: u64) -> bool {
    let first = func == TASKLET_FUNC_0.load() || func == TASKLET_FUNC_1.load() || func == TASKLET_FUNC_2.load();
    let more = func == TASKLET_FUNC_3.load() || func == TASKLET_FUNC_4.load() || func == TASKLET_FUNC_5.load();
    first || more || func == TASKLET_FUNC_6.load() || func == TASKLET_FUNC_7.load()
}

/// `napi_poll(struct napi_struct *napi, int work, int budget)`, at the end of a poll.
#[raw_tracepoint(tracepoint = "napi_poll")]
pub fn napi_poll(ctx: RawTracePointContext) -> i32 {
    if let Some(hit) = Hit::of(Program::NapiPoll) {
        hit.emit(Kind::NapiPoll, Napi { work: ctx.arg(1), budget: ctx.arg(2) });
    }
    0
}
