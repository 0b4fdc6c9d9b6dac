//! In which order the rounds run: how many, how long, traced and untraced interleaved so that a drift of the machine hits both.
use std::time::Duration;

/// No round lasts longer than this; what is recorded in it sits in memory until its end.
pub const ROUND_MAX: Duration = Duration::from_secs(2);

/// Fewest rounds of each kind: fewer say nothing about the spread between rounds.
pub const ROUNDS_MIN: u32 = 5;

/// Share of [`ROUND_MAX`] that a round is planned for, so that a slower one still fits.
const PLANNED_SHARE: f64 = 0.6;

/// How the samples of one operation are spread over rounds. All modes of the operation share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Rounds of each kind (traced, untraced).
    pub count: u32,
    /// Samples in each.
    pub samples_each: u64,
}

/// Spreads `samples` over rounds, given the slowest mode's typical time per sample from the warm-up.
pub fn spread(samples: u64, slowest_sample: Duration) -> Rounds {
    let per_sample_s = slowest_sample.as_secs_f64().max(1e-9);
    let fit = (ROUND_MAX.as_secs_f64() * PLANNED_SHARE / per_sample_s).floor().max(1.0) as u64;
    let wanted = samples.div_ceil(u64::from(ROUNDS_MIN)).max(1);
    let count = samples.max(1).div_ceil(fit.min(wanted)).max(u64::from(ROUNDS_MIN)).min(samples.max(1));
    Rounds { count: u32::try_from(count).unwrap_or(u32::MAX), samples_each: samples.div_ceil(count).max(1) }
}

/// One step: probes in this state, then one round of every mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Probes attached?
    pub traced: bool,
    /// Modes in reverse order, so that none is always first.
    pub reversed: bool,
}

/// The steps of one operation: traced and untraced rounds in the order ABBA, which also needs the fewest changes of the probes.
/// At level `none` there is nothing to trace and every round is an untraced one.
pub fn steps(rounds: u32, traced: bool) -> Vec<Step> {
    (0..rounds)
        .flat_map(|index| {
            let first_traced = index % 2 == 0;
            [first_traced, !first_traced].map(|traced| Step { traced, reversed: index % 2 == 1 })
        })
        .filter(|step| traced || !step.traced)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_run_and_no_round_is_too_long() {
        for (samples, sample_us) in [(10_000, 10), (10_000, 250), (10_000, 7_000), (1, 1), (3, 5_000_000), (1_000_000, 2)] {
            let sample = Duration::from_micros(sample_us);
            let rounds = spread(samples, sample);
            assert!(u64::from(rounds.count) * rounds.samples_each >= samples, "{samples} of {sample_us} us: {rounds:?}");
            assert!(rounds.samples_each == 1 || sample * u32::try_from(rounds.samples_each).expect("small") <= ROUND_MAX, "{rounds:?}");
        }
    }

    #[test]
    fn few_samples_still_make_the_fewest_rounds() {
        assert_eq!(spread(10_000, Duration::from_micros(10)), Rounds { count: 5, samples_each: 2_000 });
        assert_eq!(spread(3, Duration::from_micros(10)), Rounds { count: 3, samples_each: 1 });
    }

    #[test]
    fn traced_and_untraced_alternate_in_abba_order() {
        let traced: Vec<bool> = steps(3, true).iter().map(|step| step.traced).collect();
        assert_eq!(traced, [true, false, false, true, true, false]);
        assert_eq!(steps(3, false).len(), 3);
        assert!(steps(3, false).iter().all(|step| !step.traced));
    }
}
