//! Names and limits that the BPF object and its loader share.

/// Ring buffer map that carries the records.
pub const RING_MAP: &str = "RING";
/// Array with one row of counters ([`crate::counters`]) per CPU, indexed by the CPU's number; the loader sets how many.
pub const COUNTERS_MAP: &str = "COUNTERS";
/// Bitmap of thread ids whose scheduling is recorded, [`PID_BITS`].
pub const TRACKED_PIDS_MAP: &str = "TRACKED_PIDS";
/// Value in [`TRACKED_PIDS_MAP`] of a thread that waits for events.
pub const TRACKED_WAITER: u32 = 1;
/// Value in [`TRACKED_PIDS_MAP`] of a thread that polls: what takes its CPU is recorded in full.
pub const TRACKED_POLLER: u32 = 2;
/// Bitmap of process ids whose CQs are recorded, [`TGID_BITS`].
pub const TRACKED_TGIDS_MAP: &str = "TRACKED_TGIDS";
/// Bitmap of queue pair numbers whose rxe events are recorded, [`QPN_BITS`].
pub const TRACKED_QPNS_MAP: &str = "TRACKED_QPNS";
/// Bitmap of interrupt numbers that are recorded when the global `IRQ_FILTER` is 1, [`IRQ_BITS`].
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
/// Records that one run of the generator writes (`cargo xtask bench drain`).
pub const GENERATED_PER_RUN: u32 = 64;
/// Entries of each hash of threads.
pub const TRACKED_MAX: u32 = 4096;
/// An offset that is not known: the probe leaves the field out.
pub const OFFSET_UNKNOWN: u32 = u32::MAX;
/// Values of the global `AUTO_TRACK`: whose CQs are recorded from their creation on.
pub mod auto_track {
    /// Of tracked processes only.
    pub const OFF: u32 = 0;
    /// Of creators whose thread has the name in `AUTO_NAME_0` and `AUTO_NAME_1`; they become tracked.
    pub const BY_NAME: u32 = 1;
    /// Of every creator; it becomes tracked.
    pub const ALL: u32 = 2;
}
/// Not a number that this event has (a CPU, a queue pair, an interrupt).
pub const NONE: u32 = u32::MAX;

/// Shape of a bitmap: numbers below `numbers`, `each` bits for one, packed into words of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Numbers are smaller than this.
    pub numbers: u32,
    /// Bits of one number: 1, or 2 for a value up to 3.
    pub each: u32,
}

/// Thread ids: the kernel's limit is 4 Mi. The value is [`TRACKED_WAITER`] or [`TRACKED_POLLER`].
pub const PID_BITS: Bits = Bits { numbers: 1 << 22, each: 2 };
/// Process ids.
pub const TGID_BITS: Bits = Bits { numbers: 1 << 22, each: 1 };
/// Queue pair numbers have 24 bits.
pub const QPN_BITS: Bits = Bits { numbers: 1 << 24, each: 1 };
/// Linux interrupt numbers.
pub const IRQ_BITS: Bits = Bits { numbers: 1 << 16, each: 1 };

/// Words of a bitmap.
pub const fn words(bits: Bits) -> u32 {
    bits.numbers / 64 * bits.each
}
