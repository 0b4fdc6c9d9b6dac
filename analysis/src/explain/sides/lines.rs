//! Lines with their durations, added up over many samples.
use super::pair::Line;
use crate::explain::model::SideLine;
use capture::quantile::{is_shown, rank};

/// The values of a line; negative ones are values like any other.
#[derive(Default)]
pub(super) struct Stat(Vec<i64>);

impl Stat {
    /// Adds a value.
    pub(super) fn push(&mut self, ns: i64) {
        self.0.push(ns);
    }

    fn sum(&self) -> i128 {
        self.0.iter().map(|ns| i128::from(*ns)).sum()
    }

    fn quantile(sorted: &[i64], q: f64) -> Option<i64> {
        let n = sorted.len() as u64;
        sorted.get(rank(n, q).checked_sub(1)? as usize).copied().filter(|_| is_shown(n, q))
    }
}

/// Lines with their durations, in the order in which they were first met.
#[derive(Default)]
pub(super) struct Lines(pub(super) Vec<(Line, Stat)>);

impl Lines {
    pub(super) fn add(&mut self, line: Line, ns: i64) {
        let at = self.0.iter().position(|(known, _)| known.name == line.name && known.place == line.place).unwrap_or_else(|| {
            self.0.push((line, Stat::default()));
            self.0.len() - 1
        });
        self.0[at].1.push(ns);
    }

    pub(super) fn finish(self, n: u64, total_ns: i128) -> Vec<SideLine> {
        let ratio = |sum: i128, all: f64| if all == 0.0 { 0.0 } else { sum as f64 / all };
        let one = |(line, mut stat): (Line, Stat)| {
            stat.0.sort_unstable();
            SideLine {
                place: line.place,
                name: line.name.to_owned(),
                meaning: line.meaning.to_owned(),
                n: stat.0.len() as u64,
                mean_of_all_ns: ratio(stat.sum(), n as f64),
                p50_ns: Stat::quantile(&stat.0, 0.5),
                p99_ns: Stat::quantile(&stat.0, 0.99),
                max_ns: stat.0.last().copied().unwrap_or(0),
                share: ratio(stat.sum(), total_ns as f64),
                negative: stat.0.partition_point(|ns| *ns < 0) as u64,
            }
        };
        self.0.into_iter().map(one).collect()
    }
}
