//! What took the measured thread's CPU, in numbers.
use super::Cause;
use serde::Serialize;

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
    /// What it is.
    pub kind: Cause,
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

/// One time that something took the thread's CPU.
#[derive(Clone, Debug, Serialize)]
pub struct OverlayItem {
    /// What it is.
    pub kind: Cause,
    /// Its name.
    pub name: String,
    /// The other thread, where there is one.
    pub pid: Option<u32>,
    /// Begin, relative to the begin of the post.
    pub start_ns: u64,
    /// For how long, net of what was nested in it; `None`: its end is not recorded.
    pub duration_ns: Option<u64>,
}
