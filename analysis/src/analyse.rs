//! One capture into finished numbers: two passes, the latencies first (they set the bands), then the join.
use crate::bootstrap::{Compare, Side, compare};
use crate::capture::costs::Spread;
use crate::capture::manifest::{Outcome as RunOutcome, Round, ServerSide, Side as End};
use crate::capture::{self, Capture, Manifest};
use crate::compare::{LOSS_LIMIT, SLEPT_MIN};
use crate::correlate::Totals;
use crate::model::{Breakdown, CpuCost, Latency, ObserverCost, Report, Residency, RunReport};
use crate::pass::Pass;
pub use crate::pass::{SampleVerdict, verdicts};
use crate::stats::{self, is_shown};
use crate::trace;
use crate::units::{count, loss, percent};
use crate::verdict::Judge;
use crate::words::printable;
use crate::{bypass, compare as poll_event, names, silent, two_sides};
use ebpf_probes::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Version of the JSON report.
pub const REPORT_SCHEMA_VERSION: u32 = 1;

/// A run's report and the latencies that comparisons need.
pub struct Analysed {
    /// The finished numbers.
    pub report: RunReport,
    /// Latencies of the untraced rounds, by round.
    untraced: BTreeMap<u32, Vec<u64>>,
}

impl Analysed {
    /// The untraced rounds, for a bootstrap.
    pub fn untraced_side(&self) -> Side {
        Side::new(self.untraced.values().map(Vec::as_slice))
    }
}

/// The report over the captures at `dir` (one, or a tree of them).
///
/// # Errors
/// What opening and reading can meet, where no capture can be read. One that cannot be read beside others is named in the report.
pub fn report(dir: &Path) -> capture::Result<Report> {
    let (mut analysed, mut traces, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    let mut first_error = None;
    for found in capture::find(dir)? {
        let path = printable(&found.strip_prefix(dir).unwrap_or(&found).to_string_lossy());
        let path = if path.is_empty() { ".".into() } else { path };
        let read = Capture::open(&found).and_then(|mut capture| {
            if capture.manifest.trace.is_some() {
                traces.push(trace::load(&mut capture, path)?);
            } else {
                analysed.push(one(&found, path)?);
            }
            Ok(())
        });
        if let Err(error) = read {
            unreadable.push(printable(&error.to_string()));
            first_error.get_or_insert(error);
        }
    }
    match first_error {
        Some(error) if analysed.is_empty() && traces.is_empty() => return Err(error),
        _ => {}
    }
    let mut comparisons = poll_event::all(&analysed);
    names::of_comparisons(&mut comparisons);
    let mut runs: Vec<RunReport> = analysed.into_iter().map(|it| it.report).collect();
    names::of_runs(&mut runs);
    silent::fill(&mut runs);
    let mut warnings: Vec<String> =
        unreadable.iter().map(|why| format!("UNREADABLE: {why}. This capture is in no figure; the others are.")).collect();
    warnings.extend(report_warnings(&runs));
    Ok(Report { schema_version: REPORT_SCHEMA_VERSION, runs, comparisons, traces, unreadable, warnings })
}

/// Analyses one capture.
///
/// # Errors
/// As [`report`].
pub fn one(dir: &Path, path: String) -> capture::Result<Analysed> {
    let mut capture = Capture::open(dir)?;
    if capture.manifest.side == End::Server {
        return Err(capture::Error::ServerSide { path: dir.to_path_buf() });
    }
    let mut seen = Latencies::read(&mut capture)?;
    let manifest = capture.manifest.clone();
    let failed = total(manifest.rounds.iter().filter(|round| !round.warmup).map(|round| round.failed)).max(seen.failed);
    let metric = manifest.run.metric;
    let mut untraced_ns: Vec<u64> = seen.untraced.values().flatten().copied().collect();
    let mut traced_ns: Vec<u64> = seen.traced.values().flatten().copied().collect();
    let observer = observer(&seen);
    let traced = stats::latency(metric, &mut traced_ns, failed);
    let untraced = stats::latency(metric, &mut untraced_ns, failed);
    let joined = if traced.is_some() && manifest.plan.iter().any(|row| row.attached) {
        Some(join(&mut capture, &manifest, &traced_ns)?)
    } else {
        None
    };
    let mut warnings = manifest.notes.clone();
    warnings.append(&mut capture.notes);
    let unknown: u64 = capture.unknown_kinds.values().sum();
    if unknown > 0 {
        warnings.push(format!("{} records are of kinds that this version does not know; they were skipped", count(unknown)));
    }
    seen.warn(&mut warnings);
    if failed > 0 {
        warnings.push(format!("{} operations failed; they have no latency and are in no figure", count(failed)));
    }
    let (breakdown, slept_share, totals) = match joined {
        Some((breakdown, slept, totals)) => {
            let share = if breakdown.samples > 0 { slept as f64 / breakdown.samples as f64 } else { 0.0 };
            (Some(breakdown), (manifest.run.mode != "poll").then_some(share), totals)
        }
        None => (None, None, Totals::default()),
    };
    let loss_share = loss_share(&manifest, breakdown.as_ref(), totals).max(seen.missing_share());
    run_warnings(&manifest, breakdown.as_ref(), slept_share, loss_share, totals, &mut warnings);
    let (two_sides, two_sides_absent) = match two_sides::of(dir, &manifest) {
        Ok(found) => (Some(found), None),
        Err(why) => (None, Some(why)),
    };
    match (&two_sides, &two_sides_absent) {
        (Some(sides), _) => warnings.extend(sides.damage.iter().map(|what| format!("the server's side: {what}"))),
        (None, Some(why)) if manifest.server_side == ServerSide::Present => {
            warnings.push(format!("the server's side was recorded, and is not shown: {why}"));
        }
        _ => {}
    }
    // How the capture is stored changes no report.
    let manifest = Manifest { sealed: None, ..manifest };
    let report = RunReport {
        path,
        name: format!("{} {}", manifest.run.op, manifest.run.mode),
        has_twin: false,
        post: Spread::of(&mut seen.post),
        server_residency: server_residency(&manifest),
        bypass: bypass::of(&manifest),
        cpu: cpu_cost(&manifest, !seen.untraced.is_empty()),
        manifest,
        untraced,
        traced,
        breakdown,
        two_sides,
        two_sides_absent,
        observer,
        slept_share,
        silent: Vec::new(),
        warnings,
        loss_share,
    };
    Ok(Analysed { report, untraced: std::mem::take(&mut seen.untraced) })
}

/// Latencies of the samples by round.
#[derive(Default)]
pub(crate) struct Latencies {
    pub(crate) traced: BTreeMap<u32, Vec<u64>>,
    untraced: BTreeMap<u32, Vec<u64>>,
    /// How long the post took, untraced rounds.
    post: Vec<u64>,
    failed: u64,
    backwards: u64,
    /// In no round of the manifest.
    homeless: u64,
    /// Outside of the time of the round that they name.
    foreign: u64,
    /// Samples that the manifest counts in its measured rounds, and those of them that are not there.
    expected: u64,
    missing: u64,
}

impl Latencies {
    pub(crate) fn read(capture: &mut Capture) -> capture::Result<Latencies> {
        let rounds: BTreeMap<u32, Round> = capture.manifest.rounds.iter().map(|round| (round.index, round.clone())).collect();
        let mut there: BTreeMap<u32, u64> = BTreeMap::new();
        let mut seen = Latencies::default();
        for sample in capture.samples()? {
            let sample = sample?;
            let Some(round) = rounds.get(&sample.round) else {
                seen.homeless += 1;
                continue;
            };
            if round.warmup {
                continue;
            }
            if !round.holds(&sample) {
                seen.foreign += 1;
                continue;
            }
            *there.entry(sample.round).or_default() += 1;
            if sample.status != 0 {
                seen.failed += 1;
                continue;
            }
            match sample.latency_ns() {
                Some(latency) => {
                    let side = if round.traced { &mut seen.traced } else { &mut seen.untraced };
                    side.entry(sample.round).or_default().push(latency);
                    if !round.traced {
                        seen.post.extend(sample.post_end_ns.checked_sub(sample.post_begin_ns));
                    }
                }
                None => seen.backwards += 1,
            }
        }
        let measured = || rounds.values().filter(|round| !round.warmup);
        seen.expected = total(measured().map(|round| round.samples));
        let missing = |round: &Round| round.samples.saturating_sub(there.get(&round.index).copied().unwrap_or(0));
        seen.missing = total(measured().map(missing));
        Ok(seen)
    }

    /// Samples that are not there, as a share of those that the manifest counts.
    fn missing_share(&self) -> f64 {
        if self.missing == 0 { 0.0 } else { self.missing as f64 / self.expected as f64 }
    }

    fn warn(&self, warnings: &mut Vec<String>) {
        if self.missing > 0 {
            warnings.push(format!(
                "{} of the {} samples that the manifest counts are not in the capture (it was cut or damaged); every figure lacks them",
                count(self.missing),
                count(self.expected)
            ));
        }
        if self.foreign > 0 {
            warnings.push(format!(
                "{} samples lie outside the time of their round (damaged, or of another run); they were left out",
                count(self.foreign)
            ));
        }
        if self.backwards > 0 {
            warnings.push(format!("the clock went backwards within {} samples; they have no latency", count(self.backwards)));
        }
        if self.homeless > 0 {
            warnings.push(format!(
                "{} samples belong to a round that the manifest does not list (the recording was cut before it was written); they were left out",
                count(self.homeless)
            ));
        }
    }
}

fn join(capture: &mut Capture, manifest: &Manifest, sorted_ns: &[u64]) -> capture::Result<(Breakdown, u64, Totals)> {
    let first = Pass::over(capture, manifest, sorted_ns)?;
    let medians = first.accumulator.medians();
    let identity = &first.identity;
    let judge = Judge { medians: &medians, names: &first.names, totals: &first.interference, identity };
    let exact = identity.has_cqe && identity.event_mode && identity.records(Kind::CqPost) && identity.rxe;
    let finished = first.accumulator.finish(exact, &judge);
    Ok((finished.breakdown, finished.slept, first.totals))
}

fn observer(seen: &Latencies) -> Option<ObserverCost> {
    let untraced = Side::new(seen.untraced.values().map(Vec::as_slice));
    let traced = Side::new(seen.traced.values().map(Vec::as_slice));
    let shown = |q| is_shown(untraced.len(), q) && is_shown(traced.len(), q);
    let p50 = compare(&untraced, &traced, 0.5, Compare::Difference).filter(|_| shown(0.5))?;
    let p99 = compare(&untraced, &traced, 0.99, Compare::Difference).filter(|_| shown(0.99));
    Some(ObserverCost {
        p50_diff_ns: p50.value,
        p50_interval_ns: p50.interval?,
        p99_diff_ns: p99.map(|it| it.value),
        p99_interval_ns: p99.and_then(|it| it.interval),
        rounds: (traced.rounds(), untraced.rounds()),
    })
}

fn cpu_cost(manifest: &Manifest, has_untraced: bool) -> CpuCost {
    let rounds = || manifest.rounds.iter().filter(|round| !round.warmup && round.traced != has_untraced);
    let ops = total(rounds().map(|round| round.samples));
    let elapsed = total(rounds().map(|round| round.end_ns.saturating_sub(round.begin_ns)));
    // A figure that some rounds lack would be too small if the others' were divided by all operations.
    let all = |get: fn(&capture::manifest::Round) -> Option<u64>| {
        rounds().map(get).try_fold(0u64, |sum, value| Some(sum.saturating_add(value?))).filter(|_| ops > 0)
    };
    let thread = total(rounds().map(|round| round.thread_cpu_ns));
    CpuCost {
        thread_ns_per_op: (ops > 0).then(|| thread as f64 / ops as f64),
        thread_share: (elapsed > 0).then(|| thread as f64 / elapsed as f64),
        server_ns_per_op: all(|round| round.server_cpu_ns).map(|sum| sum as f64 / ops as f64),
        machine_ns_per_op: all(|round| round.machine_busy_ns).map(|sum| sum as f64 / ops as f64),
    }
}

/// A sum that stays at the end of its range: the numbers of a damaged manifest may be anything.
fn total(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

/// What the server told of its untraced rounds.
fn server_residency(manifest: &Manifest) -> Option<Residency> {
    let told = || manifest.rounds.iter().filter(|round| !round.warmup && !round.traced).filter_map(|round| round.server_residency);
    let range = |get: fn(&Spread) -> Option<f64>| {
        told().filter_map(|it| get(&it)).fold(None, |range: Option<(f64, f64)>, value| {
            Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        })
    };
    Some(Residency {
        rounds: told().count() as u64,
        n: total(told().map(|it| it.n)),
        min_ns: told().map(|it| it.min_ns).reduce(f64::min)?,
        p50_ns: range(|it| it.p50_ns),
        p99_ns: range(|it| it.p99_ns),
        max_ns: told().map(|it| it.max_ns).reduce(f64::max)?,
    })
}

/// The larger of: records that the probes could not write, records that could not be read, samples flagged LOST.
fn loss_share(manifest: &Manifest, breakdown: Option<&Breakdown>, totals: Totals) -> f64 {
    let share = |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 / all as f64 };
    let attempted = total(manifest.losses.iter().map(|row| row.attempted));
    let lost = total(manifest.losses.iter().map(|row| row.lost));
    let samples = breakdown.map_or(0.0, |it| share(it.lost, it.samples));
    share(lost, attempted.max(lost)).max(samples).max(share(totals.undecoded, totals.events))
}

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

fn run_warnings(
    manifest: &Manifest,
    breakdown: Option<&Breakdown>,
    slept_share: Option<f64>,
    loss_share: f64,
    totals: Totals,
    warnings: &mut Vec<String>,
) {
    match &manifest.outcome {
        RunOutcome::Complete => {}
        RunOutcome::Recording => warnings.push("the recording has no end: it was killed, or goes on".into()),
        RunOutcome::Interrupted => warnings.push("stopped by the user before its end; what was recorded is valid".into()),
        RunOutcome::Unstable(why) => warnings.push(format!("UNSTABLE: {why}")),
        RunOutcome::Failed(why) => warnings.push(format!("the run failed: {why}")),
    }
    if manifest.outcome == RunOutcome::Complete {
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
        return;
    };
    if let Some(slept) = slept_share.filter(|share| *share < SLEPT_MIN) {
        let inline = breakdown.flags.iter().find(|(name, _)| name == "INLINE").map_or(0, |(_, n)| *n);
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
}

fn report_warnings(runs: &[RunReport]) -> Vec<String> {
    let mut warnings = Vec::new();
    let emulated = runs.iter().filter(|run| run.manifest.host.emulated).count();
    if emulated > 0 {
        let which = if emulated == runs.len() { "all runs".into() } else { format!("{emulated} of {} runs", runs.len()) };
        warnings.push(format!(
            "EMULATED ({which}): instructions were emulated (TCG). Order, counts and shares hold; durations are the emulator's and say nothing of real hardware."
        ));
    }
    let boots: BTreeSet<&str> = runs.iter().map(|run| run.manifest.host.boot_id.as_str()).collect();
    if boots.len() > 1 {
        warnings.push(format!(
            "The captures are of {} different boots or machines: only runs of one boot are set against each other.",
            boots.len()
        ));
    }
    if runs.iter().any(|run| matches!(run.manifest.outcome, RunOutcome::Unstable(_))) {
        warnings.push("UNSTABLE: in some runs the machine was too noisy for the warm-up to settle; see there.".into());
    }
    for run in runs.iter().filter(|run| run.loss_share > LOSS_LIMIT) {
        let name = if run.path == "." { format!("{} {}", run.manifest.run.op, run.manifest.run.mode) } else { run.path.clone() };
        warnings.push(format!("LOSS: {name} lost {} of its records or samples (limit {}).", loss(run.loss_share), loss(LOSS_LIMIT)));
    }
    warnings
}

/// The distribution that is the headline of a run: untraced where there is one.
pub fn headline(run: &RunReport) -> Option<&Latency> {
    run.untraced.as_ref().or(run.traced.as_ref())
}
