//! Why a sample was slow: its stages against their medians, the stage that grew most, who was in the way, what to try next.
mod advice;
mod baseline;
mod cause;
pub mod evidence;
mod growth;

pub use baseline::Baseline;
pub use growth::{culprit_stage, durations};

use crate::explain::model::{Culprit, OverlayItem, SlowSample, SlowStage};
use crate::join::Outcome;
use crate::join::flags::Flag;
use crate::stages::{Point, StageId};
use advice::advice;
use capture::Sample;
use capture::text::units::{ns, percent};
use evidence::Evidence;
use growth::Grown;

/// The verdict on a sample.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The stage that grew most over its median.
    pub stage: StageId,
    /// By how much, in ns; negative when every stage was shorter than its median.
    pub grown_ns: i64,
    /// Who or what was in the way in that stage.
    pub culprit: Culprit,
    /// The words for the culprit; empty: nothing beyond the stage's name.
    pub text: String,
}

/// Stage and culprit of a sample; `None`: no stage is known.
pub fn of(baseline: &Baseline<'_>, outcome: &Outcome, evidence: &Evidence) -> Option<Verdict> {
    let chain = &outcome.joined.chain;
    let durations = durations(chain);
    let (stage, grown_ns) = culprit_stage(&durations, baseline.medians)?;
    let clock = |relative: i64| chain.get(Point::PostBegin).unwrap_or(0).saturating_add_signed(relative);
    let parts = chain.gaps().filter(|gap| gap.stage == stage);
    let grown = Grown {
        stage,
        growth_ns: u64::try_from(grown_ns).unwrap_or(0),
        duration_ns: durations[stage].unwrap_or(0),
        parts: parts.map(|gap| (clock(gap.start_ns), clock(gap.start_ns.saturating_add(gap.duration_ns)), gap.to)).collect(),
    };
    let (culprit, text) = cause::find(baseline, &grown, outcome, evidence);
    Some(Verdict { stage, grown_ns, culprit, text })
}

/// A slow sample with its verdict.
pub fn slow_sample(baseline: &Baseline<'_>, sample: &Sample, outcome: &Outcome, evidence: &Evidence) -> SlowSample {
    let total_ns = sample.latency_ns().unwrap_or(0);
    let verdict = of(baseline, outcome, evidence);
    let overlay = evidence.overlay.items.iter().map(|item| OverlayItem {
        kind: item.what.kind(),
        name: baseline.names.source(item.what),
        pid: item.what.pid(),
        start_ns: item.start_ns.saturating_sub(sample.post_begin_ns),
        duration_ns: item.duration_ns,
    });
    let explained_share = baseline.totals.explained(total_ns, evidence.overlay.taken_ns);
    SlowSample {
        wr_id: sample.begin_wr_id,
        round: sample.round,
        total_ns,
        verdict: sentence(baseline, total_ns, verdict.as_ref(), outcome, explained_share),
        culprit_stage: verdict.as_ref().map(|it| it.stage),
        culprit: verdict.map(|it| it.culprit),
        flags: outcome.joined.flags.iter().collect(),
        stages: bars(baseline, outcome),
        overlay: overlay.collect(),
        taken_ns: evidence.overlay.taken_ns,
        explained_share,
    }
}

/// The stages of a sample in path order, parts that follow each other as one.
fn bars(baseline: &Baseline<'_>, outcome: &Outcome) -> Vec<SlowStage> {
    let mut stages: Vec<SlowStage> = Vec::new();
    for gap in outcome.joined.chain.gaps() {
        let (Ok(start_ns), Ok(duration_ns)) = (u64::try_from(gap.start_ns), u64::try_from(gap.duration_ns)) else { continue };
        match stages.last_mut() {
            Some(last) if last.stage == gap.stage => last.duration_ns = last.duration_ns.saturating_add(duration_ns),
            _ => stages.push(SlowStage { stage: gap.stage, start_ns, duration_ns, median_ns: baseline.medians[gap.stage] }),
        }
    }
    stages
}

fn sentence(baseline: &Baseline<'_>, total_ns: u64, verdict: Option<&Verdict>, outcome: &Outcome, explained_share: Option<f64>) -> String {
    let flags = outcome.joined.flags;
    let complete = if flags.has(Flag::Lost) {
        " Events complete: no, records are missing, so this is a lower bound."
    } else {
        " Events complete: yes."
    };
    let Some(Verdict { stage, culprit, text, .. }) = verdict else {
        return format!("{} in all; no stage is known.{complete}", ns(total_ns as f64));
    };
    let duration_ns = durations(&outcome.joined.chain)[*stage].unwrap_or(0);
    let usual = baseline.medians[*stage].map_or("rare, no median".to_string(), |median| format!("median {}", ns(median as f64)));
    let share = if total_ns == 0 { 0.0 } else { duration_ns as f64 / total_ns as f64 };
    let cause = if text.is_empty() { String::new() } else { format!("; {text}") };
    let overlay = match explained_share {
        Some(share) if !baseline.facts.may_sleep => {
            format!(" What took the thread's CPU explains {} of the excess over the median.", percent(share))
        }
        _ => String::new(),
    };
    format!(
        "{stage} took {} of {} ({}; {usual}){cause}.{overlay}{complete} Next: {}.",
        ns(duration_ns as f64),
        ns(total_ns as f64),
        percent(share),
        advice(*stage, culprit.kind, baseline.facts.same_kernel || flags.has(Flag::Loopback))
    )
}
