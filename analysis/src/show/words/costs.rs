//! What a poll, a post and a stay at the server cost: the rows that the text and the page show, and the sentences under them.
use crate::report::model::{Residency, RunReport};
use capture::manifest::costs::{PollCosts, Spread};
use capture::text::units::count;

/// One figure with what it means.
pub(in crate::show) struct Row {
    /// Its name.
    pub what: &'static str,
    /// Values.
    pub n: u64,
    /// Smallest.
    pub min_ns: f64,
    /// Median: lowest and highest where it is a range; `None`: withheld.
    pub p50_ns: Option<(f64, f64)>,
    /// 99th percentile, likewise.
    pub p99_ns: Option<(f64, f64)>,
    /// The true maximum.
    pub max_ns: f64,
    /// What is measured, and what was left out.
    pub means: String,
}

/// What stands under the figures, once.
pub(in crate::show) const SENTENCES: [&str; 3] = [
    "The cost of post is not the latency of the hardware: it is how long the call that posts a WR holds the thread.",
    "The polls are measured in rounds of their own, after the warm-up and without probes. The clock read is given beside the figures and \
     subtracted from none: a hit poll and a post contain one, an empty poll a hundredth.",
    "There are no TSC cycles: captures hold no calibration of the TSC (frequency with its error, and that it is invariant), and cycles by the \
     CPU's nominal frequency would be a guess.",
];

impl Row {
    fn of(what: &'static str, spread: &Spread, means: String) -> Row {
        let point = |value: Option<f64>| value.map(|it| (it, it));
        Row {
            what,
            n: spread.n,
            min_ns: spread.min_ns,
            p50_ns: point(spread.p50_ns),
            p99_ns: point(spread.p99_ns),
            max_ns: spread.max_ns,
            means,
        }
    }

    fn residency(it: &Residency) -> Row {
        Row {
            what: "server residency",
            n: it.n,
            min_ns: it.min_ns,
            p50_ns: it.p50_ns,
            p99_ns: it.p99_ns,
            max_ns: it.max_ns,
            means: format!(
                "received → about to post the answer, on the server's clock; {} untraced rounds, of whose quantiles the lowest and highest are given",
                count(it.rounds)
            ),
        }
    }
}

/// The figures that a run has.
pub(in crate::show) fn rows(run: &RunReport) -> Vec<Row> {
    let mut rows: Vec<Row> = run.manifest.poll_costs.as_ref().map(poll_rows).unwrap_or_default();
    rows.extend(
        run.post
            .as_ref()
            .map(|it| Row::of("post", it, "before → after ibv_post_send, samples of untraced rounds; holds one clock read".to_owned())),
    );
    rows.extend(run.server_residency.as_ref().map(Row::residency));
    rows
}

fn poll_rows(costs: &PollCosts) -> Vec<Row> {
    let calls = costs.calls_per_block;
    let block = |what, spread: &Option<Spread>, call: &str| {
        spread.as_ref().map(|it| Row::of(what, it, format!("{call}; n blocks, each value the mean of {calls} calls")))
    };
    let hit = costs.hit_poll.as_ref().and_then(|it| {
        let means = format!(
            "one poll of a CQ that holds the completion, {} µs after its post, with one clock read; {} came back empty and are left out",
            it.waited_ns / 1000,
            count(it.came_back_empty)
        );
        it.poll.as_ref().map(|spread| Row::of("hit poll", spread, means))
    });
    let window = costs.detection_window.as_ref().and_then(|it| {
        let means = format!(
            "last empty poll → hit, a clock read after every poll; {} were hit by the first poll and are left out",
            count(it.first_poll_hits)
        );
        it.window.as_ref().map(|spread| Row::of("detection window", spread, means))
    });
    let clock = block("clock read", &costs.clock_read, "one clock_gettime(CLOCK_MONOTONIC)");
    let empty = block("empty poll", &costs.empty_poll, "one ibv_poll_cq with nothing outstanding");
    [clock, empty, hit, window].into_iter().flatten().collect()
}

/// What a run does not have, with the reason. Absent is not 0.
pub(in crate::show) fn absent(run: &RunReport) -> Vec<String> {
    let Some(costs) = &run.manifest.poll_costs else {
        return vec!["clock read and polls: not measured (the capture was made by an older version, or ended before)".to_owned()];
    };
    let mut absent: Vec<String> = costs.absent.iter().map(|it| format!("{}: {}", it.what.replace('_', " "), it.why)).collect();
    if let Some(it) = costs.hit_poll.as_ref().filter(|it| it.poll.is_none()) {
        absent.push(format!("hit poll: all {} timed polls came back empty", count(it.came_back_empty)));
    }
    if let Some(it) = costs.detection_window.as_ref().filter(|it| it.window.is_none()) {
        absent.push(format!("detection window: the first poll was the hit in all {} operations", count(it.first_poll_hits)));
    }
    if run.post.is_none() {
        absent.push("post: no untraced samples".to_owned());
    }
    absent
}

/// A value, a range, or nothing when it is withheld.
pub(in crate::show) fn range(value: Option<(f64, f64)>, text: fn(f64) -> String) -> Option<String> {
    let (low, high) = value?;
    let (low, high) = (text(low), text(high));
    Some(if low == high { low } else { format!("{low} to {high}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::text::units::ns;

    #[test]
    fn ranges_and_points() {
        assert_eq!(range(Some((2.0, 2.0)), ns), Some("2 ns".into()));
        assert_eq!(range(Some((2.0, 3000.0)), ns), Some("2 ns to 3.00 µs".into()));
        assert_eq!(range(None, ns), None);
    }
}
