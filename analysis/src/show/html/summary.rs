//! The first tables: latency and CPU per operation and mode, and poll against event.
use super::groups::{folder, metric_meaning, metric_words};
use super::markup::{Cell, WITHHELD, esc, paragraph, table, time_or, utc};
use crate::report::model::{Latency, Report, RunReport};
use crate::report::{Headline, headline};
use capture::Metric;
use capture::text::units::{count, ns, ratio};

/// One line under the title: when, where, with what.
pub(super) fn lead(report: &Report) -> String {
    let Some(run) = report.runs.first() else {
        if let Some(trace) = report.traces.first() {
            let (manifest, n) = (&trace.manifest, report.traces.len());
            return format!(
                "<p class=\"lead\">{n} trace{} from {}, kernel {}, rdmascope {}</p>\n",
                if n == 1 { "" } else { "s" },
                utc(manifest.started_unix_s),
                esc(&manifest.host.kernel),
                esc(&manifest.tool_version)
            );
        }
        return "<p class=\"lead\">No capture was found, so there is nothing to show.</p>\n".to_string();
    };
    let manifest = &run.manifest;
    format!(
        "<p class=\"lead\">{} run{} from {}, kernel {}, {} ({}), rdmascope {}</p>\n",
        report.runs.len(),
        if report.runs.len() == 1 { "" } else { "s" },
        utc(manifest.started_unix_s),
        esc(&manifest.host.kernel),
        esc(&manifest.device.name),
        esc(&manifest.device.driver),
        esc(&manifest.tool_version)
    )
}

/// Latency and CPU of every run; one table per metric, because figures of different metrics do not compare.
pub(super) fn latencies(out: &mut String, report: &Report) {
    if report.runs.is_empty() {
        paragraph(out, "No runs.");
    }
    for metric in [Metric::Rtt, Metric::PostToCqe] {
        let rows: Vec<Vec<Cell>> = report.runs.iter().filter(|run| run.manifest.run.metric == metric).map(row).collect();
        if rows.is_empty() {
            continue;
        }
        let caption = format!("Latency, {} ({})", metric_words(metric), metric_meaning(metric));
        let head = [
            "operation",
            "mode",
            "metric",
            "probes",
            "n",
            "p50",
            "p90",
            "p99",
            "p99.9",
            "max",
            "mean ± stddev",
            "failed",
            "CPU/op, thread",
        ];
        table(out, &caption, &head, &rows);
    }
}

fn row(run: &RunReport) -> Vec<Cell> {
    let what = &run.manifest.run;
    let mut row = vec![
        Cell::Head(format!("{} {} B{}", what.op, what.size_bytes, folder(run))),
        Cell::Text(what.mode.to_string()),
        Cell::Text(metric_words(what.metric).to_string()),
    ];
    match headline(run) {
        Some(Headline { latency, probed }) => {
            row.push(Cell::Text(if probed { "on (no untraced rounds)" } else { "off" }.to_string()));
            row.push(Cell::Num(count(latency.n)));
            row.extend([0.5, 0.9, 0.99, 0.999].map(|q| quantile(latency, q)));
            row.push(Cell::Num(ns(latency.max_ns as f64)));
            row.push(Cell::Num(format!("{} ± {}", ns(latency.mean_ns), ns(latency.stddev_ns))));
            row.push(Cell::Num(count(latency.failed)));
        }
        None => {
            row.push(Cell::Text("none".to_string()));
            row.push(Cell::Num("0".to_string()));
            row.extend([(); 6].map(|()| Cell::Missing("no samples")));
            let failed = [&run.untraced, &run.traced].into_iter().flatten().map(|latency| latency.failed).sum();
            row.push(Cell::Num(count(failed)));
        }
    }
    row.push(time_or(run.cpu.thread_ns_per_op, "not known"));
    row
}

/// One quantile, or that it is withheld.
pub(super) fn quantile(latency: &Latency, q: f64) -> Cell {
    let value = latency.quantiles.iter().find(|quantile| (quantile.q - q).abs() < 1e-9).and_then(|quantile| quantile.value_ns);
    time_or(value.map(|ns| ns as f64), WITHHELD)
}

/// Event over poll, with intervals and the verdict.
pub(super) fn comparisons(out: &mut String, report: &Report) {
    if report.comparisons.is_empty() {
        paragraph(out, "Nothing to compare: no operation was run in both modes.");
        return;
    }
    let rows: Vec<Vec<Cell>> = report
        .comparisons
        .iter()
        .map(|comparison| {
            let times = |value: Option<f64>| value.map_or(Cell::Missing("withheld"), |value| Cell::Num(format!("{} ×", ratio(value))));
            let p50 = match (comparison.p50_ratio, comparison.p50_ratio_interval) {
                (Some(value), Some((from, to))) => Cell::Num(format!("{} × [{}, {}]", ratio(value), ratio(from), ratio(to))),
                (Some(value), None) => Cell::Num(format!("{} × (no interval)", ratio(value))),
                (None, _) => Cell::Missing("withheld"),
            };
            let class = if comparison.verdict.is_withheld() { "withheld" } else { "verdict" };
            let verdict = format!("<span class=\"{class}\">{}</span>", esc(&comparison.verdict.to_string()));
            vec![Cell::Head(comparison.name.clone()), p50, times(comparison.p99_ratio), times(comparison.cpu_ratio), Cell::Html(verdict)]
        })
        .collect();
    table(
        out,
        "Event over poll, from rounds without probes; intervals are 95 %, bootstrapped over rounds. Above 1 the event mode takes more.",
        &["operation", "p50 event / poll [95 %]", "p99 event / poll", "CPU/op of the thread, event / poll", "verdict"],
        &rows,
    );
}
