//! What a reader must know before any number: warnings of the report (emulation, loss), withheld verdicts, runs that did not end well,
//! warnings of runs.
use super::groups::run_words;
use super::markup::esc;
use crate::report::model::Report;
use capture::manifest::Outcome;
use std::fmt::Write as _;

/// The box at the top of the page.
pub(super) fn section(out: &mut String, report: &Report) {
    let all = collect(report);
    if all.is_empty() {
        out.push_str("<section id=\"warnings\" class=\"quiet\"><h2>Warnings</h2><p>None.</p></section>\n");
        return;
    }
    out.push_str("<section id=\"warnings\" class=\"alert\"><h2>Warnings: read these first</h2>\n<ul>\n");
    for warning in all {
        let _ = writeln!(out, "<li>{}</li>", esc(&warning));
    }
    out.push_str("</ul></section>\n");
}

/// All warnings, the ones that touch every number first; the same sentence is said once, with the runs it is about.
fn collect(report: &Report) -> Vec<String> {
    let mut all: Vec<String> = report.warnings.clone();
    let mut withheld: Vec<(&str, Vec<String>)> = Vec::new();
    for comparison in &report.comparisons {
        if let Some(why) = comparison.verdict.why_withheld() {
            add(&mut withheld, why, comparison.name.clone());
        }
    }
    for (reason, ops) in withheld {
        all.push(format!("Poll or event, verdict withheld for {}: {reason}", ops.join(", ")));
    }
    for run in &report.runs {
        match &run.manifest.outcome {
            Outcome::Complete => {}
            Outcome::Recording => {
                all.push(format!("{}: the recording has no end (killed, or still running); what it holds so far is shown", run_words(run)))
            }
            Outcome::Interrupted => all.push(format!("{}: stopped by the user before its end", run_words(run))),
            Outcome::Unstable(why) => all.push(format!("{}: UNSTABLE, the machine was too noisy to say: {why}", run_words(run))),
            Outcome::Failed(why) => all.push(format!("{}: FAILED: {why}", run_words(run))),
        }
    }
    let mut of_runs: Vec<(&str, Vec<String>)> = Vec::new();
    for run in &report.runs {
        for warning in run.warnings.iter().filter(|warning| !report.warnings.contains(warning)) {
            add(&mut of_runs, warning, run.name.clone());
        }
    }
    all.extend(of_runs.into_iter().map(|(warning, runs)| format!("{}: {warning}", runs.join(", "))));
    all
}

fn add<'a>(list: &mut Vec<(&'a str, Vec<String>)>, text: &'a str, whom: String) {
    match list.iter_mut().find(|entry| entry.0 == text) {
        Some(entry) => {
            if !entry.1.contains(&whom) {
                entry.1.push(whom);
            }
        }
        None => list.push((text, vec![whom])),
    }
}
