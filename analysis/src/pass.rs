//! One pass over the traced samples of a capture and their events: stages, interference and names; and on top of it the verdict on every
//! single sample, for tests and for tools of others.
use crate::analyse::Latencies;
use crate::breakdown::Accumulator;
use crate::capture::{self, Capture, Manifest};
use crate::correlate::flags::{Flag, Flags};
use crate::correlate::identity::Identity;
use crate::correlate::{self, Options, Totals};
use crate::interference::{self, Names};
use crate::model::Culprit;
use crate::verdict::evidence::Evidence;
use crate::verdict::{self, Judge};
use std::path::Path;

/// One pass over the traced samples and their events.
pub(crate) struct Pass {
    pub(crate) identity: Identity,
    pub(crate) accumulator: Accumulator,
    pub(crate) interference: interference::Totals,
    pub(crate) names: Names,
    pub(crate) totals: Totals,
}

impl Pass {
    /// `sorted_ns`: the latencies of the traced samples, sorted.
    pub(crate) fn over(capture: &mut Capture, manifest: &Manifest, sorted_ns: &[u64]) -> capture::Result<Pass> {
        let identity = Identity::of(manifest);
        let mut accumulator = Accumulator::new(sorted_ns);
        let mut interference = interference::Totals::new(sorted_ns);
        let mut names = Names::of(manifest);
        let streams = capture.streams()?;
        let totals = correlate::each(manifest, streams.samples, streams.records, Options::default(), &mut |sample, outcome, window| {
            names.learn(window.events);
            if let Some(total_ns) = sample.latency_ns() {
                interference.add(total_ns, &interference::overlay(window.events, sample, identity.tid));
            }
            accumulator.add(sample, outcome, || Evidence::of(window, sample, &outcome.joined, identity.tid));
        })?;
        Ok(Pass { identity, accumulator, interference, names, totals })
    }
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
    /// The stage that grew most over its median (a name of [`crate::stages::STAGES`], or "unattributed"); `None`: no stage is known.
    pub stage: Option<&'static str>,
    /// By how much it grew, in ns; negative when every stage was shorter than its median.
    pub grown_ns: i64,
    /// Who or what was in the way in that stage.
    pub culprit: Option<Culprit>,
    /// The stages that were seen, in path order, each added up over its parts; "unattributed" last.
    pub stages: Vec<(&'static str, u64)>,
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
    pub fn stage_ns(&self, name: &str) -> Option<u64> {
        self.stages.iter().find(|(stage, _)| *stage == name).map(|(_, ns)| *ns)
    }
}

/// The verdict on every traced sample of the capture in `dir` (one capture, not a tree), in the order of their posts.
///
/// # Errors
/// As [`crate::analyse::report`].
pub fn verdicts(dir: &Path) -> capture::Result<Vec<SampleVerdict>> {
    let mut capture = Capture::open(dir)?;
    let seen = Latencies::read(&mut capture)?;
    let manifest = capture.manifest.clone();
    let mut traced_ns: Vec<u64> = seen.traced.values().flatten().copied().collect();
    traced_ns.sort_unstable();
    let first = Pass::over(&mut capture, &manifest, &traced_ns)?;
    let medians = first.accumulator.medians();
    let judge = Judge { medians: &medians, names: &first.names, totals: &first.interference, identity: &first.identity };
    let mut all = Vec::new();
    let streams = capture.streams()?;
    correlate::each(&manifest, streams.samples, streams.records, Options::default(), &mut |sample, outcome, window| {
        let Some(total_ns) = sample.latency_ns() else { return };
        let evidence = Evidence::of(window, sample, &outcome.joined, first.identity.tid);
        let verdict = judge.verdict(outcome, &evidence);
        let durations = verdict::durations(&outcome.joined.chain);
        let stages = durations.iter().enumerate().filter_map(|(at, duration)| Some((verdict::stage_name(at), (*duration)?)));
        all.push(SampleVerdict {
            wr_id: sample.begin_wr_id,
            round: sample.round,
            begin_ns: sample.post_begin_ns,
            end_ns: sample.done_ns,
            total_ns,
            stage: verdict.as_ref().map(|(stage, ..)| verdict::stage_name(*stage)),
            grown_ns: verdict.as_ref().map_or(0, |(_, grown_ns, ..)| *grown_ns),
            culprit: verdict.map(|(_, _, culprit, _)| culprit),
            stages: stages.collect(),
            taken_ns: evidence.overlay.taken_ns,
            flags: outcome.joined.flags,
        });
    })?;
    Ok(all)
}
