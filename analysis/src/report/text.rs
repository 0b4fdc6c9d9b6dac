//! The report in the terminal: warnings, one line per operation and mode, the stages of event mode, the comparisons.
use super::{runs, sides};
use crate::analyse::headline;
use crate::model::{Latency, Report};
use crate::trace;
use crate::units::{count, ns, percent};
use std::fmt::Write;

/// Emphasis where the terminal can, nothing where not.
#[derive(Clone, Copy)]
pub(super) struct Style(bool);

impl Style {
    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(super) fn warn(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(super) fn bar(self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// A table with aligned columns: the first `left` to the left, the others to the right.
pub(super) fn table(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(
                |(column, cell)| {
                    if column < left { format!("{cell:<w$}", w = widths[column]) } else { format!("{cell:>w$}", w = widths[column]) }
                },
            )
            .collect();
        text.push_str("  ");
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// The whole text. `full`: every run with its stages, bands, flags and slow samples; else the summary.
pub fn render(report: &Report, full: bool, color: bool) -> String {
    let style = Style(color);
    let mut text = String::new();
    for warning in &report.warnings {
        let _ = writeln!(text, "{} {warning}", style.warn("!"));
    }
    if !report.warnings.is_empty() {
        text.push('\n');
    }
    if !report.runs.is_empty() || report.traces.is_empty() {
        summary(&mut text, report, style);
    }
    comparisons(&mut text, report, style);
    for run in &report.runs {
        if full {
            runs::full(&mut text, run, style);
        } else if run.manifest.run.mode != "poll" {
            runs::stages(&mut text, run, style);
        } else if let Some(breakdown) = &run.breakdown {
            let _ = writeln!(text, "{}", style.bold(&format!("What disturbed: {}", run.name)));
            runs::interference(&mut text, breakdown, style);
            text.push('\n');
        }
        sides::section(&mut text, run, style, full);
    }
    if full && !report.runs.is_empty() {
        runs::cost_sentences(&mut text, style);
    }
    warnings(&mut text, report, style);
    for it in &report.traces {
        let _ = writeln!(text, "{}", style.bold(&format!("Trace {}", it.path)));
        text.push_str(&trace::text::render(it, full));
        text.push('\n');
    }
    text
}

fn summary(text: &mut String, report: &Report, style: Style) {
    let _ = writeln!(text, "{}", style.bold("Latency per operation and mode"));
    let header = ["op", "mode", "size", "metric", "n", "p50", "p99", "p99.9", "max", "CPU/op", "rounds"];
    let mut rows = vec![header.map(String::from).to_vec()];
    let folders = report.runs.iter().any(|run| run.has_twin);
    if folders {
        rows[0].push("capture".into());
    }
    for run in &report.runs {
        let setup = &run.manifest.run;
        let mut row = vec![setup.op.clone(), setup.mode.clone(), format!("{} B", setup.size_bytes)];
        match headline(run) {
            Some(latency) => {
                row.push(metric(latency).into());
                row.push(count(latency.n));
                row.extend([0.5, 0.99, 0.999].map(|q| quantile(latency, q)));
                row.push(ns(latency.max_ns as f64));
            }
            None => row.extend(["-", "0", "-", "-", "-", "-"].map(String::from)),
        }
        row.push(run.cpu.thread_ns_per_op.map_or("unknown".into(), ns));
        row.push(if run.untraced.is_some() { "untraced" } else { "traced" }.into());
        if folders {
            row.push(run.path.clone());
        }
        rows.push(row);
    }
    text.push_str(&table(&rows, 2));
    text.push_str("  (CPU/op: the measured thread. A dash: withheld, fewer than ten samples lie above that quantile.)\n\n");
}

pub(super) fn metric(latency: &Latency) -> &'static str {
    match latency.metric {
        crate::capture::manifest::Metric::PostToCqe => "post_to_cqe",
        crate::capture::manifest::Metric::Rtt => "rtt",
    }
}

pub(super) fn quantile(latency: &Latency, q: f64) -> String {
    let found = latency.quantiles.iter().find(|it| it.q == q).and_then(|it| it.value_ns);
    found.map_or("-".into(), |value| ns(value as f64))
}

fn comparisons(text: &mut String, report: &Report, style: Style) {
    if report.comparisons.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}", style.bold("Poll against event"));
    for it in &report.comparisons {
        let verdict = if it.withheld { style.warn(&it.verdict) } else { it.verdict.clone() };
        let _ = writeln!(text, "  {}: {verdict}", it.name);
    }
    text.push('\n');
}

fn warnings(text: &mut String, report: &Report, style: Style) {
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

pub(super) fn share(value: f64) -> String {
    percent(value)
}
