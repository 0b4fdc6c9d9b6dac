//! What a reader must know before any number: emulation, withheld verdicts, runs that did not end well, losses, warnings of runs.
use super::groups::run_words;
use super::markup::esc;
use crate::report::model::Report;
use capture::limits::LOSS_LIMIT;
use capture::manifest::Outcome;
use capture::text::units::loss;
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
    let mut all: Vec<String> = Vec::new();
    let emulated: Vec<String> =
        report.runs.iter().filter(|run| run.manifest.host.emulated).map(|run| run.manifest.run.index.to_string()).collect();
    let said = report.warnings.iter().any(|warning| warning.to_lowercase().contains("emulat"));
    if !emulated.is_empty() && !said {
        let which = if emulated.len() == report.runs.len() { "all runs".to_string() } else { format!("runs {}", emulated.join(", ")) };
        all.push(format!("Emulated CPU ({which}): order, counts and shares hold, durations are the emulator's, not a machine's."));
    }
    all.extend(report.warnings.iter().cloned());
    let mut withheld: Vec<(&str, Vec<String>)> = Vec::new();
    for comparison in report.comparisons.iter().filter(|comparison| comparison.withheld) {
        add(&mut withheld, &comparison.verdict, comparison.name.clone());
    }
    for (reason, ops) in withheld {
        let reason = reason.strip_prefix("withheld: ").unwrap_or(reason);
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
        let loss_said = run.warnings.iter().any(|warning| warning.to_lowercase().contains("lost"));
        if run.loss_share > LOSS_LIMIT && !loss_said {
            all.push(format!("{}: {} of the records were lost; stages and tails may be wrong", run_words(run), loss(run.loss_share)));
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
