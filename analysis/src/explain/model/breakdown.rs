//! Where the time of a run's traced samples went.
use super::{Interference, SlowSample};
use crate::join::flags::Flag;
use crate::stages::StageId;
use serde::Serialize;

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
    pub flags: Vec<(Flag, u64)>,
    /// Agreement of the inferred join with the exact one; `None` where the exact one is not possible.
    pub agreement: Option<Agreement>,
    /// The slowest samples.
    pub slow: Vec<SlowSample>,
    /// What took the measured thread's CPU.
    pub interference: Interference,
}

/// One stage over all samples in which it was seen.
#[derive(Clone, Debug, Serialize)]
pub struct StageStat {
    /// Which one.
    #[serde(rename = "name")]
    pub stage: StageId,
    /// What it means.
    pub meaning: &'static str,
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
    /// (stage, mean over the band's samples); adds up to `mean_ns`, the unattributed time included.
    pub stages: Vec<(StageId, f64)>,
}

/// How often the inferred join chose the trigger that the exact one knows.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Agreement {
    /// Samples compared.
    pub compared: u64,
    /// Samples with the same answer.
    pub agreed: u64,
}
