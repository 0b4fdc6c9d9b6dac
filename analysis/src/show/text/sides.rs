//! Both sides of a round trip as text: the lines that add up to it, what the network is made of, and the server's own stages.
use super::parts::{Style, table};
use crate::report::model::{Place, RunReport, SideLine, SidesTable, TwoSides};
use crate::show::words::sides::{SENTENCE, words};
use capture::text::units::{count, ns, percent};
use std::fmt::Write;

/// The section of one run. `full`: with the untraced table and the slow samples.
pub(super) fn section(text: &mut String, run: &RunReport, style: Style, full: bool) {
    let heading = style.bold(&format!("Both sides: {}", run.name));
    let Some(sides) = &run.two_sides else {
        if let Some(why) = run.two_sides_absent.as_ref().filter(|_| full) {
            let _ = writeln!(text, "{heading}\n  no server's side: {why}\n");
        }
        return;
    };
    let _ = writeln!(text, "{heading}");
    for (name, it) in tables(sides, full) {
        let _ = writeln!(text, "  {name}: {}", words(it));
        lines(text, &it.lines, "rtt");
    }
    if !sides.network.is_empty() {
        text.push_str("  what the network is made of (rounds with probes)\n");
        lines(text, &sides.network, "network");
    }
    if !sides.server_stages.is_empty() {
        let coverage = sides.server_coverage.map_or("unknown".into(), percent);
        let _ = writeln!(
            text,
            "  the server's own stages, packet seen → answer posted ({} joined, {} LOST; named stages cover {coverage})",
            count(sides.server_joined),
            count(sides.server_lost)
        );
        lines(text, &sides.server_stages, "stay");
    }
    for note in &sides.notes {
        let _ = writeln!(text, "  {} {note}", style.warn("!"));
    }
    if full {
        for slow in &sides.slow {
            let parts: Vec<String> = slow.lines.iter().map(|(place, name, value)| part(*place, name, *value)).collect();
            let _ = writeln!(text, "  slow wr {:#x} round {}: {} = {}", slow.wr_id, slow.round, ns(slow.rtt_ns as f64), parts.join(" + "));
        }
        let _ = writeln!(text, "  {SENTENCE}");
    }
    text.push('\n');
}

/// The tables to show: the one with the most lines, and in full both.
fn tables(sides: &TwoSides, full: bool) -> Vec<(&'static str, &SidesTable)> {
    let both = [("rounds with probes", &sides.traced), ("rounds without probes", &sides.untraced)];
    let there = both.into_iter().filter_map(|(name, table)| table.as_ref().map(|table| (name, table)));
    there.take(if full { 2 } else { 1 }).collect()
}

fn part(place: Place, name: &str, value: i64) -> String {
    // The names of the network's lines begin with it.
    let place = if place == Place::Network { String::new() } else { format!("{place} ") };
    format!("{place}{name} {}", ns(value as f64))
}

fn lines(text: &mut String, lines: &[SideLine], of: &str) {
    let mut rows =
        vec![["side", "part", "mean", &format!("of {of}"), "p50", "p99", "max", "seen in", "negative"].map(String::from).to_vec()];
    let value = |it: Option<i64>| it.map_or("-".into(), |v| ns(v as f64));
    for line in lines {
        rows.push(vec![
            line.place.to_string(),
            line.name.clone(),
            ns(line.mean_of_all_ns),
            percent(line.share),
            value(line.p50_ns),
            value(line.p99_ns),
            ns(line.max_ns as f64),
            count(line.n),
            if line.negative == 0 { String::new() } else { count(line.negative) },
        ]);
    }
    for line in table(&rows, 2).lines() {
        let _ = writeln!(text, "  {line}");
    }
}
