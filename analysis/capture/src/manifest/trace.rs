//! The part of a manifest that only a trace of foreign programs has: what was watched, and what was known of it besides the records.
use serde::{Deserialize, Serialize};

/// What was traced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFacts {
    /// What was asked for, such as `--name ib_send_lat`.
    pub targets: String,
    /// All probes were attached, `CLOCK_MONOTONIC` ns.
    pub begin_ns: u64,
    /// The probes were about to go, `CLOCK_MONOTONIC` ns.
    pub end_ns: u64,
    /// Processes that were followed.
    pub processes: Vec<TracedProcess>,
    /// CQs that the kernel listed at the beginning (`rdma resource show cq`); empty where it could not be asked.
    pub known_cqs: Vec<KnownCq>,
    /// CQEs that lay unread at the end (soft-RoCE only).
    pub unread: Vec<UnreadCqes>,
    /// Interrupts that came during the trace, from /proc/interrupts.
    pub interrupts: Vec<InterruptRow>,
    /// Records that the writer could not decode.
    pub unknown_records: u64,
}

/// A process that was followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedProcess {
    /// Process id.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// Found running when the tracer started; else it began later.
    pub was_there: bool,
    /// It ended before the trace did.
    pub ended: bool,
    /// Its threads as they were found after the probes were attached.
    pub threads: Vec<FoundThread>,
}

/// A thread as it was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundThread {
    /// Thread id.
    pub tid: u32,
    /// Running or wanting to; else asleep.
    pub running: bool,
    /// When, `CLOCK_MONOTONIC` ns.
    pub at_ns: u64,
}

/// A CQ that existed before the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownCq {
    /// Process that created it.
    pub tgid: u32,
    /// Restrack id.
    pub restrack_id: u32,
    /// CQEs that it holds, where told.
    pub depth: Option<u32>,
    /// RDMA device.
    pub device: String,
}

/// CQEs that a process has not polled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadCqes {
    /// Address of the kernel's `ib_cq`.
    pub cq: u64,
    /// CQEs.
    pub cqes: u32,
}

/// One interrupt of /proc/interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptRow {
    /// Linux interrupt number.
    pub irq: u32,
    /// Chip and handlers, as the kernel prints them.
    pub name: String,
    /// Times since the beginning, by CPU (columns of /proc/interrupts).
    pub counts: Vec<u64>,
}
