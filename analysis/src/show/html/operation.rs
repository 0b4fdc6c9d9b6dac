//! One operation: its charts, and for each of its runs the stages, the bands and the slow samples.
use super::ReportError;
use super::charts::{Pictures, distribution, run_heading};
use super::groups::{Group, folder, metric_meaning, metric_words, run_anchor};
use super::markup::{Cell, WITHHELD, esc, paragraph, table, time_or};
use crate::report::model::{Breakdown, Interference, Report, RunReport, SlowSample, StageStat};
use crate::show::plots::bands::drawn_stages;
use crate::show::plots::style::ink_on;
use crate::show::plots::{CHARTS, Subject};
use crate::show::words::overlay;
use capture::text::units::{count, ns, percent};
use capture::{Level, Mode};
use std::fmt::Write as _;

/// Slow samples that get a picture; the table has all of them.
const WATERFALLS: usize = 3;

/// The section of one operation.
pub(super) fn section(out: &mut String, report: &Report, group: &Group<'_>, pictures: &mut Pictures) -> Result<(), ReportError> {
    let _ = write!(
        out,
        "<section id=\"{}\" class=\"operation\"><h2>{}</h2>\n<p>Latency here is {}: {}.</p>\n<div class=\"charts\">\n",
        group.anchor,
        esc(&group.name()),
        metric_words(group.metric),
        metric_meaning(group.metric)
    );
    let name = &group.anchor;
    for kind in CHARTS {
        if let Subject::Operation { probed, make } = kind.of {
            out.push_str(&pictures.figure(&format!("{name}-{}", kind.name), kind.wide, &*make(distribution(group, probed)))?);
        }
    }
    // The event mode's stages stand beside the tail that they explain; the other runs' in their own sections.
    let staged = |sleeps: bool| group.runs.iter().position(|run| run.breakdown.is_some() && (!sleeps || run.manifest.run.mode.may_sleep()));
    let beside = staged(true).or_else(|| staged(false));
    if let Some((at, run)) = beside.map(|at| (at, group.runs[at])) {
        run_charts(out, group, run, at, true, pictures)?;
    }
    out.push_str("</div>\n");
    for (at, run) in group.runs.iter().enumerate() {
        one_run(out, report, group, run, at, beside == Some(at), pictures)?;
    }
    out.push_str("</section>\n");
    Ok(())
}

/// The charts of a run: those that may stand beside the operation's charts, or those that may not.
fn run_charts(
    out: &mut String,
    group: &Group<'_>,
    run: &RunReport,
    at: usize,
    which: bool,
    pictures: &mut Pictures,
) -> Result<(), ReportError> {
    let Some(breakdown) = &run.breakdown else { return Ok(()) };
    for kind in CHARTS {
        match kind.of {
            Subject::Run { beside, make } if beside == which => {
                let picture = make(run_heading(group, run), breakdown);
                out.push_str(&pictures.figure(&format!("{}-{}", file(run, at), kind.name), kind.wide, &*picture)?);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Begin of the names of a run's pictures.
fn file(run: &RunReport, at: usize) -> String {
    let what = &run.manifest.run;
    format!("run{:03}-{}-{}-{}-{at}", what.index, what.op, what.size_bytes, what.mode)
}

fn one_run(
    out: &mut String,
    report: &Report,
    group: &Group<'_>,
    run: &RunReport,
    at: usize,
    stages_shown: bool,
    pictures: &mut Pictures,
) -> Result<(), ReportError> {
    let what = &run.manifest.run;
    let _ = writeln!(
        out,
        "<section id=\"{}\"><h3>{}, {} mode{}: where the time went</h3>",
        run_anchor(run, at),
        esc(&group.name()),
        what.mode,
        esc(&folder(run))
    );
    if let Some(share) = run.slept_share {
        paragraph(out, &format!("{} of the traced samples slept and were woken by an event.", percent(share)));
    }
    let Some(breakdown) = &run.breakdown else {
        let why = if what.level == Level::None {
            "no probes ran (level none)".to_string()
        } else {
            format!("no kernel events (level {})", what.level)
        };
        paragraph(out, &format!("No stages: {why}, so the time between post and completion is not split."));
        out.push_str("</section>\n");
        return Ok(());
    };
    coverage(out, breakdown, !what.mode.may_sleep());
    stages(out, report, run, breakdown);
    let file = file(run, at);
    out.push_str("<div class=\"charts\">\n");
    run_charts(out, group, run, at, false, pictures)?;
    if !stages_shown {
        run_charts(out, group, run, at, true, pictures)?;
    }
    out.push_str("</div>\n");
    interference(out, &breakdown.interference, what.mode);
    slow(out, group, run, &breakdown.slow, &file, pictures)?;
    out.push_str("</section>\n");
    Ok(())
}

fn coverage(out: &mut String, breakdown: &Breakdown, polling: bool) {
    let mut text = format!(
        "{} of {} traced samples were joined with kernel events; {} LOST. Named stages cover {} of the total time, and at least 90 % of the time in {} of the samples.",
        count(breakdown.joined),
        count(breakdown.samples),
        count(breakdown.lost),
        percent(breakdown.coverage),
        percent(breakdown.covered_samples)
    );
    match &breakdown.agreement {
        Some(agreement) => {
            let _ = write!(
                text,
                " The inferred join (by CQ and time) named the trigger that the exact one knows in {} of {} samples.",
                count(agreement.agreed),
                count(agreement.compared)
            );
        }
        // Polling has no wake-up whose trigger could be inferred.
        None if polling => {}
        None => text.push_str(" The inferred join (by CQ and time) could not be checked against an exact one in this run."),
    }
    if !breakdown.flags.is_empty() {
        let flags: Vec<String> = breakdown.flags.iter().map(|(flag, n)| format!("{flag} {}", count(*n))).collect();
        let _ = write!(text, " Flagged samples: {}.", flags.join(", "));
    }
    paragraph(out, &text);
}

fn stages(out: &mut String, report: &Report, run: &RunReport, breakdown: &Breakdown) {
    let drawn = drawn_stages(breakdown);
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut absent: Vec<&str> = Vec::new();
    for stage in &breakdown.stages {
        if stage.n == 0 && !stage.stage.is_unattributed() {
            absent.push(stage.stage.name());
        } else {
            rows.push(stage_row(stage, drawn.iter().position(|drawn| *drawn == stage.stage)));
        }
    }
    // A stage that other runs of this report have and this one does not list at all is absent here too.
    for stage in report.runs.iter().filter_map(|run| run.breakdown.as_ref()).flat_map(|other| &other.stages) {
        if !breakdown.stages.iter().any(|own| own.stage == stage.stage) && !absent.contains(&stage.stage.name()) {
            absent.push(stage.stage.name());
        }
    }
    if rows.is_empty() {
        paragraph(out, "No stage was seen in any sample.");
    } else {
        table(
            out,
            "Stages in path order, rounds with probes. The means are over all joined samples and add up to the mean latency; the number is the one in the chart.",
            &["stage", "share of the time", "mean of all", "n", "p50", "p99", "max", "negative", "meaning"],
            &rows,
        );
    }
    if !absent.is_empty() {
        paragraph(out, &format!("Absent in this run, which is not the same as 0: {}.", absent.join("; ")));
    }
    let hooks: Vec<String> = run
        .manifest
        .plan
        .iter()
        .filter(|row| row.symbol.is_none() || !row.attached)
        .map(|row| format!("{} ({})", row.hook, row.reason))
        .collect();
    if !hooks.is_empty() {
        paragraph(out, &format!("Hooks that were not there: {}.", hooks.join("; ")));
    }
}

fn stage_row(stage: &StageStat, number: Option<usize>) -> Vec<Cell> {
    let color = stage.stage.row().colour;
    let ink = ink_on(color);
    let hatch = if stage.stage.is_unattributed() { " hatched" } else { "" };
    let chip = format!(
        "<span class=\"chip{hatch}\" style=\"background-color:{};color:{}\">{}</span> {}",
        hex(color),
        hex(ink),
        number.map_or_else(|| "·".to_string(), |at| (at + 1).to_string()),
        esc(stage.stage.name())
    );
    let missing = if stage.n == 0 { "none seen" } else { WITHHELD };
    let width = if stage.share.is_finite() { (stage.share * 100.0).clamp(0.0, 100.0) } else { 0.0 };
    let bar = format!(
        "<span class=\"share\"><span class=\"track\"><span class=\"fill{hatch}\" style=\"width:{width:.2}%;background-color:{}\"></span></span>{}</span>",
        hex(color),
        percent(stage.share)
    );
    vec![
        Cell::Html(chip),
        Cell::Html(bar),
        Cell::Num(ns(stage.mean_of_all_ns)),
        Cell::Num(count(stage.n)),
        time_or(stage.p50_ns.map(|ns| ns as f64), missing),
        time_or(stage.p99_ns.map(|ns| ns as f64), missing),
        Cell::Num(ns(stage.max_ns as f64)),
        Cell::Num(count(stage.negative)),
        Cell::Text(stage.meaning.to_owned()),
    ]
}

fn interference(out: &mut String, it: &Interference, mode: Mode) {
    let _ = writeln!(out, "<h4>What took the thread's CPU, {mode} mode</h4>");
    paragraph(out, &format!("An overlay, not a stage: the stages hold that time too. Interference was {}.", overlay::summary(it)));
    let rows: Vec<Vec<Cell>> = overlay::rows(it)
        .into_iter()
        .map(|[source, times, samples, total, max]| {
            vec![Cell::Text(source), Cell::Num(times), Cell::Num(samples), Cell::Num(total), Cell::Num(max)]
        })
        .collect();
    if !rows.is_empty() {
        table(out, "By source, net of what was nested in it", &["source", "times", "samples", "in all", "longest"], &rows);
    }
    for sentence in overlay::sentences(it) {
        paragraph(out, &sentence);
    }
}

fn hex(color: (u8, u8, u8)) -> String {
    format!("#{:02x}{:02x}{:02x}", color.0, color.1, color.2)
}

fn slow(
    out: &mut String,
    group: &Group<'_>,
    run: &RunReport,
    slow: &[SlowSample],
    file: &str,
    pictures: &mut Pictures,
) -> Result<(), ReportError> {
    if slow.is_empty() {
        return Ok(());
    }
    let _ = writeln!(out, "<h4>Slow samples, {} mode</h4>", run.manifest.run.mode);
    let rows: Vec<Vec<Cell>> = slow
        .iter()
        .enumerate()
        .map(|(at, sample)| {
            vec![
                Cell::Num((at + 1).to_string()),
                Cell::Num(ns(sample.total_ns as f64)),
                Cell::Text(sample.verdict.clone()),
                Cell::Text(if sample.flags.is_empty() { "none".to_string() } else { sample.flag_names().join(", ") }),
                Cell::Num(sample.round.to_string()),
                Cell::Html(format!("<code>{:#x}</code>", sample.wr_id)),
            ]
        })
        .collect();
    table(out, "The slowest samples of the rounds with probes", &["rank", "total", "verdict", "flags", "round", "wr_id"], &rows);
    out.push_str("<div class=\"charts\">\n");
    for (at, sample) in slow.iter().take(WATERFALLS).enumerate() {
        for kind in CHARTS {
            if let Subject::Sample { make } = kind.of {
                let picture = make(run_heading(group, run), at + 1, sample);
                out.push_str(&pictures.figure(&format!("{file}-{}{}", kind.name, at + 1), kind.wide, &*picture)?);
            }
        }
    }
    out.push_str("</div>\n");
    Ok(())
}
