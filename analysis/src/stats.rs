//! Statistics of latencies: nothing is trimmed, the maximum is the true one, and a quantile is withheld when fewer than ten
//! samples lie above it.
use crate::capture::manifest::Metric;
use crate::model::{Latency, Quantile};

/// The quantiles that are reported.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
/// Samples that must lie above a quantile for it to be shown.
pub const ABOVE_MIN: f64 = 10.0;
/// Points of a step function at most, about.
const STEPS: usize = 1000;
/// Every one of this many largest values is a step of its own.
const TAIL: usize = 200;

/// A small seeded generator (SplitMix64), so that bootstraps and fixtures repeat.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// From a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound` (0 when `bound` is 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// Rank (from 1) of quantile `q` among `n` values: the smallest value with at least a share `q` at or below it.
pub fn rank(n: u64, q: f64) -> u64 {
    // The product of a decimal fraction and a count is often a hair off a whole number.
    ((n as f64 * q - 1e-6).ceil().max(1.0) as u64).min(n)
}

/// May quantile `q` be shown with `n` values?
pub fn is_shown(n: u64, q: f64) -> bool {
    n as f64 * (1.0 - q) >= ABOVE_MIN - 1e-6
}

/// Quantile of sorted values; `None` when there are none.
pub fn quantile(sorted: &[u64], q: f64) -> Option<u64> {
    sorted.get(rank(sorted.len() as u64, q).checked_sub(1)? as usize).copied()
}

/// The distribution of `values`, which are sorted here. `None` when there are none.
pub fn latency(metric: Metric, values: &mut [u64], failed: u64) -> Option<Latency> {
    values.sort_unstable();
    let sorted: &[u64] = values;
    let (min_ns, max_ns) = (*sorted.first()?, *sorted.last()?);
    let n = sorted.len() as u64;
    let mean_ns = sorted.iter().map(|v| *v as f64).sum::<f64>() / n as f64;
    let variance = sorted.iter().map(|v| (*v as f64 - mean_ns).powi(2)).sum::<f64>() / n as f64;
    let shown = |q| Quantile { q, value_ns: if is_shown(n, q) { quantile(sorted, q) } else { None } };
    Some(Latency {
        metric,
        n,
        failed,
        min_ns,
        mean_ns,
        stddev_ns: variance.sqrt(),
        quantiles: QUANTILES.map(shown).to_vec(),
        max_ns,
        steps: steps(sorted),
        bins: bins(sorted),
    })
}

/// Steps of the distribution function: evenly spaced ranks, and every one of the largest values.
fn steps(sorted: &[u64]) -> Vec<(u64, u64)> {
    let n = sorted.len();
    let stride = n.div_ceil(STEPS).max(1);
    let mut steps: Vec<(u64, u64)> = Vec::new();
    for (index, value) in sorted.iter().enumerate() {
        let wanted = index == 0 || index % stride == 0 || index + TAIL >= n;
        match steps.last_mut() {
            Some(last) if last.0 == *value => last.1 = index as u64 + 1,
            _ if wanted => steps.push((*value, index as u64 + 1)),
            _ => {}
        }
    }
    steps
}

/// Step of the last logarithmic bin: its upper bound is the end of the range.
const LAST_STEP: i32 = 64 * 8 - 1;

/// Logarithmic bins, eight per doubling: (lower bound, upper bound, samples).
fn bins(sorted: &[u64]) -> Vec<(u64, u64, u64)> {
    let bound = |step: i32| (f64::from(step) / 8.0).exp2().ceil() as u64;
    let mut bins: Vec<(u64, u64, u64)> = Vec::new();
    let mut step = 0;
    for value in sorted {
        if let Some(bin) = bins.last_mut()
            && (*value < bin.1 || bin.1 == u64::MAX)
        {
            bin.2 += 1;
            continue;
        }
        // The last bound is the end of the range itself: nothing lies behind it.
        while step < LAST_STEP && bound(step + 1) <= *value {
            step += 1;
        }
        let lower = if *value == 0 { 0 } else { bound(step) };
        bins.push((lower, bound(step + 1).max(1), 1));
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_ranks_and_are_withheld_when_n_is_small() {
        let mut values: Vec<u64> = (1..=1000).rev().collect();
        let it = latency(Metric::Rtt, &mut values, 3).expect("values");
        assert_eq!((it.min_ns, it.max_ns, it.n, it.failed), (1, 1000, 1000, 3));
        assert_eq!(it.quantiles.iter().map(|q| q.value_ns).collect::<Vec<_>>(), [Some(500), Some(900), Some(990), None, None]);
        assert!((it.mean_ns - 500.5).abs() < 1e-9);
        assert!((it.stddev_ns - ((1000f64.powi(2) - 1.0) / 12.0).sqrt()).abs() < 1e-6);
        assert!(latency(Metric::Rtt, &mut [], 0).is_none());
    }

    #[test]
    fn the_largest_values_end_in_the_last_bin() {
        let it = latency(Metric::Rtt, &mut [1, u64::MAX - 1, u64::MAX, u64::MAX], 0).expect("values");
        let last = it.bins.last().expect("a bin");
        assert_eq!((it.bins.len(), last.1, last.2), (2, u64::MAX, 3));
    }

    #[test]
    fn bins_hold_every_value_once_and_do_not_overlap() {
        let mut rng = Rng::new(5);
        let mut values: Vec<u64> = (0..5000).map(|_| rng.below(1 << rng.clone().below(40))).chain([0, 0, 1, 2, 3]).collect();
        let it = latency(Metric::Rtt, &mut values, 0).expect("values");
        assert_eq!(it.bins.iter().map(|bin| bin.2).sum::<u64>(), it.n);
        for pair in it.bins.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{pair:?}");
        }
        for (lower, upper, n) in &it.bins {
            assert_eq!(values.iter().filter(|v| *v >= lower && *v < upper).count() as u64, *n, "{lower}..{upper}");
        }
    }

    #[test]
    fn steps_are_the_distribution_function() {
        let mut rng = Rng::new(9);
        let mut values: Vec<u64> = (0..30_000).map(|_| rng.below(5_000)).collect();
        let it = latency(Metric::Rtt, &mut values, 0).expect("values");
        assert!(it.steps.len() < 2 * (STEPS + TAIL));
        assert_eq!(it.steps.last(), Some(&(it.max_ns, it.n)));
        for (value, at_or_below) in &it.steps {
            assert_eq!(values.iter().filter(|v| *v <= value).count() as u64, *at_or_below);
        }
    }
}
