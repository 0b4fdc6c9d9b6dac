//! Statistics of latencies: quantiles, histograms, intervals. Numbers only; nothing here knows of the kernel or prints.
pub mod bootstrap;
mod latency;
mod rng;
mod round_latencies;

pub use latency::{Latency, QUANTILES, Quantile, latency};
pub use rng::Rng;
pub use round_latencies::RoundLatencies;

/// A sum that stays at the end of its range: the numbers of a damaged manifest may be anything.
pub fn total(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}
