//! The report in the terminal: warnings, one line per operation and mode, the stages of event mode, the comparisons.
mod fire;
mod parts;
mod runs;
mod sides;

pub use fire::fire;

use crate::report::model::Report;
use crate::report::{Headline, headline};
use crate::trace;
use capture::text::units::{count, ns};
use parts::{Style, metric, quantile, table};
use std::fmt::Write;

/// The sections of the text in order. Each writes nothing where it has nothing to say; the flag asks for every run in full.
static SECTIONS: &[fn(&mut String, &Report, Style, bool)] =
    &[alerts, summary, comparisons, each_run, how_to_read_costs, warnings_of_runs, traces];

/// The whole text. `full`: every run with its stages, bands, flags and slow samples; else the summary.
pub fn render(report: &Report, full: bool, color: bool) -> String {
    let mut text = String::new();
    for section in SECTIONS {
        section(&mut text, report, Style(color), full);
    }
    text
}

fn alerts(text: &mut String, report: &Report, style: Style, _full: bool) {
    for warning in &report.warnings {
        let _ = writeln!(text, "{} {warning}", style.warn("!"));
    }
    if !report.warnings.is_empty() {
        text.push('\n');
    }
}

fn each_run(text: &mut String, report: &Report, style: Style, full: bool) {
    for run in &report.runs {
        if full {
            runs::full(text, run, style);
        } else if run.manifest.run.mode.may_sleep() {
            runs::stages(text, run, style);
        } else if let Some(breakdown) = &run.breakdown {
            let _ = writeln!(text, "{}", style.bold(&format!("What disturbed: {}", run.name)));
            runs::interference(text, breakdown, style);
            text.push('\n');
        }
        sides::section(text, run, style, full);
    }
}

fn how_to_read_costs(text: &mut String, report: &Report, style: Style, full: bool) {
    if full && !report.runs.is_empty() {
        runs::cost_sentences(text, style);
    }
}

fn traces(text: &mut String, report: &Report, style: Style, full: bool) {
    for it in &report.traces {
        let _ = writeln!(text, "{}", style.bold(&format!("Trace {}", it.path)));
        text.push_str(&trace::text::render(it, full));
        text.push('\n');
    }
}

fn summary(text: &mut String, report: &Report, style: Style, _full: bool) {
    if report.runs.is_empty() && !report.traces.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}", style.bold("Latency per operation and mode"));
    let header = ["op", "mode", "size", "metric", "n", "p50", "p99", "p99.9", "max", "CPU/op", "rounds"];
    let mut rows = vec![header.map(String::from).to_vec()];
    let folders = report.runs.iter().any(|run| run.has_twin);
    if folders {
        rows[0].push("capture".into());
    }
    for run in &report.runs {
        let setup = &run.manifest.run;
        let mut row = vec![setup.op.to_string(), setup.mode.to_string(), format!("{} B", setup.size_bytes)];
        let headline = headline(run);
        match headline {
            Some(Headline { latency, .. }) => {
                row.push(metric(latency).into());
                row.push(count(latency.n));
                row.extend([0.5, 0.99, 0.999].map(|q| quantile(latency, q)));
                row.push(ns(latency.max_ns as f64));
            }
            None => row.extend(["-", "0", "-", "-", "-", "-"].map(String::from)),
        }
        row.push(run.cpu.thread_ns_per_op.map_or("unknown".into(), ns));
        row.push(match headline {
            Some(Headline { probed: false, .. }) => "untraced".into(),
            Some(Headline { probed: true, .. }) => "traced".into(),
            None => "none".into(),
        });
        if folders {
            row.push(run.path.clone());
        }
        rows.push(row);
    }
    text.push_str(&table(&rows, 2));
    text.push_str("  (CPU/op: the measured thread. A dash: withheld, fewer than ten samples lie above that quantile.)\n\n");
}

fn comparisons(text: &mut String, report: &Report, style: Style, _full: bool) {
    if report.comparisons.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}", style.bold("Poll against event"));
    for it in &report.comparisons {
        let verdict = it.verdict.to_string();
        let verdict = if it.verdict.is_withheld() { style.warn(&verdict) } else { verdict };
        let _ = writeln!(text, "  {}: {verdict}", it.name);
    }
    text.push('\n');
}

fn warnings_of_runs(text: &mut String, report: &Report, style: Style, _full: bool) {
    let mut seen: Vec<(&str, Vec<&str>)> = Vec::new();
    for run in &report.runs {
        for warning in &run.warnings {
            match seen.iter_mut().find(|(known, _)| known == warning) {
                Some((_, runs)) => runs.push(&run.name),
                None => seen.push((warning, vec![&run.name])),
            }
        }
    }
    if seen.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}", style.bold("What to know about single runs"));
    for (warning, runs) in seen {
        let which = if runs.len() == report.runs.len() && runs.len() > 1 { "all runs".into() } else { runs.join(", ") };
        let _ = writeln!(text, "  {} {which}: {warning}", style.warn("!"));
    }
}
