//! Finished numbers: what the analysis hands to the report, the charts and the JSON. Nothing here computes or prints.
//!
//! All durations are nanoseconds. A value that cannot be stood behind is `None`, and printing says so.
mod sides;

use crate::capture::costs::Spread;
use crate::capture::manifest::{Manifest, Metric, SyscallCount};
use crate::trace::model::TraceReport;
use serde::Serialize;
pub use sides::{SideLine, SidesTable, SlowPair, TwoSides};

/// Everything about one capture, ready to print.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// Folder of the capture, relative to what was opened.
    pub path: String,
    /// What it is called beside the others, such as `send event`; with its size and its folder where only they tell it from another.
    pub name: String,
    /// Is there another run of the same operation, mode and size? Then only the folder tells them apart.
    pub has_twin: bool,
    /// The manifest as recorded.
    pub manifest: Manifest,
    /// Latency of the samples in untraced rounds: the headline (the probes disturb nothing). `None` when there were none.
    pub untraced: Option<Latency>,
    /// Latency of the samples in traced rounds: what the breakdown is about.
    pub traced: Option<Latency>,
    /// The call that posts the WR (`post_end_ns - post_begin_ns`), samples of untraced rounds. It is not the latency of the hardware.
    pub post: Option<Spread>,
    /// How long the server held a message; `None`: no ping-pong, or it did not tell.
    pub server_residency: Option<Residency>,
    /// CPU time per operation.
    pub cpu: CpuCost,
    /// The stages of the traced samples; `None` without probes.
    pub breakdown: Option<Breakdown>,
    /// The round trip split between client, network and server; `None` with a reason in `two_sides_absent`.
    pub two_sides: Option<TwoSides>,
    /// Why there is no such split.
    pub two_sides_absent: Option<String>,
    /// The proof of bypass; `None`: the capture holds nothing of it.
    pub bypass: Option<Bypass>,
    /// What the probes cost.
    pub observer: Option<ObserverCost>,
    /// Share of the samples that slept (event mode), 0 to 1, over traced samples.
    pub slept_share: Option<f64>,
    /// Hooks that stayed silent by design, and the proof that they were alive.
    pub silent: Vec<SilentHook>,
    /// Warnings that belong beside the numbers (emulation, INLINE, loss, instability).
    pub warnings: Vec<String>,
    /// Share of records or samples that were lost, 0 to 1.
    pub loss_share: f64,
}

/// A latency distribution.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// What it measures.
    pub metric: Metric,
    /// Samples; nothing was trimmed.
    pub n: u64,
    /// Operations that failed (not in the distribution).
    pub failed: u64,
    /// Smallest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation (of the population, floating).
    pub stddev_ns: f64,
    /// Quantiles in this order: 0.5, 0.9, 0.99, 0.999, 0.9999. `None` when fewer than ten samples lie above.
    pub quantiles: Vec<Quantile>,
    /// The true maximum.
    pub max_ns: u64,
    /// Sorted steps for CDF, CCDF and percentile plots: (latency, samples at or below). At most some thousand points.
    pub steps: Vec<(u64, u64)>,
    /// Histogram with logarithmic bins: (lower bound, upper bound, samples), empty bins left out.
    pub bins: Vec<(u64, u64, u64)>,
}

/// One quantile.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quantile {
    /// 0 to 1.
    pub q: f64,
    /// Value; `None`: withheld, n is too small.
    pub value_ns: Option<u64>,
}

/// CPU time per operation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CpuCost {
    /// The measured thread: user and system time per operation, untraced rounds.
    pub thread_ns_per_op: Option<f64>,
    /// Share of one CPU that the thread used, 0 to 1.
    pub thread_share: Option<f64>,
    /// The server's thread per operation.
    pub server_ns_per_op: Option<f64>,
    /// All CPUs of the machine (busy time), per operation: includes interrupts, softirqs and kernel workers, and everything else that ran.
    pub machine_ns_per_op: Option<f64>,
}

/// From the server's receive of a message to before its post of the answer, over untraced rounds. The server tells a summary per round:
/// quantiles of different rounds do not merge, so their range is given.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Residency {
    /// Rounds that it told of.
    pub rounds: u64,
    /// Messages in them.
    pub n: u64,
    /// Smallest.
    pub min_ns: f64,
    /// Lowest and highest median of a round; `None`: withheld in every round.
    pub p50_ns: Option<(f64, f64)>,
    /// Lowest and highest 99th percentile of a round; `None`: withheld in every round.
    pub p99_ns: Option<(f64, f64)>,
    /// The true maximum.
    pub max_ns: f64,
}

/// Where the time of the traced samples went.
#[derive(Clone, Debug, Serialize)]
pub struct Breakdown {
    /// Samples that were joined.
    pub joined: u64,
    /// Samples in traced rounds.
    pub samples: u64,
    /// Samples flagged LOST.
    pub lost: u64,
    /// Share of the total time that named stages cover, 0 to 1.
    pub coverage: f64,
    /// Share of samples of which named stages cover at least 90 %.
    pub covered_samples: f64,
    /// Stages in path order, with "unattributed" last.
    pub stages: Vec<StageStat>,
    /// The bands of latency: p0-p50, p50-p90, p90-p99, p99-p99.9, above.
    pub bands: Vec<Band>,
    /// Count of samples by flag.
    pub flags: Vec<(String, u64)>,
    /// Agreement of the inferred join with the exact one; `None` where the exact one is not possible.
    pub agreement: Option<Agreement>,
    /// The slowest samples.
    pub slow: Vec<SlowSample>,
    /// What took the measured thread's CPU.
    pub interference: Interference,
}

/// What the measured rounds moved through the kernel's files and sockets. Sums over all measured rounds; `None`: not told.
#[derive(Clone, Debug, Serialize)]
pub struct Bypass {
    /// Measured rounds that were looked at, traced ones included.
    pub rounds: u64,
    /// Operations in them.
    pub operations: u64,
    /// Bytes sent on the control connection.
    pub tcp_sent_bytes: Option<u64>,
    /// Bytes received on it.
    pub tcp_received_bytes: Option<u64>,
    /// Read calls of the measured thread.
    pub reads: Option<u64>,
    /// Bytes that they gave.
    pub read_bytes: Option<u64>,
    /// Write calls of the measured thread.
    pub writes: Option<u64>,
    /// Bytes that they took.
    pub written_bytes: Option<u64>,
    /// Times that the thread slept.
    pub voluntary_switches: u64,
    /// The system calls of a round of its own.
    pub calls: Option<BypassCalls>,
    /// Why they were not counted.
    pub calls_absent: Option<String>,
    /// No socket I/O: `None` where not enough was told.
    pub is_proven: Option<bool>,
    /// In one sentence.
    pub verdict: String,
}

/// System calls of the measured thread in a round of its own.
#[derive(Clone, Debug, Serialize)]
pub struct BypassCalls {
    /// Operations of that round.
    pub operations: u64,
    /// Calls beyond those of a round without operations.
    pub calls: Vec<SyscallCount>,
    /// Calls of a round without operations.
    pub frame: Vec<SyscallCount>,
    /// Calls that move data through a socket.
    pub socket_calls: u64,
}

/// One stage over all samples in which it was seen.
#[derive(Clone, Debug, Serialize)]
pub struct StageStat {
    /// Name from the stage table.
    pub name: String,
    /// What it means.
    pub meaning: String,
    /// Samples in which it was seen.
    pub n: u64,
    /// Sum over those samples divided by ALL joined samples: the means of all stages add up to the mean latency.
    pub mean_of_all_ns: f64,
    /// Median over the samples in which it was seen.
    pub p50_ns: Option<u64>,
    /// 99th percentile over the samples in which it was seen.
    pub p99_ns: Option<u64>,
    /// Largest.
    pub max_ns: u64,
    /// Share of the total time, 0 to 1.
    pub share: f64,
    /// Negative values: kept out of the sums, counted here.
    pub negative: u64,
    /// Sorted steps (duration, samples at or below) for a CDF, at most some hundred points.
    pub steps: Vec<(u64, u64)>,
}

/// A band of latency and its stage means.
#[derive(Clone, Debug, Serialize)]
pub struct Band {
    /// Such as `p50-p90`.
    pub name: String,
    /// Samples.
    pub n: u64,
    /// Mean latency.
    pub mean_ns: f64,
    /// (stage name, mean over the band's samples); adds up to `mean_ns`, "unattributed" included.
    pub stages: Vec<(String, f64)>,
}

/// How often the inferred join chose the trigger that the exact one knows.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Agreement {
    /// Samples compared.
    pub compared: u64,
    /// Samples with the same answer.
    pub agreed: u64,
}

/// One slow sample as a waterfall.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SlowSample {
    /// wr_id of its begin WR.
    pub wr_id: u64,
    /// Round.
    pub round: u32,
    /// Total.
    pub total_ns: u64,
    /// (stage, start relative to the post, duration, median of that stage).
    pub stages: Vec<SlowStage>,
    /// Flags.
    pub flags: Vec<String>,
    /// The verdict in one sentence, naming the stage that grew most against its median and who was in the way.
    pub verdict: String,
    /// The stage that grew most against its median; `None`: no stage is known.
    pub culprit_stage: Option<String>,
    /// Who or what was in the way in that stage.
    pub culprit: Option<Culprit>,
    /// What took the thread's CPU while the sample ran, by begin. An overlay: the stages hold that time too.
    pub overlay: Vec<OverlayItem>,
    /// Sum of the known durations of the overlay.
    pub taken_ns: u64,
    /// Share of the sample's excess over the median latency that the overlay explains, 0 to 1; `None`: no excess.
    pub explained_share: Option<f64>,
}

/// Who or what was in the way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Culprit {
    /// `preempted`, `migrated`, `irq`, `softirq`, `tick`, `blocked` (the thread's CPU was taken); `run_queue`, `idle_exit` (a wake-up
    /// waited); `bottom_half`, `worker` (the kernel's work waited); `peer`; `retransmission`; `own_code` (the thread ran all the time);
    /// `none_seen` (all was recorded, and nothing explains it); `not_recorded`.
    pub kind: String,
    /// Its name: a `comm`, an interrupt, a softirq, or words.
    pub name: String,
    /// The other thread, where there is one.
    pub pid: Option<u32>,
    /// For how long it had the CPU, or held the work up.
    pub taken_ns: Option<u64>,
}

/// One time that something took the thread's CPU.
#[derive(Clone, Debug, Serialize)]
pub struct OverlayItem {
    /// `preempted`, `migrated`, `irq`, `softirq`, `tick`, `blocked`, `page_fault`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The other thread, where there is one.
    pub pid: Option<u32>,
    /// Begin, relative to the begin of the post.
    pub start_ns: u64,
    /// For how long, net of what was nested in it; `None`: its end is not recorded.
    pub duration_ns: Option<u64>,
}

/// What took the measured thread's CPU over a run's traced samples.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Interference {
    /// Samples looked at.
    pub samples: u64,
    /// Samples in which anything was seen.
    pub touched: u64,
    /// Share of the samples' total time, 0 to 1.
    pub share: f64,
    /// Median over the samples of the time taken.
    pub usual_ns: u64,
    /// By source, the one that took most first.
    pub sources: Vec<Source>,
    /// Sources that are not listed.
    pub more_sources: u64,
    /// What they took.
    pub more_ns: u64,
    /// How many slow samples it explains (polling only); `None`: too few samples, or event mode.
    pub slow: Option<SlowCauses>,
    /// What the probes could not record, so that its absence says nothing.
    pub not_seen: Vec<String>,
}

/// One source of interference.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    /// As [`OverlayItem::kind`].
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The other thread, where there is one.
    pub pid: Option<u32>,
    /// How often.
    pub times: u64,
    /// In how many samples.
    pub samples: u64,
    /// Sum of the known durations.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Times of which the duration is not known.
    pub unknown: u64,
}

/// The samples above the 99th percentile by what explains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SlowCauses {
    /// The 99th percentile.
    pub above_ns: u64,
    /// Samples above it.
    pub n: u64,
    /// The overlay explains at least half of their excess over the median.
    pub explained: u64,
    /// It explains a tenth to a half.
    pub partly: u64,
    /// Less: no kernel cause seen.
    pub none_seen: u64,
}

/// One bar of a waterfall.
#[derive(Clone, Debug, Serialize)]
pub struct SlowStage {
    /// Stage name.
    pub name: String,
    /// Start, relative to the begin of the post.
    pub start_ns: u64,
    /// Duration.
    pub duration_ns: u64,
    /// Median of that stage over all samples.
    pub median_ns: Option<u64>,
}

/// Difference between traced and untraced rounds.
#[derive(Clone, Debug, Serialize)]
pub struct ObserverCost {
    /// Difference of the medians, ns.
    pub p50_diff_ns: f64,
    /// 95 % interval of that difference, bootstrapped over rounds.
    pub p50_interval_ns: (f64, f64),
    /// Difference of the 99th percentiles; `None`: too few samples.
    pub p99_diff_ns: Option<f64>,
    /// Its interval.
    pub p99_interval_ns: Option<(f64, f64)>,
    /// Traced rounds and untraced rounds.
    pub rounds: (u32, u32),
}

/// A hook that did not fire, and what that means.
#[derive(Clone, Debug, Serialize)]
pub struct SilentHook {
    /// Hook name.
    pub hook: String,
    /// Symbol.
    pub symbol: String,
    /// Hits in this run's traced rounds.
    pub hits: u64,
    /// Why it is silent, and the control that proves the probe alive ("fired 10,000 times in the event rounds") or "no control possible here".
    pub meaning: String,
}

/// The report over one capture or a tree of them.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Schema of this JSON.
    pub schema_version: u32,
    /// One entry per capture, in run order.
    pub runs: Vec<RunReport>,
    /// Poll against event, per operation where both are there.
    pub comparisons: Vec<Comparison>,
    /// Traces of programs that are not ours, one entry per capture of that kind.
    pub traces: Vec<TraceReport>,
    /// Captures that could not be read, and why.
    pub unreadable: Vec<String>,
    /// Warnings for the whole report, shown at its top.
    pub warnings: Vec<String>,
}

/// Poll against event of one operation.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Operation.
    pub op: String,
    /// Message size in bytes.
    pub size_bytes: u32,
    /// Folders of the polling and of the event run, relative to what was opened.
    pub runs: (String, String),
    /// What is compared, such as `send 64 B`; with both folders where another comparison would be called the same.
    pub name: String,
    /// Ratio of the medians, event over poll, from untraced rounds.
    pub p50_ratio: Option<f64>,
    /// Its 95 % interval, bootstrapped over rounds.
    pub p50_ratio_interval: Option<(f64, f64)>,
    /// Ratio of the 99th percentiles.
    pub p99_ratio: Option<f64>,
    /// Ratio of CPU time per operation of the measured thread, event over poll.
    pub cpu_ratio: Option<f64>,
    /// The verdict in one sentence, or why it is withheld.
    pub verdict: String,
    /// True when the verdict is withheld.
    pub withheld: bool,
}
