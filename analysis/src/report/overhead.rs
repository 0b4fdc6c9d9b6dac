//! What a run's operations cost besides their latency: CPU time, the probes' own share, the time that the server held messages.
use super::model::{CpuCost, ObserverCost, Residency};
use crate::stats::bootstrap::{Compare, Rounds, compare};
use crate::stats::{RoundLatencies, total};
use capture::Manifest;
use capture::manifest::Round;
use capture::manifest::costs::Spread;
use capture::quantile::is_shown;

/// Traced rounds against untraced ones; `None`: too few of either.
pub(super) fn observer(seen: &RoundLatencies) -> Option<ObserverCost> {
    let untraced = Rounds::new(seen.untraced.values().map(Vec::as_slice));
    let traced = Rounds::new(seen.traced.values().map(Vec::as_slice));
    let shown = |q| is_shown(untraced.len(), q) && is_shown(traced.len(), q);
    let p50 = compare(&untraced, &traced, 0.5, Compare::Difference).filter(|_| shown(0.5))?;
    let p99 = compare(&untraced, &traced, 0.99, Compare::Difference).filter(|_| shown(0.99));
    Some(ObserverCost {
        p50_diff_ns: p50.value,
        p50_interval_ns: p50.interval?,
        p99_diff_ns: p99.map(|it| it.value),
        p99_interval_ns: p99.and_then(|it| it.interval),
        rounds: (traced.count(), untraced.count()),
    })
}

/// CPU time per operation, untraced rounds where there are any.
pub(super) fn cpu_cost(manifest: &Manifest, has_untraced: bool) -> CpuCost {
    let rounds = || manifest.rounds.iter().filter(|round| !round.warmup && round.traced != has_untraced);
    let ops = total(rounds().map(|round| round.samples));
    let elapsed = total(rounds().map(|round| round.end_ns.saturating_sub(round.begin_ns)));
    // A figure that some rounds lack would be too small if the others' were divided by all operations.
    let all = |get: fn(&Round) -> Option<u64>| {
        rounds().map(get).try_fold(0u64, |sum, value| Some(sum.saturating_add(value?))).filter(|_| ops > 0)
    };
    let thread = total(rounds().map(|round| round.thread_cpu_ns));
    CpuCost {
        thread_ns_per_op: (ops > 0).then(|| thread as f64 / ops as f64),
        thread_share: (elapsed > 0).then(|| thread as f64 / elapsed as f64),
        server_ns_per_op: all(|round| round.server_cpu_ns).map(|sum| sum as f64 / ops as f64),
        machine_ns_per_op: all(|round| round.machine_busy_ns).map(|sum| sum as f64 / ops as f64),
    }
}

/// What the server told of its untraced rounds.
pub(super) fn server_residency(manifest: &Manifest) -> Option<Residency> {
    let told = || manifest.rounds.iter().filter(|round| !round.warmup && !round.traced).filter_map(|round| round.server_residency);
    let range = |get: fn(&Spread) -> Option<f64>| {
        told().filter_map(|it| get(&it)).fold(None, |range: Option<(f64, f64)>, value| {
            Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        })
    };
    Some(Residency {
        rounds: told().count() as u64,
        n: total(told().map(|it| it.n)),
        min_ns: told().map(|it| it.min_ns).reduce(f64::min)?,
        p50_ns: range(|it| it.p50_ns),
        p99_ns: range(|it| it.p99_ns),
        max_ns: told().map(|it| it.max_ns).reduce(f64::max)?,
    })
}
