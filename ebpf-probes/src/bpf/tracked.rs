//! What is recorded: the filters that the loader fills at run time.

use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::macros::map;
use aya_ebpf::maps::HashMap;
use ebpf_probes::config::{TRACKED_MAX, TRACKED_POLLER};

use super::globals::{OFF_TASK_TGID, TRACK_BY_PROCESS, known};
use super::read;

/// Threads whose scheduling is recorded.
#[map]
static TRACKED_PIDS: HashMap<u32, u32> = HashMap::with_max_entries(TRACKED_MAX, 0);
/// Processes whose CQs are recorded.
#[map]
static TRACKED_TGIDS: HashMap<u32, u32> = HashMap::with_max_entries(TRACKED_MAX, 0);
/// Queue pairs whose rxe events are recorded.
#[map]
static TRACKED_QPNS: HashMap<u32, u32> = HashMap::with_max_entries(TRACKED_MAX, 0);
/// Interrupts that are recorded when the filter is on.
#[map]
static TRACKED_IRQS: HashMap<u32, u32> = HashMap::with_max_entries(TRACKED_MAX, 0);

/// Whether the thread's scheduling is recorded. The idle thread never is.
#[inline(always)]
pub fn pid(pid: u32) -> bool {
    pid != 0 && TRACKED_PIDS.get_ptr(pid).is_some()
}

/// Whether the scheduling of the thread behind this `task_struct` is recorded: by its process where that was asked for, so that threads
/// made meanwhile are not missed.
#[inline(always)]
pub fn task(thread: u32, task: u64) -> bool {
    if TRACK_BY_PROCESS.load() == 0 {
        return pid(thread);
    }
    thread != 0 && known(&OFF_TASK_TGID).and_then(|offset| read(task, offset)).is_some_and(tgid)
}

/// Records the process from now on.
#[inline(always)]
pub fn track_tgid(tgid: u32) {
    // A full set is seen by the reader, which adds the process too.
    let _ = TRACKED_TGIDS.insert(tgid, 1, 0);
}

/// Whether the thread that has this CPU (or was interrupted on it) is tracked.
#[inline(always)]
pub fn current() -> bool {
    pid(bpf_get_current_pid_tgid() as u32)
}

/// Whether that thread is a tracked one that polls.
#[inline(always)]
pub fn current_polls() -> bool {
    let pid = bpf_get_current_pid_tgid() as u32;
    // SAFETY: the entry is one word, and a value that changes meanwhile is as good as the one before.
    pid != 0 && TRACKED_PIDS.get_ptr(pid).is_some_and(|how| unsafe { *how } == TRACKED_POLLER)
}

/// Whether the process's CQs are recorded.
#[inline(always)]
pub fn tgid(tgid: u32) -> bool {
    TRACKED_TGIDS.get_ptr(tgid).is_some()
}

/// Whether the queue pair's events are recorded.
#[inline(always)]
pub fn qpn(qpn: u32) -> bool {
    TRACKED_QPNS.get_ptr(qpn).is_some()
}

/// Whether the interrupt is in the filter's set.
#[inline(always)]
pub fn irq(irq: u32) -> bool {
    TRACKED_IRQS.get_ptr(irq).is_some()
}
