//! The sections of the page, each once: the order of this table is the order on the page and in its contents.
use super::charts::Pictures;
use super::groups::Group;
use super::markup::esc;
use super::{ReportError, bypass, context, costs, operation, sides, summary, traces};
use crate::report::model::Report;
use std::fmt::Write as _;

/// A row of the table.
enum Row {
    /// One section of runs, under its own title.
    Section {
        /// What links lead to.
        id: &'static str,
        /// Its name in the contents.
        link: &'static str,
        /// Its title.
        title: &'static str,
        /// Writes what stands under the title.
        body: fn(&mut String, &Report),
    },
    /// A section per operation, with its charts.
    Operations,
    /// A section per trace; the contents name none. A page without runs has only these.
    Traces,
}

const fn section(id: &'static str, link: &'static str, title: &'static str, body: fn(&mut String, &Report)) -> Row {
    Row::Section { id, link, title, body }
}

static SECTIONS: &[Row] = &[
    Row::Traces,
    section("summary", "Summary", "Summary", summary::latencies),
    section("compare", "Poll against event", "Poll against event", summary::comparisons),
    Row::Operations,
    section("sides", "Both sides", "Both sides: client, network, server", sides::body),
    section("costs", "What a poll and a post cost", "What a poll and a post cost", costs::body),
    section("bypass", "Proof of bypass", "Proof of bypass", bypass::body),
    section("observer", "Cost of the probes", "Cost of the probes", context::observer),
    section("silent", "Silent hooks", "Silent hooks and their controls", context::silent),
    section("plan", "Probe plan", "Probe plan", context::plan),
    section("losses", "Losses", "Losses", context::losses),
    section("placement", "Placement", "Placement", context::placement),
    section("environment", "Environment", "Environment", context::environment),
    section("reading", "How to read it", "How to read it", how_to_read),
];

/// The contents: a link to every section; nothing where there are no runs.
pub(super) fn contents(out: &mut String, report: &Report, groups: &[Group<'_>]) {
    if report.runs.is_empty() {
        return;
    }
    out.push_str("<nav aria-label=\"Contents\"><ul>\n");
    for row in SECTIONS {
        match row {
            Row::Section { id, link, .. } => item(out, id, link),
            Row::Operations => groups.iter().for_each(|group| item(out, &group.anchor, &group.name())),
            Row::Traces => {}
        }
    }
    out.push_str("</ul></nav>\n");
}

fn item(out: &mut String, id: &str, link: &str) {
    let _ = writeln!(out, "<li><a href=\"#{id}\">{}</a></li>", esc(link));
}

/// Every section, in order.
pub(super) fn all(out: &mut String, report: &Report, groups: &[Group<'_>], pictures: &mut Pictures) -> Result<(), ReportError> {
    let only_traces = report.runs.is_empty() && !report.traces.is_empty();
    for row in SECTIONS {
        match row {
            Row::Traces => traces::sections(out, report),
            _ if only_traces => {}
            Row::Operations => {
                for group in groups {
                    operation::section(out, report, group, pictures)?;
                }
            }
            Row::Section { id, title, body, .. } => {
                let _ = writeln!(out, "<section id=\"{id}\"><h2>{}</h2>", esc(title));
                body(out, report);
                out.push_str("</section>\n");
            }
        }
    }
    Ok(())
}

fn how_to_read(out: &mut String, _report: &Report) {
    out.push_str(include_str!("how-to-read.html"));
}
