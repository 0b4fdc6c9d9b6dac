//! What single calls cost, as the manifest carries it: measured in rounds of their own, never within the measured ones.
//!
//! No figure is corrected by another: the cost of reading the clock stands beside them and is subtracted from none.
use crate::quantile::{is_shown, quantile};
use serde::{Deserialize, Serialize};

/// A distribution in short, in ns. A quantile is `None` where fewer than ten values lie above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Values; nothing was trimmed.
    pub n: u64,
    /// Smallest.
    pub min_ns: f64,
    /// Median.
    pub p50_ns: Option<f64>,
    /// 90th percentile.
    pub p90_ns: Option<f64>,
    /// 99th percentile.
    pub p99_ns: Option<f64>,
    /// The true maximum.
    pub max_ns: f64,
}

impl Spread {
    /// Of `values_ns`, which are sorted here. `None` when there are none.
    pub fn of(values_ns: &mut [u64]) -> Option<Spread> {
        Spread::per_call(values_ns, 1)
    }

    /// Of blocks of `calls` calls each: every value is divided by that number. `None` when there are no blocks or no calls.
    pub fn per_call(blocks_ns: &mut [u64], calls: u32) -> Option<Spread> {
        if calls == 0 {
            return None;
        }
        blocks_ns.sort_unstable();
        let n = blocks_ns.len() as u64;
        let per_call = |ns: u64| ns as f64 / f64::from(calls);
        let shown = |q| if is_shown(n, q) { quantile(blocks_ns, q).map(per_call) } else { None };
        Some(Spread {
            n,
            min_ns: per_call(*blocks_ns.first()?),
            p50_ns: shown(0.5),
            p90_ns: shown(0.9),
            p99_ns: shown(0.99),
            max_ns: per_call(*blocks_ns.last()?),
        })
    }
}

/// Costs of polling on the client's measured thread and CQ: once per run, after its warm-up, without probes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PollCosts {
    /// Calls between the two clock reads of a block: `clock_read` and `empty_poll` are means over so many, one value per block.
    pub calls_per_block: u32,
    /// One read of the clock.
    pub clock_read: Option<Spread>,
    /// One `ibv_poll_cq` of the CQ that ends the samples, with nothing outstanding.
    pub empty_poll: Option<Spread>,
    /// The one poll that brings a completion which is already there.
    pub hit_poll: Option<HitPoll>,
    /// From the last empty poll to the hit.
    pub detection_window: Option<DetectionWindow>,
    /// What was not measured, and why.
    pub absent: Vec<Absent>,
}

/// Polls that were timed only after the completion had had time to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HitPoll {
    /// Time from the end of the post to the timed poll, without a look at the CQ.
    pub waited_ns: u64,
    /// Operations.
    pub operations: u64,
    /// Timed polls that came back empty all the same: left out.
    pub came_back_empty: u64,
    /// From before to after the poll, which includes one read of the clock; `None`: all came back empty.
    pub poll: Option<Spread>,
}

/// How long a completion can have lain there before polling saw it: at most this long, in rounds that read the clock after every poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DetectionWindow {
    /// Operations.
    pub operations: u64,
    /// Operations whose first poll was the hit: they have no empty poll and are left out.
    pub first_poll_hits: u64,
    /// From the clock read after the last empty poll to the one after the hit; `None`: no operation had an empty poll.
    pub window: Option<Spread>,
}

/// A figure that was not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// Which one, by its name in [`PollCosts`].
    pub what: String,
    /// Why.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_divided_by_their_calls() {
        // 1000 blocks of 100 calls: 100 ns to 1099 ns a block.
        let mut blocks: Vec<u64> = (100..1100).rev().collect();
        let it = Spread::per_call(&mut blocks, 100).expect("blocks");
        assert_eq!((it.n, it.min_ns, it.max_ns), (1000, 1.0, 10.99));
        assert_eq!((it.p50_ns, it.p90_ns, it.p99_ns), (Some(5.99), Some(9.99), Some(10.89)));
        assert_eq!(Spread::per_call(&mut blocks, 0), None);
        assert_eq!(Spread::of(&mut []), None);
    }

    #[test]
    fn quantiles_are_withheld_when_n_is_small() {
        let spread = |n: u64| Spread::of(&mut (1..=n).collect::<Vec<_>>()).expect("values");
        assert_eq!((spread(19).p50_ns, spread(20).p50_ns), (None, Some(10.0)));
        assert_eq!((spread(99).p90_ns, spread(100).p90_ns), (None, Some(90.0)));
        assert_eq!((spread(999).p99_ns, spread(1000).p99_ns), (None, Some(990.0)));
        assert_eq!((spread(1).min_ns, spread(1).max_ns), (1.0, 1.0));
    }

    #[test]
    fn costs_survive_json() {
        let costs = PollCosts {
            calls_per_block: 100,
            empty_poll: Spread::per_call(&mut [7, 8], 100),
            hit_poll: Some(HitPoll { waited_ns: 50_000, operations: 3, came_back_empty: 3, poll: None }),
            absent: vec![Absent { what: "detection_window".into(), why: "event mode".into() }],
            ..PollCosts::default()
        };
        let text = serde_json::to_string(&costs).expect("JSON");
        assert_eq!(serde_json::from_str::<PollCosts>(&text).expect("the same"), costs);
    }
}
