//! The overlay added up over a run: which source took how much, and how many slow samples it explains.
use super::{Names, Overlay, RESTS_ON, What};
use crate::explain::model::{Interference, SlowCauses, Source};
use crate::join::facts::RunFacts;
use capture::quantile::{self, is_shown};
use hdrhistogram::Histogram;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Rows of the table; what is beyond is one row.
const SOURCES_MAX: usize = 16;
/// Different sources that are told apart while counting.
const KEYS_MAX: usize = 4096;
/// At least this share of the excess: explained.
pub const EXPLAINED: f64 = 0.5;
/// Less than this share of the excess: no kernel cause seen.
pub const PARTLY: f64 = 0.1;

#[derive(Default)]
struct Sum {
    times: u64,
    samples: u64,
    total_ns: u64,
    max_ns: u64,
    unknown: u64,
    last_sample: u64,
}

/// Takes the overlays one by one.
pub struct OverlayTotals {
    samples: u64,
    touched: u64,
    total_ns: u128,
    taken_ns: u128,
    usual: Histogram<u64>,
    sources: BTreeMap<What, Sum>,
    median_ns: Option<u64>,
    slow_above_ns: Option<u64>,
    slow: Vec<(u64, u64)>,
}

impl OverlayTotals {
    /// `sorted_ns`: the latencies of the traced samples, sorted.
    pub fn new(sorted_ns: &[u64]) -> OverlayTotals {
        let quantile = |q| quantile::quantile(sorted_ns, q).filter(|_| is_shown(sorted_ns.len() as u64, q));
        OverlayTotals {
            samples: 0,
            touched: 0,
            total_ns: 0,
            taken_ns: 0,
            usual: Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are a valid precision")),
            sources: BTreeMap::new(),
            median_ns: quantile(0.5),
            slow_above_ns: quantile(0.99),
            slow: Vec::new(),
        }
    }

    /// Adds the overlay of a sample that took `total_ns`.
    pub fn add(&mut self, total_ns: u64, overlay: &Overlay) {
        self.samples += 1;
        self.total_ns += u128::from(total_ns);
        self.taken_ns += u128::from(overlay.taken_ns);
        self.touched += u64::from(!overlay.items.is_empty());
        let _ = self.usual.record(overlay.taken_ns.min(1 << 62));
        if self.slow_above_ns.is_some_and(|above| total_ns > above) {
            self.slow.push((total_ns, overlay.taken_ns));
        }
        for item in &overlay.items {
            let key = match item.what {
                What::Preempted { by, .. } => What::Preempted { by, last: by },
                What::Migrated { from, to, .. } => What::Migrated { from, to, by: 0 },
                other => other,
            };
            if self.sources.len() >= KEYS_MAX && !self.sources.contains_key(&key) {
                continue;
            }
            let sum = self.sources.entry(key).or_default();
            sum.times += 1;
            sum.samples += u64::from(sum.last_sample != self.samples);
            sum.last_sample = self.samples;
            match item.duration_ns {
                Some(duration) => {
                    sum.total_ns = sum.total_ns.saturating_add(duration);
                    sum.max_ns = sum.max_ns.max(duration);
                }
                None => sum.unknown += 1,
            }
        }
    }

    /// What a sample usually loses: the median of the time taken.
    pub fn usual_ns(&self) -> u64 {
        self.usual.value_at_quantile(0.5)
    }

    /// The share of a sample's excess over the median latency that the overlay explains; `None` without an excess.
    pub fn explained(&self, total_ns: u64, taken_ns: u64) -> Option<f64> {
        let excess = total_ns.saturating_sub(self.median_ns?);
        let taken = taken_ns.saturating_sub(self.usual_ns()).min(excess);
        (excess > 0).then(|| taken as f64 / excess as f64)
    }

    /// The finished numbers.
    pub fn finish(&self, facts: &RunFacts, names: &Names) -> Interference {
        let mut sources: Vec<(What, &Sum)> = self.sources.iter().map(|(what, sum)| (*what, sum)).collect();
        sources.sort_by_key(|(what, sum)| (Reverse(sum.total_ns), Reverse(sum.times), *what));
        let row = |(what, sum): &(What, &Sum)| Source {
            kind: what.kind(),
            name: names.source(*what),
            pid: what.pid().filter(|_| matches!(what, What::Preempted { .. })),
            times: sum.times,
            samples: sum.samples,
            total_ns: sum.total_ns,
            max_ns: sum.max_ns,
            unknown: sum.unknown,
        };
        let rest = sources.split_off(sources.len().min(SOURCES_MAX));
        Interference {
            samples: self.samples,
            touched: self.touched,
            share: if self.total_ns == 0 { 0.0 } else { self.taken_ns as f64 / self.total_ns as f64 },
            usual_ns: self.usual_ns(),
            sources: sources.iter().map(row).collect(),
            more_sources: rest.len() as u64,
            more_ns: rest.iter().fold(0, |sum: u64, (_, it)| sum.saturating_add(it.total_ns)),
            // What an event sample waits for is a stage of its own: only while polling is the overlay all there is.
            slow: (!facts.may_sleep).then(|| self.slow_causes()).flatten(),
            not_seen: RESTS_ON.iter().filter(|(kind, _)| !facts.records(*kind)).map(|(_, what)| (*what).to_string()).collect(),
        }
    }

    fn slow_causes(&self) -> Option<SlowCauses> {
        let shares: Vec<f64> = self.slow.iter().filter_map(|(total, taken)| self.explained(*total, *taken)).collect();
        let explained = shares.iter().filter(|share| **share >= EXPLAINED).count() as u64;
        let none_seen = shares.iter().filter(|share| **share < PARTLY).count() as u64;
        let n = shares.len() as u64;
        Some(SlowCauses { above_ns: self.slow_above_ns?, n, explained, partly: n - explained - none_seen, none_seen })
    }
}
