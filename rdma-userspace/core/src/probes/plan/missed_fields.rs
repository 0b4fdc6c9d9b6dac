//! Where this kernel counts the runs of probes that it skipped: offsets in the structures that `bpf(2)` fills.

use crate::machine::kernel::Facts;

/// Where the kernel counts how many runs of probes it skipped (`struct bpf_link_info`, `struct bpf_prog_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedFields {
    /// `bpf_link_info.type`.
    pub link_type: u32,
    /// The value of that field for a kprobe's link (`BPF_LINK_TYPE_PERF_EVENT`, UAPI).
    pub perf_event: u32,
    /// `bpf_link_info.prog_id`.
    pub link_program: u32,
    /// `bpf_link_info.perf_event.kprobe.missed`.
    pub link_missed: u32,
    /// `bpf_prog_info.recursion_misses`.
    pub program_missed: u32,
}

/// The members that [`MissedFields`] are read of.
pub(super) const MISSED_MEMBERS: &[(&str, &str)] = &[
    ("bpf_link_info", "type"),
    ("bpf_link_info", "prog_id"),
    ("bpf_link_info", "perf_event.kprobe.missed"),
    ("bpf_prog_info", "recursion_misses"),
];

impl MissedFields {
    /// The fields, where this kernel has all of them.
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        let offset = |structure, path| facts.vmlinux.as_ref()?.member_offset(structure, path).ok();
        Some(MissedFields {
            link_type: offset("bpf_link_info", "type")?,
            perf_event: 7,
            link_program: offset("bpf_link_info", "prog_id")?,
            link_missed: offset("bpf_link_info", "perf_event.kprobe.missed")?,
            program_missed: offset("bpf_prog_info", "recursion_misses")?,
        })
    }
}
