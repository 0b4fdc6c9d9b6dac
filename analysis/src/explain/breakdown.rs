//! Where the time went: sums, quantiles and bands of the stages over the joined samples, coverage, flags, and the slowest samples.
use crate::explain::model::{Agreement, Band, Breakdown, SlowSample, StageStat};
use crate::explain::verdict::evidence::Evidence;
use crate::explain::verdict::{self, Baseline};
use crate::join::Outcome;
use crate::join::flags::Flag;
use crate::stages::{PerStage, StageId};
use capture::Sample;
use capture::quantile::{self, is_shown};
use hdrhistogram::Histogram;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slow samples that are explained.
pub const SLOW_MAX: usize = 10;
/// A sample counts as covered when named stages make up this share of it.
pub const COVERED_SHARE: f64 = 0.9;
const STEPS: u64 = 300;

/// Durations of one stage.
struct Stat {
    histogram: Histogram<u64>,
    sum_ns: i128,
    max_ns: u64,
    negative: u64,
}

impl Stat {
    fn new() -> Stat {
        // Three digits, growing with the values: memory does not depend on the number of samples.
        let histogram = Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are a valid precision"));
        Stat { histogram, sum_ns: 0, max_ns: 0, negative: 0 }
    }

    fn add(&mut self, duration_ns: u64) {
        // The histogram grows as needed; 2^62 ns (146 years) is what it can hold at most.
        let _ = self.histogram.record(duration_ns.min(1 << 62));
        self.sum_ns += i128::from(duration_ns);
        self.max_ns = self.max_ns.max(duration_ns);
    }

    fn quantile(&self, q: f64) -> Option<u64> {
        let n = self.histogram.len();
        (n > 0 && is_shown(n, q)).then(|| self.histogram.value_at_quantile(q).min(self.max_ns))
    }

    fn steps(&self) -> Vec<(u64, u64)> {
        let n = self.histogram.len();
        let stride = n.div_ceil(STEPS).max(1);
        let (mut seen, mut shown, mut steps) = (0, 0, Vec::new());
        for step in self.histogram.iter_recorded() {
            seen += step.count_since_last_iteration();
            if seen >= shown + stride || seen == n || steps.is_empty() {
                steps.push((step.value_iterated_to().min(self.max_ns), seen));
                shown = seen;
            }
        }
        steps
    }
}

struct BandSum {
    name: String,
    up_to_ns: u64,
    n: u64,
    total_ns: u128,
    stages_ns: PerStage<i128>,
}

struct Slow {
    sample: Sample,
    outcome: Outcome,
    evidence: Evidence,
}

/// Takes joined samples one by one.
pub struct Accumulator {
    stats: PerStage<Stat>,
    bands: Vec<BandSum>,
    samples: u64,
    lost: u64,
    total_ns: u128,
    named_ns: u128,
    covered: u64,
    slept: u64,
    flags: [u64; Flag::ALL.len()],
    agreement: Agreement,
    slow: BinaryHeap<(Reverse<u64>, u64)>,
    slow_samples: Vec<(u64, Slow)>,
}

/// What came out.
pub struct Finished {
    /// The breakdown.
    pub breakdown: Breakdown,
    /// Samples that slept in the blocking read, of all traced ones.
    pub slept: u64,
}

impl Accumulator {
    /// `sorted_ns`: the latencies of the traced samples, sorted; they set the bands.
    pub fn new(sorted_ns: &[u64]) -> Accumulator {
        Accumulator {
            stats: PerStage::from_fn(|_| Stat::new()),
            bands: bands(sorted_ns),
            samples: 0,
            lost: 0,
            total_ns: 0,
            named_ns: 0,
            covered: 0,
            slept: 0,
            flags: [0; Flag::ALL.len()],
            agreement: Agreement { compared: 0, agreed: 0 },
            slow: BinaryHeap::new(),
            slow_samples: Vec::new(),
        }
    }

    /// Adds one sample. A sample whose clock went backwards has no latency and is not added. `evidence` is asked for where the sample
    /// is one of the slowest so far.
    pub fn add(&mut self, sample: &Sample, outcome: &Outcome, evidence: impl FnOnce() -> Evidence) {
        let Some(total_ns) = sample.latency_ns() else { return };
        let joined = &outcome.joined;
        self.samples += 1;
        self.slept += u64::from(joined.slept);
        joined.flags.iter().for_each(|flag| self.flags[flag as usize] += 1);
        self.keep_if_slow(total_ns, sample, outcome, evidence);
        self.compare_joins(outcome);
        if joined.flags.has(Flag::Lost) {
            self.lost += 1;
            return;
        }
        let mut stages: PerStage<Option<u64>> = PerStage::default();
        for gap in joined.chain.gaps().filter(|gap| !gap.stage.is_unattributed()) {
            match u64::try_from(gap.duration_ns) {
                Ok(duration) => {
                    let sum = stages[gap.stage].get_or_insert(0);
                    *sum = sum.saturating_add(duration);
                }
                Err(_) => self.stats[gap.stage].negative += 1,
            }
        }
        let named = stages.iter().filter_map(|(_, duration)| *duration).fold(0u64, u64::saturating_add);
        let rest = i128::from(total_ns) - i128::from(named);
        self.total_ns += u128::from(total_ns);
        self.named_ns += u128::from(named.min(total_ns));
        self.covered += u64::from(named.min(total_ns) as f64 >= total_ns as f64 * COVERED_SHARE);
        let band = self.bands.iter_mut().find(|band| total_ns <= band.up_to_ns);
        let mut sums: PerStage<i128> = PerStage::default();
        for (stage, duration) in stages.iter() {
            if let Some(duration) = duration {
                self.stats[stage].add(*duration);
                sums[stage] = i128::from(*duration);
            }
        }
        let unattributed = &mut self.stats[StageId::Unattributed];
        match u64::try_from(rest) {
            Ok(0) => {}
            Ok(rest) => unattributed.add(rest),
            // Negative stages were left out of the sums above: the rest takes the difference, so that all still adds up.
            Err(_) => {
                unattributed.negative += 1;
                unattributed.sum_ns += rest;
            }
        }
        sums[StageId::Unattributed] = rest;
        if let Some(band) = band {
            band.n += 1;
            band.total_ns += u128::from(total_ns);
            sums.iter().for_each(|(stage, ns)| band.stages_ns[stage] += ns);
        }
    }

    /// Only samples that slept: which event a read that did not sleep took is nothing that the exact join can know.
    fn compare_joins(&mut self, outcome: &Outcome) {
        if outcome.joined.slept && !outcome.joined.flags.has(Flag::Lost) {
            self.agreement.compared += 1;
            self.agreement.agreed += u64::from(outcome.exact_trigger.is_some() && outcome.exact_trigger == outcome.inferred_trigger);
        }
    }

    fn keep_if_slow(&mut self, total_ns: u64, sample: &Sample, outcome: &Outcome, evidence: impl FnOnce() -> Evidence) {
        if self.slow.len() == SLOW_MAX {
            match self.slow.peek() {
                Some((Reverse(least), _)) if *least >= total_ns => return,
                _ => {}
            }
            if let Some((_, key)) = self.slow.pop() {
                self.slow_samples.retain(|(other, _)| *other != key);
            }
        }
        self.slow.push((Reverse(total_ns), self.samples));
        self.slow_samples.push((self.samples, Slow { sample: *sample, outcome: *outcome, evidence: evidence() }));
    }

    /// Medians so far; `None`: too few samples have that stage.
    pub fn medians(&self) -> PerStage<Option<u64>> {
        PerStage::from_fn(|stage| self.stats[stage].quantile(0.5))
    }

    /// The finished numbers. `exact`: the exact join was possible, so that the two can be compared. `baseline` gives the verdicts.
    pub fn finish(mut self, exact: bool, baseline: &Baseline<'_>) -> Finished {
        let joined = self.samples - self.lost;
        let per_sample = |sum: i128, n: u64| if n == 0 { 0.0 } else { sum as f64 / n as f64 };
        let is_seen = |stat: &Stat| !stat.histogram.is_empty() || stat.negative > 0;
        let stages = self
            .stats
            .iter()
            .filter(|(stage, stat)| stage.is_unattributed() || is_seen(stat))
            .map(|(stage, stat)| StageStat {
                stage,
                meaning: stage.row().meaning,
                n: stat.histogram.len(),
                mean_of_all_ns: per_sample(stat.sum_ns, joined),
                p50_ns: stat.quantile(0.5),
                p99_ns: stat.quantile(0.99),
                max_ns: stat.max_ns,
                share: if self.total_ns == 0 { 0.0 } else { stat.sum_ns as f64 / self.total_ns as f64 },
                negative: stat.negative,
                steps: stat.steps(),
            })
            .collect();
        let bands = self
            .bands
            .iter()
            .filter(|band| band.n > 0)
            .map(|band| Band {
                name: band.name.clone(),
                n: band.n,
                mean_ns: band.total_ns as f64 / band.n as f64,
                stages: band
                    .stages_ns
                    .iter()
                    .filter(|(stage, ns)| stage.is_unattributed() || **ns != 0)
                    .map(|(stage, ns)| (stage, per_sample(*ns, band.n)))
                    .collect(),
            })
            .collect();
        self.slow_samples.sort_by_key(|(key, slow)| (Reverse(slow.sample.latency_ns()), *key));
        let slow: Vec<SlowSample> =
            self.slow_samples.iter().map(|(_, slow)| verdict::slow_sample(baseline, &slow.sample, &slow.outcome, &slow.evidence)).collect();
        let ratio = |a: u128, b: u128| if b == 0 { 0.0 } else { a as f64 / b as f64 };
        let breakdown = Breakdown {
            joined,
            samples: self.samples,
            lost: self.lost,
            coverage: ratio(self.named_ns, self.total_ns),
            covered_samples: ratio(self.covered.into(), joined.into()),
            stages,
            bands,
            flags: Flag::ALL.iter().map(|flag| (*flag, self.flags[*flag as usize])).filter(|(_, n)| *n > 0).collect(),
            agreement: (exact && self.agreement.compared > 0).then_some(self.agreement),
            slow,
            interference: baseline.totals.finish(baseline.facts, baseline.names),
        };
        Finished { breakdown, slept: self.slept }
    }
}

/// The bands that this many samples allow: a border that rests on fewer than ten samples above it is left out.
fn bands(sorted_ns: &[u64]) -> Vec<BandSum> {
    let n = sorted_ns.len() as u64;
    let mut bands = Vec::new();
    let mut from = "p0".to_string();
    let add = |bands: &mut Vec<BandSum>, name: String, up_to_ns: u64| {
        bands.push(BandSum { name, up_to_ns, n: 0, total_ns: 0, stages_ns: PerStage::default() });
    };
    for (q, text) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")] {
        if let Some(border) = quantile::quantile(sorted_ns, q).filter(|_| is_shown(n, q)) {
            add(&mut bands, format!("{from}-{text}"), border);
            from = text.to_string();
        }
    }
    add(&mut bands, format!("{from}-max"), u64::MAX);
    bands
}
