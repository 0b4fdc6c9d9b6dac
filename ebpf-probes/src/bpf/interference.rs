//! What takes the CPU from a tracked thread besides interrupts of devices, softirqs and other threads: the tick, and page faults.
//!
//! Each of these programs runs on real interference only, and records it only where `current` is tracked: a thread that spins
//! undisturbed causes no run at all.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use ebpf_probes::{Kind, PageFault, Program, Timer};

use super::hit::Hit;
use super::tracked;

/// `page_fault_user(unsigned long address, struct pt_regs *regs, unsigned long error_code)`: a fault in user mode.
#[raw_tracepoint(tracepoint = "page_fault_user")]
pub fn page_fault_user(ctx: RawTracePointContext) -> i32 {
    fault(&ctx, Program::PageFaultUser)
}

/// `page_fault_kernel(...)`, as above: a fault in the kernel, such as in a copy from user memory.
#[raw_tracepoint(tracepoint = "page_fault_kernel")]
pub fn page_fault_kernel(ctx: RawTracePointContext) -> i32 {
    fault(&ctx, Program::PageFaultKernel)
}

#[inline(always)]
fn fault(ctx: &RawTracePointContext, program: Program) -> i32 {
    if tracked::current()
        && let Some(hit) = Hit::of(program)
    {
        hit.emit(Kind::PageFault, PageFault { address: ctx.arg(0), error_code: ctx.arg(2), reserved: 0 });
    }
    0
}

/// `local_timer_entry(int vector)`.
#[raw_tracepoint(tracepoint = "local_timer_entry")]
pub fn timer_entry(ctx: RawTracePointContext) -> i32 {
    timer(&ctx, Program::TimerEntry, Kind::TimerEntry)
}

/// `local_timer_exit(int vector)`.
#[raw_tracepoint(tracepoint = "local_timer_exit")]
pub fn timer_exit(ctx: RawTracePointContext) -> i32 {
    timer(&ctx, Program::TimerExit, Kind::TimerExit)
}

#[inline(always)]
fn timer(ctx: &RawTracePointContext, program: Program, kind: Kind) -> i32 {
    if tracked::current()
        && let Some(hit) = Hit::of(program)
    {
        hit.emit(kind, Timer { vector: ctx.arg(0), reserved: 0 });
    }
    0
}
