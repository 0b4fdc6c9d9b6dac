//! System calls of one thread, counted by number. Attached in a round of its own only: while it is, every system call of the machine
//! pays for it.

use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::macros::{map, raw_tracepoint};
use aya_ebpf::maps::{Array, PerCpuArray};
use aya_ebpf::programs::RawTracePointContext;
use ebpf_probes::Program;
use ebpf_probes::config::SYSCALLS_MAX;

use super::hit::Hit;

/// Calls by number; the last place counts all numbers behind it.
#[map]
static SYSCALLS: PerCpuArray<u64> = PerCpuArray::with_max_entries(SYSCALLS_MAX, 0);
/// The thread that is counted.
#[map]
static SYSCALL_THREAD: Array<u32> = Array::with_max_entries(1, 0);

/// `sys_enter(struct pt_regs *regs, long id)`.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub fn syscalls(ctx: RawTracePointContext) -> i32 {
    let Some(_hit) = Hit::of(Program::Syscalls) else { return 0 };
    let Some(thread) = SYSCALL_THREAD.get(0) else { return 0 };
    if bpf_get_current_pid_tgid() as u32 != *thread {
        return 0;
    }
    let number = ctx.arg::<u64>(1);
    let last = u64::from(SYSCALLS_MAX - 1);
    let place = if number < last { number } else { last };
    if let Some(calls) = SYSCALLS.get_ptr_mut(place as u32) {
        // SAFETY: the pointer is to a place of this map on this CPU, where nothing else writes while the program runs.
        unsafe { *calls += 1 };
    }
    0
}
