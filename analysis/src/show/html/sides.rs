//! Both sides of the round trips, per run.
use super::groups::run_words;
use super::markup::{Cell, WITHHELD, esc, paragraph, table, time_or};
use crate::report::model::{Report, RunReport, SideLine, TwoSides};
use crate::show::words::sides::{SENTENCE, words};
use capture::text::units::{count, ns, percent};
use std::fmt::Write as _;

const HEAD: [&str; 10] = ["side", "part", "mean", "share", "p50", "p99", "max", "n", "negative", "meaning"];

/// What stands under the title.
pub(super) fn body(out: &mut String, report: &Report) {
    let found: Vec<(&RunReport, &TwoSides)> = report.runs.iter().filter_map(|run| Some((run, run.two_sides.as_ref()?))).collect();
    if !found.is_empty() {
        paragraph(out, SENTENCE);
    }
    for (run, sides) in found {
        one(out, run, sides);
    }
    for run in &report.runs {
        if let Some(why) = &run.two_sides_absent {
            paragraph(out, &format!("No server's side of {}: {why}.", run_words(run)));
        }
    }
}

fn one(out: &mut String, run: &RunReport, sides: &TwoSides) {
    let _ = writeln!(out, "<h3>{}</h3>", esc(&run_words(run)));
    for (rounds, it) in [("with probes", &sides.traced), ("without probes", &sides.untraced)] {
        let Some(it) = it else { continue };
        table(out, &format!("Rounds {rounds}: {}. The means add up to the mean round trip.", words(it)), &HEAD, &rows(&it.lines));
    }
    if !sides.network.is_empty() {
        table(out, "What the network is made of, rounds with probes", &HEAD, &rows(&sides.network));
    }
    if !sides.server_stages.is_empty() {
        let coverage = sides.server_coverage.map_or("an unknown share".to_owned(), percent);
        let caption = format!(
            "The server's own stages, from the first sign of the packet to the return of the answer's post: {} joined, {} LOST; named stages cover {coverage}",
            count(sides.server_joined),
            count(sides.server_lost)
        );
        table(out, &caption, &HEAD, &rows(&sides.server_stages));
    }
    for note in &sides.notes {
        paragraph(out, &format!("On the server: {note}."));
    }
}

fn rows(lines: &[SideLine]) -> Vec<Vec<Cell>> {
    let row = |line: &SideLine| {
        vec![
            Cell::Text(line.place.to_string()),
            Cell::Head(line.name.clone()),
            Cell::Num(ns(line.mean_of_all_ns)),
            Cell::Num(percent(line.share)),
            time_or(line.p50_ns.map(|ns| ns as f64), WITHHELD),
            time_or(line.p99_ns.map(|ns| ns as f64), WITHHELD),
            Cell::Num(ns(line.max_ns as f64)),
            Cell::Num(count(line.n)),
            Cell::Num(count(line.negative)),
            Cell::Text(line.meaning.clone()),
        ]
    };
    lines.iter().map(row).collect()
}
