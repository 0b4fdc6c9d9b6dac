//! Names and limits that the BPF object and its loader share.

/// Ring buffer map that carries the records.
pub const RING_MAP: &str = "RING";
/// Per-CPU array with one row of counters ([`crate::counters`]) per CPU.
pub const COUNTERS_MAP: &str = "COUNTERS";
/// Hash of thread ids whose scheduling is recorded.
pub const TRACKED_PIDS_MAP: &str = "TRACKED_PIDS";
/// Value in [`TRACKED_PIDS_MAP`] of a thread that waits for events.
pub const TRACKED_WAITER: u32 = 1;
/// Value in [`TRACKED_PIDS_MAP`] of a thread that polls: what takes its CPU is recorded in full.
pub const TRACKED_POLLER: u32 = 2;
/// Hash of process ids whose CQs are recorded.
pub const TRACKED_TGIDS_MAP: &str = "TRACKED_TGIDS";
/// Hash of queue pair numbers whose rxe events are recorded.
pub const TRACKED_QPNS_MAP: &str = "TRACKED_QPNS";
/// Hash of interrupt numbers that are recorded when the global `IRQ_FILTER` is 1.
pub const TRACKED_IRQS_MAP: &str = "TRACKED_IRQS";
/// Array of one `u64`: what the clock check stored.
pub const CLOCK_MAP: &str = "CLOCK";
/// Per-CPU array of calls by system call number.
pub const SYSCALLS_MAP: &str = "SYSCALLS";
/// Array of one `u32`: the thread whose system calls are counted.
pub const SYSCALL_THREAD_MAP: &str = "SYSCALL_THREAD";
/// Places of [`SYSCALLS_MAP`]; the last one counts every number from there on.
pub const SYSCALLS_MAX: u32 = 512;
/// Kinds are smaller than this: size of the per-kind arrays.
pub const KINDS_MAX: u32 = 64;
/// Entries of each hash of tracked things.
pub const TRACKED_MAX: u32 = 4096;
/// An offset that is not known: the probe leaves the field out.
pub const OFFSET_UNKNOWN: u32 = u32::MAX;
/// Not a number that this event has (a CPU, a queue pair, an interrupt).
pub const NONE: u32 = u32::MAX;
