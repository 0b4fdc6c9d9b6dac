//! What takes the CPU from a tracked thread besides interrupts of devices, softirqs and other threads: the tick, and page faults.
//!
//! Each of these programs runs on real interference only, and records it only where `current` is tracked: a thread that spins
//! undisturbed causes no run at all.

use aya_ebpf::macros::{map, raw_tracepoint};
use aya_ebpf::maps::PerCpuArray;
use aya_ebpf::programs::RawTracePointContext;
use ebpf_probes::{Kind, PageFault, Program, Timer};

use super::hit::Hit;
use super::tracked;

/// A tracked thread that polls was preempted on this CPU: so many more switches between others are recorded, so that it is known who ran
/// meanwhile, and for how long. The limit ends it where the thread went on elsewhere.
#[map]
static FOLLOWED: PerCpuArray<u32> = PerCpuArray::with_max_entries(1, 0);
const FOLLOWED_MAX: u32 = 64;

/// Begins or ends following the switches of this CPU.
#[inline(always)]
pub fn follow(is_waiting: bool) {
    if let Some(left) = FOLLOWED.get_ptr_mut(0) {
        // SAFETY: the entry belongs to this CPU, and a switch is not interrupted by another one.
        unsafe { *left = if is_waiting { FOLLOWED_MAX } else { 0 } }
    }
}

/// Whether a switch between others is recorded.
#[inline(always)]
pub fn is_followed() -> bool {
    let Some(left) = FOLLOWED.get_ptr_mut(0) else { return false };
    // SAFETY: as above.
    unsafe {
        let is_followed = *left > 0;
        *left = if is_followed { *left - 1 } else { 0 };
        is_followed
    }
}

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
