//! The scheduler: a tracked thread is woken, becomes runnable, gets or leaves a CPU, moves.

use core::mem::offset_of;

use aya_ebpf::helpers::generated::bpf_get_current_comm;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use ebpf_probes::config::NONE;
use ebpf_probes::{Kind, Program, Switch, Wake};

use super::globals::{OFF_TASK_PID, OFF_TASK_STATE, SWITCH_TELLS_STATE, known};
use super::hit::{Hit, now_ns};
use super::{field, interference, raw_argument, tracked};

/// `sched_waking(struct task_struct *p)`, on the waker's CPU.
#[raw_tracepoint(tracepoint = "sched_waking")]
pub fn sched_waking(ctx: RawTracePointContext) -> i32 {
    wake(&ctx, Program::SchedWaking, Kind::SchedWaking, NONE)
}

/// `sched_wakeup(struct task_struct *p)`, on the CPU that activates the thread.
#[raw_tracepoint(tracepoint = "sched_wakeup")]
pub fn sched_wakeup(ctx: RawTracePointContext) -> i32 {
    wake(&ctx, Program::SchedWakeup, Kind::SchedWakeup, NONE)
}

/// `sched_migrate_task(struct task_struct *p, int dest_cpu)`.
#[raw_tracepoint(tracepoint = "sched_migrate_task")]
pub fn sched_migrate(ctx: RawTracePointContext) -> i32 {
    let target_cpu = raw_argument(&ctx, 1) as u32;
    wake(&ctx, Program::SchedMigrate, Kind::SchedMigrate, target_cpu)
}

#[inline(always)]
fn wake(ctx: &RawTracePointContext, program: Program, kind: Kind, target_cpu: u32) -> i32 {
    let Some(hit) = Hit::of(program) else { return 0 };
    let task = raw_argument(ctx, 0);
    let Some(target_pid) = pid_of(task) else { return 0 };
    if tracked::task(target_pid, task) {
        hit.emit(kind, Wake { target_pid, target_cpu });
    }
    0
}

/// `sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next, ...)`; `current` is still `prev`.
#[raw_tracepoint(tracepoint = "sched_switch")]
pub fn sched_switch(ctx: RawTracePointContext) -> i32 {
    let Some(hit) = Hit::of(Program::SchedSwitch) else { return 0 };
    // `current` is `prev`, but its argument is cheaper where a field is one load.
    let (prev, next) = (raw_argument(&ctx, 1), raw_argument(&ctx, 2));
    let (Some(prev_pid), Some(next_pid)) = (pid_of(prev), pid_of(next)) else { return 0 };
    let (to_tracked, from_tracked) = (tracked::task(next_pid, next), tracked::task(prev_pid, prev));
    if !to_tracked && !from_tracked && !interference::is_followed() {
        return 0;
    }
    let ts_ns = now_ns();
    let preempted = u32::from(raw_argument(&ctx, 0) & 0xff != 0 || still_wants_to_run(&ctx));
    if preempted != 0 && from_tracked && tracked::polls(prev_pid) {
        interference::follow(true);
    } else if to_tracked {
        interference::follow(false);
    }
    let mut prev_comm = [0_u64; 2];
    // SAFETY: the helper writes at most the given size, zero padded.
    unsafe { bpf_get_current_comm(prev_comm.as_mut_ptr().cast(), size_of_val(&prev_comm) as u32) };
    hit.emit_at(ts_ns, Kind::SchedSwitch, WideSwitch { prev_pid, next_pid, prev_comm, preempted, reserved: 0 });
    0
}

/// The flag in argument 0 tells of preemption inside the kernel only; on the way back to user space a thread is switched out
/// with its state still `TASK_RUNNING` (0).
#[inline(always)]
fn still_wants_to_run(ctx: &RawTracePointContext) -> bool {
    if SWITCH_TELLS_STATE.load() != 0 {
        return raw_argument(ctx, 3) as u32 == 0;
    }
    known(&OFF_TASK_STATE).and_then(|offset| field::<u32>(raw_argument(ctx, 1), offset)) == Some(0)
}

/// [`Switch`] with its name as words: bytes would be copied one by one.
#[repr(C)]
#[derive(Clone, Copy)]
struct WideSwitch {
    prev_pid: u32,
    next_pid: u32,
    prev_comm: [u64; 2],
    preempted: u32,
    reserved: u32,
}
const _: () = assert!(size_of::<WideSwitch>() == size_of::<Switch>());
const _: () = assert!(offset_of!(WideSwitch, prev_comm) == offset_of!(Switch, prev_comm));
const _: () = assert!(offset_of!(WideSwitch, preempted) == offset_of!(Switch, preempted));

#[inline(always)]
fn pid_of(task: u64) -> Option<u32> {
    field(task, known(&OFF_TASK_PID)?)
}
