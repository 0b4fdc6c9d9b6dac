//! A slow sample and its verdict.
use super::{Cause, OverlayItem};
use crate::join::flags::Flag;
use crate::stages::StageId;
use serde::Serialize;

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
    pub flags: Vec<Flag>,
    /// The verdict in one sentence, naming the stage that grew most against its median and who was in the way.
    pub verdict: String,
    /// The stage that grew most against its median; `None`: no stage is known.
    pub culprit_stage: Option<StageId>,
    /// Who or what was in the way in that stage.
    pub culprit: Option<Culprit>,
    /// What took the thread's CPU while the sample ran, by begin. An overlay: the stages hold that time too.
    pub overlay: Vec<OverlayItem>,
    /// Sum of the known durations of the overlay.
    pub taken_ns: u64,
    /// Share of the sample's excess over the median latency that the overlay explains, 0 to 1; `None`: no excess.
    pub explained_share: Option<f64>,
}

impl SlowSample {
    /// The names of its flags.
    pub fn flag_names(&self) -> Vec<&'static str> {
        self.flags.iter().map(|flag| flag.name()).collect()
    }
}

/// One bar of a waterfall.
#[derive(Clone, Debug, Serialize)]
pub struct SlowStage {
    /// Which one.
    #[serde(rename = "name")]
    pub stage: StageId,
    /// Start, relative to the begin of the post.
    pub start_ns: u64,
    /// Duration.
    pub duration_ns: u64,
    /// Median of that stage over all samples.
    pub median_ns: Option<u64>,
}

/// Who or what was in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Culprit {
    /// What it is.
    pub kind: Cause,
    /// Its name: a `comm`, an interrupt, a softirq, or words.
    pub name: String,
    /// The other thread, where there is one.
    pub pid: Option<u32>,
    /// For how long it had the CPU, or held the work up.
    pub taken_ns: Option<u64>,
}
