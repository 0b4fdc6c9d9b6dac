//! Traces of programs that are not ours: a table of the CQs, their stages, interrupts and histograms.
use super::markup::{Cell, WITHHELD, esc, paragraph, table, time_or};
use crate::report::model::Report;
use crate::trace::model::{CqReport, TraceReport};
use crate::trace::text::bin_ends;
use capture::text::units::{count, ns, percent};
use std::fmt::Write as _;

/// One part per trace; nothing where there is none.
pub(super) fn sections(out: &mut String, report: &Report) {
    for trace in &report.traces {
        one(out, trace);
    }
}

fn one(out: &mut String, trace: &TraceReport) {
    let _ = writeln!(out, "<section><h2>Trace {}</h2>", esc(&trace.path));
    let facts = trace.manifest.trace.as_ref();
    let asked = facts.map_or("", |facts| facts.targets.as_str());
    let names: Vec<String> = facts.into_iter().flat_map(|facts| &facts.processes).map(|it| format!("{} ({})", it.comm, it.tgid)).collect();
    let text = format!(
        "{} for {}: {}",
        asked,
        ns(trace.duration_ns as f64),
        if names.is_empty() { "no process".into() } else { names.join(", ") }
    );
    paragraph(out, &text);
    for condition in &trace.conditions {
        let text = format!("{} (process {}): {}", condition.name, condition.tgid, condition.sentence);
        let _ = writeln!(out, "<p class=\"alert\">{}</p>", esc(&text));
    }
    for warning in &trace.warnings {
        paragraph(out, warning);
    }
    let rows: Vec<Vec<Cell>> = trace.cqs.iter().map(row).collect();
    let head = [
        "CQ",
        "events",
        "complete",
        "woke a sleeper",
        "already woken",
        "on its CPU",
        "slept elsewhere",
        "unresolved",
        "not read",
        "CQEs",
        "what to know",
    ];
    table(out, "Completion events per CQ", &head, &rows);
    for cq in trace.cqs.iter().filter(|cq| !cq.stages.is_empty()) {
        stages(out, cq);
    }
    for it in &trace.histograms {
        let caption = format!("{}: {}", it.name, it.meaning);
        if let Some(why) = it.absent {
            paragraph(out, &format!("{caption}. None: {why}."));
            continue;
        }
        let bins = it.histogram.bins.iter().enumerate().filter(|(_, n)| **n > 0);
        let rows: Vec<Vec<Cell>> = bins
            .map(|(bin, n)| {
                let (from, below) = bin_ends(bin, it.is_time);
                vec![Cell::Head(from), Cell::Num(below), Cell::Num(count(*n))]
            })
            .collect();
        table(out, &caption, &["from", "to below", "n"], &rows);
    }
    let rows: Vec<Vec<Cell>> = trace
        .interrupts
        .iter()
        .map(|it| {
            let counts: Vec<String> = it.counts.iter().map(|(cpu, n)| format!("CPU {cpu}: {}", count(*n))).collect();
            let handling = |value: Option<f64>| time_or(value, WITHHELD);
            let mut row = vec![Cell::Head(it.irq.to_string()), Cell::Text(it.name.clone()), Cell::Text(counts.join(", "))];
            row.push(handling(it.handling.and_then(|it| it.p50_ns)));
            row.push(handling(it.handling.map(|it| it.max_ns)));
            row
        })
        .collect();
    if rows.is_empty() {
        paragraph(out, "No device interrupt came.");
    } else {
        table(out, "Interrupts per vector and CPU", &["interrupt", "name", "times", "handling p50", "handling max"], &rows);
    }
    paragraph(out, "What a program finds by polling, and when, cannot be seen from outside: it does not enter the kernel.");
    out.push_str("</section>\n");
}

fn row(cq: &CqReport) -> Vec<Cell> {
    let id = cq.restrack_id.map_or_else(|| format!("{:#x}", cq.user_handle), |id| id.to_string());
    let it = cq.outcomes;
    let mut row = vec![Cell::Head(format!("{id} of {} ({})", cq.comm, cq.tgid)), Cell::Num(count(cq.events))];
    row.push(cq.complete_share.map_or(Cell::Missing("none was read"), |share| Cell::Num(percent(share))));
    let numbers =
        [it.woken, it.runnable, it.running + it.woken_on_cpu, it.elsewhere, it.incomplete + it.unmatched, it.unread + it.discarded];
    row.extend(numbers.map(|n| Cell::Num(count(n))));
    row.push(cq.cqes.map_or(Cell::Missing("not visible"), |cqes| Cell::Num(count(cqes))));
    row.push(Cell::Text(cq.note.clone().unwrap_or_default()));
    row
}

fn stages(out: &mut String, cq: &CqReport) {
    let rows: Vec<Vec<Cell>> = cq
        .stages
        .iter()
        .map(|stage| {
            let it = stage.spread;
            let mut row = vec![Cell::Head(stage.name.to_owned()), Cell::Num(count(it.n))];
            row.extend([it.p50_ns, it.p90_ns, it.p99_ns, Some(it.max_ns)].map(|value| time_or(value, WITHHELD)));
            row
        })
        .collect();
    let id = cq.restrack_id.map_or_else(|| format!("{:#x}", cq.user_handle), |id| id.to_string());
    table(out, &format!("Stages of CQ {id} of {} ({})", cq.comm, cq.tgid), &["stage", "n", "p50", "p90", "p99", "max"], &rows);
}
