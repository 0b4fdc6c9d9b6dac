//! What a reader of the numbers must know, in sentences: of one run, and of the report as a whole.
use super::compare::SLEPT_MIN;
use super::model::{Breakdown, RunReport};
use crate::join::Totals;
use crate::join::flags::Flag;
use crate::stats::RoundLatencies;
use capture::Manifest;
use capture::limits::LOSS_LIMIT;
use capture::manifest::Outcome;
use capture::text::units::{count, loss, percent};
use std::collections::BTreeSet;

/// A round ends at its time limit, however many samples are missing: on a slow or busy machine there are fewer than asked for.
fn short_of_samples(manifest: &Manifest) -> Option<String> {
    let short = |traced: bool| {
        let rounds = manifest.rounds.iter().filter(|round| round.traced == traced && !round.warmup);
        let taken = rounds.map(|round| round.samples).reduce(u64::saturating_add)?;
        let kind = if traced { "with" } else { "without" };
        (taken < manifest.run.samples).then(|| format!("{} {kind} probes", count(taken)))
    };
    let said: Vec<String> = [false, true].into_iter().filter_map(short).collect();
    let asked = count(manifest.run.samples);
    let words = said.join(", ");
    (!said.is_empty())
        .then(|| format!("fewer samples than the {asked} asked for: {words}; rounds ended at their time limit (a slow or busy machine)"))
}

/// Of the samples: what is missing, damaged or in no round.
pub(super) fn of_samples(seen: &RoundLatencies) -> Vec<String> {
    let mut warnings = Vec::new();
    if seen.missing > 0 {
        warnings.push(format!(
            "{} of the {} samples that the manifest counts are not in the capture (it was cut or damaged); every figure lacks them",
            count(seen.missing),
            count(seen.expected)
        ));
    }
    if seen.foreign > 0 {
        warnings.push(format!(
            "{} samples lie outside the time of their round (damaged, or of another run); they were left out",
            count(seen.foreign)
        ));
    }
    if seen.backwards > 0 {
        warnings.push(format!("the clock went backwards within {} samples; they have no latency", count(seen.backwards)));
    }
    if seen.homeless > 0 {
        warnings.push(format!(
            "{} samples belong to a round that the manifest does not list (the recording was cut before it was written); they were left out",
            count(seen.homeless)
        ));
    }
    warnings
}

/// What is known of a run when its warnings are written.
pub(super) struct Known<'a> {
    pub manifest: &'a Manifest,
    /// `None`: no kernel stages.
    pub breakdown: Option<&'a Breakdown>,
    pub slept_share: Option<f64>,
    pub loss_share: f64,
    pub totals: Totals,
}

/// Of one run: how it ended, what was not recorded, and how far its stages can be trusted.
pub(super) fn of_run(known: &Known<'_>) -> Vec<String> {
    let Known { manifest, breakdown, slept_share, loss_share, totals } = *known;
    let mut warnings = Vec::new();
    match &manifest.outcome {
        Outcome::Complete => {}
        Outcome::Recording => warnings.push("the recording has no end: it was killed, or goes on".into()),
        Outcome::Interrupted => warnings.push("stopped by the user before its end; what was recorded is valid".into()),
        Outcome::Unstable(why) => warnings.push(format!("UNSTABLE: {why}")),
        Outcome::Failed(why) => warnings.push(format!("the run failed: {why}")),
    }
    if manifest.outcome == Outcome::Complete {
        warnings.extend(short_of_samples(manifest));
    }
    for row in manifest.plan.iter().filter(|row| !row.attached && row.symbol.is_some()) {
        warnings.push(format!("the probe {} was not attached: {}", row.hook, row.reason));
    }
    if let Some(check) = &manifest.clock_check
        && (check.kernel_ns < check.before_ns || check.kernel_ns > check.after_ns)
    {
        warnings.push("the probes' clock is not the runner's clock: no stage between the two can be trusted (CLOCK_UNSURE)".into());
    }
    if breakdown.is_some() && manifest.run.mode.may_sleep() && manifest.device.shape().is_none() {
        warnings.push(format!(
            "how the driver {} comes from its completion interrupt to the completion handler is not known to this version: no interrupt was looked for, and the stages between interrupt and handler are absent",
            if manifest.device.driver.is_empty() { "of this device (the capture does not name it)" } else { &manifest.device.driver }
        ));
    }
    if loss_share > LOSS_LIMIT {
        warnings.push(format!("{} of the records or samples were lost (limit {})", loss(loss_share), loss(LOSS_LIMIT)));
    }
    if totals.undecoded > 0 {
        warnings.push(format!("{} records could not be decoded", count(totals.undecoded)));
    }
    let Some(breakdown) = breakdown else {
        let traced = manifest.rounds.iter().any(|round| round.traced && !round.warmup);
        let why = if traced {
            "no kernel stages: the traced rounds have no sample with a latency, or no probe was attached"
        } else {
            "no kernel stages: no round was traced (level none, or the probes could not be loaded)"
        };
        warnings.push(why.into());
        return warnings;
    };
    if let Some(slept) = slept_share.filter(|share| *share < SLEPT_MIN) {
        let inline = breakdown.flags.iter().find(|(flag, _)| *flag == Flag::Inline).map_or(0, |(_, n)| *n);
        warnings.push(format!(
            "only {} of the samples slept ({} are INLINE: their CQE was written before the post returned, as on rxe up to 6.8 on one host); no wake-up happened in the others, so this run says little of what an event costs",
            percent(slept),
            count(inline)
        ));
    }
    if breakdown.coverage < 0.95 {
        warnings.push(format!("named stages cover only {} of the time; the rest is shown as unattributed", percent(breakdown.coverage)));
    }
    if let Some(agreement) = breakdown.agreement.filter(|it| it.agreed < it.compared) {
        warnings.push(format!(
            "the inferred join chose another trigger than the exact one in {} of {} samples",
            count(agreement.compared - agreement.agreed),
            count(agreement.compared)
        ));
    }
    warnings
}

/// Of the report as a whole.
pub(super) fn of_report(runs: &[RunReport]) -> Vec<String> {
    let mut warnings = Vec::new();
    let which = |is: fn(&RunReport) -> bool| {
        let n = runs.iter().filter(|run| is(run)).count();
        (n > 0).then(|| if n == runs.len() { "all runs".to_owned() } else { format!("{n} of {} runs", runs.len()) })
    };
    if let Some(which) = which(|run| run.manifest.host.emulated) {
        warnings.push(format!(
            "EMULATED ({which}): instructions were emulated (TCG). Order, counts and shares hold; durations are the emulator's and say nothing of real hardware."
        ));
    }
    if let Some(which) = which(|run| run.manifest.device.is_emulated()) {
        warnings.push(format!(
            "EMULATED DEVICE ({which}): the driver is real, the card is a program. Which hook fires, in which order, and which record belongs to which WR hold; times are not those of any hardware, and what polling costs cannot be told (the card takes a CPU of its own)."
        ));
    }
    let boots: BTreeSet<&str> = runs.iter().map(|run| run.manifest.host.boot_id.as_str()).collect();
    if boots.len() > 1 {
        warnings.push(format!(
            "The captures are of {} different boots or machines: only runs of one boot are set against each other.",
            boots.len()
        ));
    }
    if runs.iter().any(|run| matches!(run.manifest.outcome, Outcome::Unstable(_))) {
        warnings.push("UNSTABLE: in some runs the machine was too noisy for the warm-up to settle; see there.".into());
    }
    for run in runs.iter().filter(|run| run.loss_share > LOSS_LIMIT) {
        let name = if run.path == "." { format!("{} {}", run.manifest.run.op, run.manifest.run.mode) } else { run.path.clone() };
        warnings.push(format!("LOSS: {name} lost {} of its records or samples (limit {}).", loss(run.loss_share), loss(LOSS_LIMIT)));
    }
    warnings
}
