//! One pass over the traced samples of a capture and their events: stages, interference and names; and on top of it the verdict on every
//! single sample, for tests and for tools of others.
use crate::explain::breakdown::Accumulator;
use crate::explain::interference::{self, Names};
use crate::explain::model::{Breakdown, Culprit};
use crate::explain::verdict::evidence::Evidence;
use crate::explain::verdict::{self, Baseline};
use crate::join::facts::RunFacts;
use crate::join::flags::{Flag, Flags};
use crate::join::{self, Options, Totals};
use crate::stages::StageId;
use crate::stats::RoundLatencies;
use capture::{Capture, Manifest};
use std::path::Path;

/// One pass over the traced samples and their events.
struct Pass {
    facts: RunFacts,
    accumulator: Accumulator,
    interference: interference::OverlayTotals,
    names: Names,
    totals: Totals,
}

impl Pass {
    /// `sorted_ns`: the latencies of the traced samples, sorted.
    fn over(capture: &mut Capture, manifest: &Manifest, sorted_ns: &[u64]) -> capture::Result<Pass> {
        let facts = RunFacts::of(manifest);
        let mut accumulator = Accumulator::new(sorted_ns);
        let mut interference = interference::OverlayTotals::new(sorted_ns);
        let mut names = Names::of(manifest);
        let streams = capture.streams()?;
        let totals = join::each(manifest, streams.samples, streams.records, Options::default(), &mut |sample, outcome, window| {
            names.learn(window.events);
            if let Some(total_ns) = sample.latency_ns() {
                interference.add(total_ns, &interference::overlay(window.events, sample, facts.tid));
            }
            accumulator.add(sample, outcome, || Evidence::of(window, sample, &outcome.joined, facts.tid));
        })?;
        Ok(Pass { facts, accumulator, interference, names, totals })
    }
}

/// What the traced samples of a capture give.
pub struct Explained {
    /// Where their time went.
    pub breakdown: Breakdown,
    /// Samples that slept in the blocking read.
    pub slept: u64,
    /// Totals of the join.
    pub totals: Totals,
}

/// Explains the traced samples of a capture. `sorted_ns`: their latencies, sorted.
///
/// # Errors
/// What reading the capture can meet.
pub fn explain(capture: &mut Capture, manifest: &Manifest, sorted_ns: &[u64]) -> capture::Result<Explained> {
    let first = Pass::over(capture, manifest, sorted_ns)?;
    let medians = first.accumulator.medians();
    let facts = &first.facts;
    let baseline = Baseline { medians: &medians, names: &first.names, totals: &first.interference, facts };
    let finished = first.accumulator.finish(facts.may_sleep && facts.shows_cqe(), &baseline);
    Ok(Explained { breakdown: finished.breakdown, slept: finished.slept, totals: first.totals })
}

/// The verdict on one traced sample.
#[derive(Clone, Debug)]
pub struct SampleVerdict {
    /// wr_id of its begin WR.
    pub wr_id: u64,
    /// Round.
    pub round: u32,
    /// Begin of the post, `CLOCK_MONOTONIC` ns.
    pub begin_ns: u64,
    /// Its completion was found, `CLOCK_MONOTONIC` ns.
    pub end_ns: u64,
    /// Its latency in ns.
    pub total_ns: u64,
    /// The stage that grew most over its median; `None`: no stage is known.
    pub stage: Option<StageId>,
    /// By how much it grew, in ns; negative when every stage was shorter than its median.
    pub grown_ns: i64,
    /// Who or what was in the way in that stage.
    pub culprit: Option<Culprit>,
    /// The stages that were seen, in path order, each added up over its parts; the unattributed time last.
    pub stages: Vec<(StageId, u64)>,
    /// What took the thread's CPU, in ns.
    pub taken_ns: u64,
    /// The flags.
    pub flags: Flags,
}

impl SampleVerdict {
    /// Records are missing: the verdict is exempt from checks.
    pub fn is_lost(&self) -> bool {
        self.flags.has(Flag::Lost)
    }

    /// A stage's time in ns; `None`: not seen in this sample.
    pub fn stage_ns(&self, stage: StageId) -> Option<u64> {
        self.stages.iter().find(|(seen, _)| *seen == stage).map(|(_, ns)| *ns)
    }
}

/// The verdict on every traced sample of the capture in `dir` (one capture, not a tree), in the order of their posts.
///
/// # Errors
/// What opening and reading the capture can meet.
pub fn verdicts(dir: &Path) -> capture::Result<Vec<SampleVerdict>> {
    let mut capture = Capture::open(dir)?;
    let seen = RoundLatencies::read(&mut capture)?;
    let manifest = capture.manifest.clone();
    let mut traced_ns: Vec<u64> = seen.traced.values().flatten().copied().collect();
    traced_ns.sort_unstable();
    let first = Pass::over(&mut capture, &manifest, &traced_ns)?;
    let medians = first.accumulator.medians();
    let baseline = Baseline { medians: &medians, names: &first.names, totals: &first.interference, facts: &first.facts };
    let mut all = Vec::new();
    let streams = capture.streams()?;
    join::each(&manifest, streams.samples, streams.records, Options::default(), &mut |sample, outcome, window| {
        let Some(total_ns) = sample.latency_ns() else { return };
        let evidence = Evidence::of(window, sample, &outcome.joined, first.facts.tid);
        let verdict = verdict::of(&baseline, outcome, &evidence);
        let durations = verdict::durations(&outcome.joined.chain);
        let stages = durations.iter().filter_map(|(stage, duration)| Some((stage, (*duration)?)));
        all.push(SampleVerdict {
            wr_id: sample.begin_wr_id,
            round: sample.round,
            begin_ns: sample.post_begin_ns,
            end_ns: sample.done_ns,
            total_ns,
            stage: verdict.as_ref().map(|it| it.stage),
            grown_ns: verdict.as_ref().map_or(0, |it| it.grown_ns),
            culprit: verdict.map(|it| it.culprit),
            stages: stages.collect(),
            taken_ns: evidence.overlay.taken_ns,
            flags: outcome.joined.flags,
        });
    })?;
    Ok(all)
}
