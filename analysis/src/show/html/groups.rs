//! Runs that may be drawn into one chart: the same operation, size, transport and metric.
use crate::report::model::{Report, RunReport};
use crate::report::names;
use capture::{Metric, Operation, Transport};

/// A group of runs.
pub(super) struct Group<'a> {
    pub op: Operation,
    pub size_bytes: u32,
    pub transport: Option<Transport>,
    pub metric: Metric,
    pub runs: Vec<&'a RunReport>,
    /// Name for links and files: letters, digits and dashes, unique within the report.
    pub anchor: String,
}

impl Group<'_> {
    /// What was run, such as `send, 64 B, RC`.
    pub(super) fn name(&self) -> String {
        format!("{}, {} B, {}", self.op, self.size_bytes, names::of_transport(self.transport))
    }

    /// Any run under instruction emulation?
    pub(super) fn emulated(&self) -> bool {
        self.runs.iter().any(|run| run.manifest.host.emulated)
    }
}

/// All groups, in order of their first run.
pub(super) fn of(report: &Report) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for run in &report.runs {
        let what = &run.manifest.run;
        let known = groups.iter_mut().find(|group| {
            group.op == what.op && group.size_bytes == what.size_bytes && group.transport == what.transport && group.metric == what.metric
        });
        match known {
            Some(group) => group.runs.push(run),
            None => {
                let mut anchor = format!("{}-{}B-{}", what.op, what.size_bytes, file_name(names::of_transport(what.transport)));
                if groups.iter().any(|group| group.anchor == anchor) {
                    anchor.push_str(&format!("-{}", groups.len()));
                }
                groups.push(Group {
                    op: what.op,
                    size_bytes: what.size_bytes,
                    transport: what.transport,
                    metric: what.metric,
                    runs: vec![run],
                    anchor,
                });
            }
        }
    }
    groups
}

/// Letters, digits, dots and dashes of a name; others become dashes.
pub(super) fn file_name(text: &str) -> String {
    let name: String = text.chars().take(40).map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    if name.is_empty() { "unnamed".to_string() } else { name }
}

/// The metric in words.
pub(super) fn metric_words(metric: Metric) -> &'static str {
    match metric {
        Metric::Rtt => "rtt",
        Metric::PostToCqe => "post→CQE",
    }
}

/// The metric explained.
pub(super) fn metric_meaning(metric: Metric) -> &'static str {
    match metric {
        Metric::Rtt => "round trip: from before the own post to the answer of the peer",
        Metric::PostToCqe => "from before the post to the own completion of the same WR",
    }
}

/// A run as words in tables: mode and run number, escaped where `esc` is needed by the caller.
pub(super) fn run_words(run: &RunReport) -> String {
    let what = &run.manifest.run;
    format!("run {}: {} {} B, {}{}", what.index, what.op, what.size_bytes, what.mode, folder(run))
}

/// The folder of a run in brackets where only it tells the run from another; else nothing. Not escaped.
pub(super) fn folder(run: &RunReport) -> String {
    if run.has_twin { format!(" ({})", run.path) } else { String::new() }
}

/// A link target for a run.
pub(super) fn run_anchor(run: &RunReport, at: usize) -> String {
    format!("run-{at}-{}-{}", run.manifest.run.op, run.manifest.run.mode)
}
