//! Finished numbers: what the analysis hands to the text, the page, the charts and the exports. Nothing here computes or prints.
//!
//! All durations are nanoseconds. A value that cannot be stood behind is `None`, and printing says so.
pub use crate::explain::model::{
    AbsentHook, Agreement, Band, Breakdown, Bypass, BypassCalls, Cause, Chains, Culprit, Expected, Failure, FireReport, HookFired,
    Interference, Judgement, OverlayItem, Place, SideLine, SidesTable, SilentHook, SlowCauses, SlowPair, SlowSample, SlowStage, Source,
    StageMedian, StageStat, Step, StepSeen, TwoSides,
};
pub use crate::stats::{Latency, Quantile};
pub use crate::trace::model::TraceReport;
use capture::manifest::costs::Spread;
use capture::{Manifest, Operation};
use serde::Serialize;
use serde::ser::SerializeStruct;
use std::fmt;

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
    pub op: Operation,
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
    /// The verdict, or why there is none: two keys of the JSON report, `verdict` and `withheld`.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What a comparison says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// In one sentence.
    Given(String),
    /// Nothing, and why.
    Withheld(String),
}

impl Verdict {
    /// Is there none?
    pub fn is_withheld(&self) -> bool {
        self.why_withheld().is_some()
    }

    /// Why there is none.
    pub fn why_withheld(&self) -> Option<&str> {
        match self {
            Verdict::Given(_) => None,
            Verdict::Withheld(why) => Some(why),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Given(sentence) => f.write_str(sentence),
            Verdict::Withheld(why) => write!(f, "withheld: {why}"),
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut keys = to.serialize_struct("Verdict", 2)?;
        keys.serialize_field("verdict", &self.to_string())?;
        keys.serialize_field("withheld", &self.is_withheld())?;
        keys.end()
    }
}
