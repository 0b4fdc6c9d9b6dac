//! Finished numbers of a trace: what text, JSON and page print.
use super::conditions::Condition;
use super::cq::{Outcomes, Stage};
use super::times::Log2;
use capture::Manifest;
use capture::manifest::costs::Spread;
use serde::Serialize;

/// Everything about one trace, ready to print.
#[derive(Clone, Debug, Serialize)]
pub struct TraceReport {
    /// Folder of the capture, relative to what was opened; empty for a trace that was not recorded.
    pub path: String,
    /// What was traced, how long, with which probes, and what was lost.
    pub manifest: Manifest,
    /// Time traced.
    pub duration_ns: u64,
    /// The CQs of the traced processes.
    pub cqs: Vec<CqReport>,
    /// Completion events of all these CQs by what became of them.
    pub outcomes: Outcomes,
    /// What is wrong, by name.
    pub conditions: Vec<Condition>,
    /// Distributions, bins that double.
    pub histograms: Vec<HistogramReport>,
    /// Interrupts that came, per vector and CPU.
    pub interrupts: Vec<InterruptReport>,
    /// Reads of events that were queued before the trace began.
    pub early_reads: u64,
    /// Sentences that a reader must know.
    pub warnings: Vec<String>,
    /// Share of the records that was lost, 0 to 1.
    pub loss_share: f64,
}

/// One CQ.
#[derive(Clone, Debug, Serialize)]
pub struct CqReport {
    /// Process.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// `cqn` of `rdma resource show cq`; `None`: not known.
    pub restrack_id: Option<u32>,
    /// RDMA device where known.
    pub device: Option<String>,
    /// Address of the program's `struct ibv_cq`; 0: not known, it had no event.
    pub user_handle: u64,
    /// Address of the completion channel in the kernel; 0: none, or not known.
    pub channel: u64,
    /// CQEs that it holds, where known.
    pub depth: Option<u32>,
    /// Created while the trace ran.
    pub was_created: bool,
    /// Destroyed while the trace ran.
    pub was_destroyed: bool,
    /// Completion events.
    pub events: u64,
    /// What became of them.
    pub outcomes: Outcomes,
    /// Share of the events that were read whose every moment was seen, 0 to 1; `None`: none was read.
    pub complete_share: Option<f64>,
    /// Events whose handler was called by a process or kernel thread.
    pub from_process: u64,
    /// Threads that its events woke.
    pub waiters: Vec<u32>,
    /// Threads that read its events.
    pub readers: Vec<u32>,
    /// Stages that were seen, in the order of the path.
    pub stages: Vec<StageReport>,
    /// CQEs posted; `None`: this driver does not show them.
    pub cqes: Option<u64>,
    /// CQEs with an error among them.
    pub error_cqes: u64,
    /// CQEs posted after the last event.
    pub cqes_since_event: u64,
    /// Times armed; `None`: this driver arms without the kernel.
    pub arms: Option<u64>,
    /// Times armed while CQEs lay unread.
    pub arms_over_unread: u64,
    /// CQEs that lay unread at the end; `None`: not known (only soft-RoCE tells).
    pub unread_cqes: Option<u32>,
    /// What to know of a CQ without events.
    pub note: Option<String>,
}

/// One stage.
#[derive(Clone, Debug, Serialize)]
pub struct StageReport {
    /// Which.
    pub stage: Stage,
    /// Its name.
    pub name: &'static str,
    /// Durations.
    pub spread: Spread,
}

/// A distribution with bins that double.
#[derive(Clone, Debug, Serialize)]
pub struct HistogramReport {
    /// What.
    pub name: String,
    /// From which moment to which.
    pub meaning: &'static str,
    /// True: nanoseconds; false: a count.
    pub is_time: bool,
    /// The bins.
    pub histogram: Log2,
    /// Why it is empty, where it is.
    pub absent: Option<&'static str>,
}

/// One interrupt.
#[derive(Clone, Debug, Serialize)]
pub struct InterruptReport {
    /// Linux interrupt number.
    pub irq: u32,
    /// Chip and handlers.
    pub name: String,
    /// (CPU column, times) from /proc/interrupts, or from records where that was not read; zeros left out.
    pub counts: Vec<(u32, u64)>,
    /// Begin to end of its handler.
    pub handling: Option<Spread>,
}
