//! Does a device's completion path fire, hook by hook? Judged from one run with completion events and every probe: how often each hook of
//! the plan must have fired by the shape of the driver and the samples that slept, and whether each such sample has its whole chain.
//!
//! [`chains`] collects the samples, [`expected`] says how often a hook must fire, [`judgement`] what follows, [`bundle`] makes of it what
//! may be shown to strangers.
pub mod bundle;
mod chains;
mod expected;
mod judgement;

pub use bundle::Bundle;

use crate::explain::explain;
use crate::explain::model::{Breakdown, Chains, Failure, FireReport, HookFired, Judgement, StageMedian, Step};
use crate::join;
use crate::stats::{RoundLatencies, total};
use capture::manifest::PlanRow;
use capture::{Capture, CompletionShape, Manifest};
use chains::Collected;
use ebpf_probes::Kind;
use judgement::Rows;

/// So many chains it takes at least: with fewer, one hundredth is less than one chain.
pub const JUDGED_MIN: u64 = 100;
/// Of the chains that are judged, so many must be whole.
pub const WHOLE_MIN: f64 = 0.99;
/// And so many where the others are no more than the probe hits that the kernel says it dropped: a hook whose hits are dropped does fire.
pub const WHOLE_MIN_DROPPED: f64 = 0.95;

/// Judges the capture of a run with completion events.
///
/// # Errors
/// What reading the capture can meet.
pub fn judge(capture: &mut Capture) -> capture::Result<FireReport> {
    let manifest = capture.manifest.clone();
    let mut latencies_ns: Vec<u64> = RoundLatencies::read(capture)?.traced.into_values().flatten().collect();
    latencies_ns.sort_unstable();
    let breakdown = explain(capture, &manifest, &latencies_ns)?.breakdown;
    let streams = capture.streams()?;
    let mut collected = Collected::default();
    join::run(&manifest, streams.samples, streams.records, join::Options::default(), &mut |_, outcome| collected.add(&outcome.joined))?;
    Ok(of(&manifest, &collected, &breakdown))
}

/// The report, from what was recorded.
fn of(manifest: &Manifest, collected: &Collected, breakdown: &Breakdown) -> FireReport {
    let shape = manifest.device.shape();
    let path = collected.path(shape, gives_any(&manifest.plan, Step::Callback.kinds()));
    let chains = collected.chains(&path);
    let rows = Rows { manifest, must: expected::Must::of(&chains, &path, shape, manifest.device.is_soft_roce()) };
    let hooks: Vec<HookFired> = manifest.plan.iter().map(|row| rows.judge(row)).collect();
    FireReport {
        emulated_device: manifest.device.is_emulated(),
        emulated_cpu: manifest.host.emulated,
        driver: manifest.device.driver.clone(),
        shape,
        firmware: manifest.device.firmware.clone(),
        board: manifest.device.board.clone(),
        stages: breakdown
            .stages
            .iter()
            .filter(|stage| !stage.stage.is_unattributed())
            .map(|stage| StageMedian { stage: stage.stage, samples: stage.n, p50_ns: stage.p50_ns })
            .collect(),
        records_lost: total(manifest.losses.iter().map(|row| row.lost)),
        missed_probes: manifest.missed_probes,
        failures: failures(manifest, shape, &path, &hooks, &chains, collected),
        hooks,
        chains,
    }
}

fn failures(
    manifest: &Manifest,
    shape: Option<CompletionShape>,
    path: &[Step],
    hooks: &[HookFired],
    chains: &Chains,
    collected: &Collected,
) -> Vec<Failure> {
    let judged = chains.judged();
    let mut failures = Vec::new();
    if judged < JUDGED_MIN {
        failures.push(Failure::TooFewSlept { judged, needed: JUDGED_MIN });
    }
    let silent = hooks.iter().filter(|hook| hook.judgement == Judgement::Silent);
    failures.extend(silent.map(|hook| Failure::HookSilent { hook: hook.hook.clone() }));
    let without = path.iter().filter(|step| !gives_any(&manifest.plan, step.kinds()));
    failures.extend(without.map(|step| Failure::StepWithoutHook { step: *step, hooks: judgement::absent_hooks(manifest, *step, shape) }));
    if !are_whole(chains.complete, judged, manifest.missed_probes.unwrap_or(0))
        && let Some((step, broken)) = collected.breaks(path)
    {
        let giving = manifest.plan.iter().filter(|row| row.attached && gives(row, step.kinds()));
        let hooks = giving.map(|row| row.hook.clone()).collect();
        failures.push(Failure::ChainsIncomplete { complete: chains.complete, judged, step, broken, hooks });
    }
    failures
}

/// Are enough of the chains that are judged whole, where the kernel dropped so many probe hits?
fn are_whole(complete: u64, judged: u64, dropped: u64) -> bool {
    let least = if judged.saturating_sub(complete) <= dropped { WHOLE_MIN_DROPPED } else { WHOLE_MIN };
    complete as f64 >= judged as f64 * least
}

/// Is a hook attached that gives one of these kinds?
fn gives_any(plan: &[PlanRow], kinds: &[Kind]) -> bool {
    plan.iter().any(|row| row.attached && gives(row, kinds))
}

fn gives(row: &PlanRow, kinds: &[Kind]) -> bool {
    kinds.iter().any(|kind| row.gives.iter().any(|name| name == kind.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_dropped_is_no_fault_of_a_hook_as_long_as_it_is_little() {
        assert!(are_whole(990, 1000, 0) && !are_whole(989, 1000, 0));
        // Each broken chain lacks one hit or more.
        assert!(are_whole(989, 1000, 11) && !are_whole(989, 1000, 10));
        assert!(are_whole(950, 1000, 900) && !are_whole(949, 1000, 900));
    }
}
