//! What is recorded: the filters that the loader fills at run time.
//!
//! Bitmaps, not hashes: a lookup in an array is a few instructions that the verifier puts in place, a hash costs a hundred.

use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::macros::map;
use aya_ebpf::maps::Array;
use ebpf_probes::config::{IRQ_BITS, PID_BITS, QPN_BITS, TGID_BITS, TRACKED_POLLER, words};

use super::field;
use super::globals::{OFF_TASK_TGID, TRACK_BY_PROCESS, known};

/// Threads whose scheduling is recorded, two bits each.
#[map]
static TRACKED_PIDS: Array<u64> = Array::with_max_entries(words(PID_BITS), 0);
/// Processes whose CQs are recorded.
#[map]
static TRACKED_TGIDS: Array<u64> = Array::with_max_entries(words(TGID_BITS), 0);
/// Queue pairs whose rxe events are recorded.
#[map]
static TRACKED_QPNS: Array<u64> = Array::with_max_entries(words(QPN_BITS), 0);
/// Interrupts that are recorded when the filter is on.
#[map]
static TRACKED_IRQS: Array<u64> = Array::with_max_entries(words(IRQ_BITS), 0);

/// The bits of a number: 0 when it is not tracked.
#[inline(always)]
fn bits(map: &Array<u64>, number: u32, each: u32) -> u32 {
    let bit = u64::from(number) * u64::from(each);
    match map.get_ptr((bit >> 6) as u32) {
        // SAFETY: the entry is one word; a value that changes meanwhile is as good as the one before.
        Some(word) => (unsafe { *word } >> (bit & 63)) as u32 & ((1 << each) - 1),
        None => 0,
    }
}

/// Whether the thread's scheduling is recorded. The idle thread never is: the loader does not add 0.
#[inline(always)]
pub fn pid(pid: u32) -> bool {
    bits(&TRACKED_PIDS, pid, PID_BITS.each) != 0
}

/// Whether the thread that has this CPU (or was interrupted on it) is tracked.
#[inline(always)]
pub fn current() -> bool {
    pid(bpf_get_current_pid_tgid() as u32)
}

/// Whether that thread is a tracked one that polls.
#[inline(always)]
pub fn current_polls() -> bool {
    polls(bpf_get_current_pid_tgid() as u32)
}

/// Whether the thread is a tracked one that polls: whoever takes its CPU is interference.
#[inline(always)]
pub fn polls(pid: u32) -> bool {
    bits(&TRACKED_PIDS, pid, PID_BITS.each) == TRACKED_POLLER
}

/// Whether the scheduling of the thread behind this `task_struct` is recorded: by its process where that was asked for, so that threads
/// made meanwhile are not missed.
#[inline(always)]
pub fn task(thread: u32, task: u64) -> bool {
    if TRACK_BY_PROCESS.load() == 0 {
        return pid(thread);
    }
    thread != 0 && known(&OFF_TASK_TGID).and_then(|offset| field(task, offset)).is_some_and(tgid)
}

/// Records the process from now on.
#[inline(always)]
pub fn track_tgid(tgid: u32) {
    if let Some(word) = TRACKED_TGIDS.get_ptr_mut(tgid >> 6) {
        // SAFETY: the entry is one word. Two writers at the same moment may undo each other; the reader adds the process too.
        unsafe { *word |= 1 << (tgid & 63) };
    }
}

/// Whether the process's CQs are recorded.
#[inline(always)]
pub fn tgid(tgid: u32) -> bool {
    bits(&TRACKED_TGIDS, tgid, TGID_BITS.each) != 0
}

/// Whether the queue pair's events are recorded.
#[inline(always)]
pub fn qpn(qpn: u32) -> bool {
    bits(&TRACKED_QPNS, qpn, QPN_BITS.each) != 0
}

/// Whether the interrupt is in the filter's set.
#[inline(always)]
pub fn irq(irq: u32) -> bool {
    bits(&TRACKED_IRQS, irq, IRQ_BITS.each) != 0
}
