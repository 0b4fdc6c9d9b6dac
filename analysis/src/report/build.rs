//! One capture into finished numbers: two passes, the latencies first (they set the bands), then the join.
use super::analysed::Analysed;
use super::model::{Breakdown, Report, RunReport};
use super::warnings::{self, Known};
use super::{compare, names, overhead};
use crate::explain::{Explained, bypass, explain, sides, silent};
use crate::join::Totals;
use crate::stats::{RoundLatencies, latency, total};
use crate::trace;
use capture::manifest::ServerSide;
use capture::manifest::costs::Spread;
use capture::text::printable;
use capture::text::units::count;
use capture::{Capture, Manifest, Side};
use std::path::Path;

/// Version of the JSON report.
pub const REPORT_SCHEMA_VERSION: u32 = 1;

/// The report over the captures at `dir` (one, or a tree of them).
///
/// # Errors
/// What opening and reading can meet, where no capture can be read. One that cannot be read beside others is named in the report.
pub fn of_folder(dir: &Path) -> capture::Result<Report> {
    let (mut analysed, mut traces, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    let mut first_error = None;
    for found in capture::find(dir)? {
        let path = printable(&found.strip_prefix(dir).unwrap_or(&found).to_string_lossy());
        let path = if path.is_empty() { ".".into() } else { path };
        let read = Capture::open(&found).and_then(|mut capture| {
            if capture.manifest.trace.is_some() {
                traces.push(trace::load(&mut capture, path)?);
            } else {
                analysed.push(of_capture(&found, path)?);
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
    let mut comparisons = compare::all(&analysed);
    names::of_comparisons(&mut comparisons);
    let mut runs: Vec<RunReport> = analysed.into_iter().map(|it| it.report).collect();
    names::of_runs(&mut runs);
    let silent: Vec<_> = runs.iter().map(|run| silent::of(&run.manifest, runs.iter().map(|run| &run.manifest))).collect();
    for (run, silent) in runs.iter_mut().zip(silent) {
        run.silent = silent;
    }
    let mut warnings: Vec<String> =
        unreadable.iter().map(|why| format!("UNREADABLE: {why}. This capture is in no figure; the others are.")).collect();
    warnings.extend(warnings::of_report(&runs));
    Ok(Report { schema_version: REPORT_SCHEMA_VERSION, runs, comparisons, traces, unreadable, warnings })
}

/// Analyses one capture.
///
/// # Errors
/// As [`of_folder`].
pub fn of_capture(dir: &Path, path: String) -> capture::Result<Analysed> {
    let mut capture = Capture::open(dir)?;
    if capture.manifest.side == Side::Server {
        return Err(capture::Error::ServerSide { path: dir.to_path_buf() });
    }
    let mut seen = RoundLatencies::read(&mut capture)?;
    let manifest = capture.manifest.clone();
    let failed = total(manifest.rounds.iter().filter(|round| !round.warmup).map(|round| round.failed)).max(seen.failed);
    let metric = manifest.run.metric;
    let mut untraced_ns: Vec<u64> = seen.untraced.values().flatten().copied().collect();
    let mut traced_ns: Vec<u64> = seen.traced.values().flatten().copied().collect();
    let observer = overhead::observer(&seen);
    let traced = latency(metric, &mut traced_ns, failed);
    let untraced = latency(metric, &mut untraced_ns, failed);
    let joined = if traced.is_some() && manifest.plan.iter().any(|row| row.attached) {
        Some(explain(&mut capture, &manifest, &traced_ns)?)
    } else {
        None
    };
    let mut warnings = manifest.notes.clone();
    warnings.append(&mut capture.notes);
    let unknown: u64 = capture.unknown_kinds.values().sum();
    if unknown > 0 {
        warnings.push(format!("{} records are of kinds that this version does not know; they were skipped", count(unknown)));
    }
    warnings.extend(warnings::of_samples(&seen));
    if failed > 0 {
        warnings.push(format!("{} operations failed; they have no latency and are in no figure", count(failed)));
    }
    let (breakdown, slept_share, totals) = match joined {
        Some(Explained { breakdown, slept, totals }) => {
            let share = if breakdown.samples > 0 { slept as f64 / breakdown.samples as f64 } else { 0.0 };
            (Some(breakdown), manifest.run.mode.may_sleep().then_some(share), totals)
        }
        None => (None, None, Totals::default()),
    };
    let loss_share = loss_share(&manifest, breakdown.as_ref(), totals).max(seen.missing_share());
    let known = Known { manifest: &manifest, breakdown: breakdown.as_ref(), slept_share, loss_share, totals };
    warnings.extend(warnings::of_run(&known));
    let (two_sides, two_sides_absent) = match sides::of(dir, &manifest) {
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
        post: Spread::of(&mut seen.post_ns),
        server_residency: overhead::server_residency(&manifest),
        bypass: bypass::of(&manifest),
        cpu: overhead::cpu_cost(&manifest, !seen.untraced.is_empty()),
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

/// The larger of: records that the probes could not write, records that could not be read, samples flagged LOST.
fn loss_share(manifest: &Manifest, breakdown: Option<&Breakdown>, totals: Totals) -> f64 {
    let share = |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 / all as f64 };
    let attempted = total(manifest.losses.iter().map(|row| row.attempted));
    let lost = total(manifest.losses.iter().map(|row| row.lost));
    let samples = breakdown.map_or(0.0, |it| share(it.lost, it.samples));
    share(lost, attempted.max(lost)).max(samples).max(share(totals.undecoded, totals.events))
}
