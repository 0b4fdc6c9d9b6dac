//! What a poll and a post cost, per run.
use super::groups::run_words;
use super::markup::{Cell, WITHHELD, paragraph, table};
use crate::report::model::{Report, RunReport};
use crate::show::words::costs::{Row, SENTENCES, absent, range, rows};
use capture::text::units::{count, ns};

/// What stands under the title.
pub(super) fn body(out: &mut String, report: &Report) {
    let cells: Vec<Vec<Cell>> = report.runs.iter().flat_map(|run| rows(run).into_iter().map(|row| cells(run, row))).collect();
    if cells.is_empty() {
        paragraph(out, "Not known: no run measured it.");
    } else {
        table(
            out,
            "Calls and stays, in time of the thread; none of them is a latency of an operation",
            &["run", "what", "n", "min", "p50", "p99", "max", "meaning"],
            &cells,
        );
        for sentence in SENTENCES {
            paragraph(out, sentence);
        }
        if report.runs.iter().any(|run| run.manifest.host.emulated) {
            paragraph(out, "Under emulation these durations are the emulator's and say nothing of real hardware.");
        }
    }
    for (why, runs) in reasons(report) {
        paragraph(out, &format!("Absent, which is not 0: {why}. Runs: {}.", runs.join("; ")));
    }
}

fn cells(run: &RunReport, row: Row) -> Vec<Cell> {
    let quantile = |value| range(value, ns).map_or(Cell::Missing(WITHHELD), Cell::Num);
    vec![
        Cell::Head(run_words(run)),
        Cell::Text(row.what.to_owned()),
        Cell::Num(count(row.n)),
        Cell::Num(ns(row.min_ns)),
        quantile(row.p50_ns),
        quantile(row.p99_ns),
        Cell::Num(ns(row.max_ns)),
        Cell::Text(row.means),
    ]
}

/// Each reason once, with the runs that it holds for.
fn reasons(report: &Report) -> Vec<(String, Vec<String>)> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for run in &report.runs {
        for why in absent(run) {
            match reasons.iter_mut().find(|it| it.0 == why) {
                Some(known) => known.1.push(run_words(run)),
                None => reasons.push((why, vec![run_words(run)])),
            }
        }
    }
    reasons
}
