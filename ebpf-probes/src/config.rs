//! Names and limits that the BPF object and its loader share.

/// Ring buffer map that carries the records.
pub const RING_MAP: &str = "RING";
/// Per-CPU array, index = [`crate::Kind`] as a number: records that a probe tried to write.
pub const ATTEMPTED_MAP: &str = "ATTEMPTED";
/// Per-CPU array, index = [`crate::Kind`] as a number: records that found no room in the ring.
pub const LOST_MAP: &str = "LOST";
/// Hash of thread ids whose scheduling is recorded.
pub const TRACKED_PIDS_MAP: &str = "TRACKED_PIDS";
/// Hash of process ids whose CQs are recorded.
pub const TRACKED_TGIDS_MAP: &str = "TRACKED_TGIDS";
/// Hash of queue pair numbers whose rxe events are recorded.
pub const TRACKED_QPNS_MAP: &str = "TRACKED_QPNS";
/// Kinds are smaller than this: size of the per-kind arrays.
pub const KINDS_MAX: u32 = 64;
/// An offset that is not known: the probe leaves the field out.
pub const OFFSET_UNKNOWN: u32 = u32::MAX;
