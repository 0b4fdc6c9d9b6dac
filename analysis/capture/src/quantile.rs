//! Quantiles of sorted values: ranks, never interpolated, and withheld where too few values lie above.

/// Samples that must lie above a quantile for it to be shown.
pub const ABOVE_MIN: f64 = 10.0;

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
