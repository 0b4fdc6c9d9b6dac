//! Statistics of latencies: nothing is trimmed, the maximum is the true one, and a quantile is withheld when fewer than ten
//! samples lie above it.
use capture::Metric;
use capture::quantile::{is_shown, quantile};
use serde::Serialize;

/// The quantiles that are reported.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
/// Points of a step function at most, about.
const STEPS: usize = 1000;
/// Every one of this many largest values is a step of its own.
const TAIL: usize = 200;

/// A latency distribution.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// What it measures.
    pub metric: Metric,
    /// Samples; nothing was trimmed.
    pub n: u64,
    /// Operations that failed (not in the distribution).
    pub failed: u64,
    /// Smallest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation (of the population, floating).
    pub stddev_ns: f64,
    /// Quantiles in this order: 0.5, 0.9, 0.99, 0.999, 0.9999. `None` when fewer than ten samples lie above.
    pub quantiles: Vec<Quantile>,
    /// The true maximum.
    pub max_ns: u64,
    /// Sorted steps for CDF, CCDF and percentile plots: (latency, samples at or below). At most some thousand points.
    pub steps: Vec<(u64, u64)>,
    /// Histogram with logarithmic bins: (lower bound, upper bound, samples), empty bins left out.
    pub bins: Vec<(u64, u64, u64)>,
}

/// One quantile.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quantile {
    /// 0 to 1.
    pub q: f64,
    /// Value; `None`: withheld, n is too small.
    pub value_ns: Option<u64>,
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
    use crate::stats::Rng;

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
