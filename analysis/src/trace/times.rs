//! Durations of a stage: quantiles to one percent in little memory, and histograms with bins that double.
use capture::manifest::costs::Spread;
use capture::quantile::is_shown;
use hdrhistogram::Histogram;
use serde::Serialize;

/// Longer durations (a year) count as this.
const LONGEST_NS: u64 = 31_536_000_000_000_000;

/// Durations of one stage.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Times {
    fn default() -> Self {
        // Two digits are always a valid precision; the histogram grows with its values.
        Times { histogram: Histogram::new(2).expect("two digits"), min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Times {
    /// Records the time from `from_ns` to `to_ns`; a clock that went backwards counts as 0.
    pub fn record(&mut self, from_ns: u64, to_ns: u64) {
        let ns = to_ns.saturating_sub(from_ns);
        (self.min_ns, self.max_ns) = (self.min_ns.min(ns), self.max_ns.max(ns));
        // A histogram that grows refuses nothing below its longest duration.
        let _ = self.histogram.record(ns.min(LONGEST_NS));
    }

    /// Values.
    pub fn n(&self) -> u64 {
        self.histogram.len()
    }

    /// A quantile to one percent; `None` where fewer than ten values lie above it.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        is_shown(self.n(), q).then(|| self.histogram.value_at_quantile(q).min(self.max_ns))
    }

    /// The true maximum; `None` without values.
    pub fn max_ns(&self) -> Option<u64> {
        (self.n() > 0).then_some(self.max_ns)
    }

    /// The distribution in short; `None` without values.
    pub fn spread(&self) -> Option<Spread> {
        let shown = |q| self.quantile(q).map(|ns| ns as f64);
        (self.n() > 0).then(|| Spread {
            n: self.n(),
            min_ns: self.min_ns as f64,
            p50_ns: shown(0.5),
            p90_ns: shown(0.9),
            p99_ns: shown(0.99),
            max_ns: self.max_ns as f64,
        })
    }

    /// The same values in bins that double.
    pub fn log2(&self) -> Log2 {
        let mut log2 = Log2::default();
        for value in self.histogram.iter_recorded() {
            log2.add(value.value_iterated_to(), value.count_at_value());
        }
        log2
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.histogram.reset();
        (self.min_ns, self.max_ns) = (u64::MAX, 0);
    }
}

/// A histogram with bins that double: bin k holds durations from 2^k to below 2^(k+1) ns; bin 0 also 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Log2 {
    /// Count by bin, up to the last one that is not empty.
    pub bins: Vec<u64>,
}

impl Log2 {
    /// Adds one duration.
    pub fn record(&mut self, from_ns: u64, to_ns: u64) {
        self.add(to_ns.saturating_sub(from_ns), 1);
    }

    fn add(&mut self, ns: u64, count: u64) {
        let bin = ns.max(1).ilog2() as usize;
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += count;
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Log2) {
        for (bin, count) in other.bins.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.add(1 << bin, *count);
        }
    }

    /// Values in all.
    pub fn n(&self) -> u64 {
        self.bins.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_double_and_add_up() {
        let mut log2 = Log2::default();
        for ns in [0, 1, 2, 3, 4, 1023, 1024] {
            log2.record(0, ns);
        }
        assert_eq!(log2.bins, [2, 2, 1, 0, 0, 0, 0, 0, 0, 1, 1]);
        let mut twice = log2.clone();
        twice.merge(&log2);
        assert_eq!((twice.n(), twice.bins[1]), (14, 4));
    }

    #[test]
    fn quantiles_are_withheld_when_few_and_the_maximum_is_true() {
        let mut times = Times::default();
        for ns in 1..=1000 {
            times.record(5, 5 + ns);
        }
        assert_eq!((times.n(), times.max_ns(), times.quantile(0.999)), (1000, Some(1000), None));
        let median = times.quantile(0.5).expect("shown");
        assert!((495..=505).contains(&median), "{median}");
        assert_eq!(times.log2().n(), 1000);
        times.clear();
        assert_eq!((times.n(), times.max_ns(), times.spread()), (0, None, None));
    }
}
