//! The latencies of a capture's samples by round, and what is wrong with the samples that have none.
use super::total;
use capture::Capture;
use capture::manifest::Round;
use std::collections::BTreeMap;

/// Latencies of the samples by round, in ns. Warm-up rounds are left out.
#[derive(Clone, Debug, Default)]
pub struct RoundLatencies {
    /// Rounds with probes.
    pub traced: BTreeMap<u32, Vec<u64>>,
    /// Rounds without.
    pub untraced: BTreeMap<u32, Vec<u64>>,
    /// How long the post took, untraced rounds.
    pub post_ns: Vec<u64>,
    /// Samples that ended with an error.
    pub failed: u64,
    /// Samples within which the clock went backwards.
    pub backwards: u64,
    /// Samples in no round of the manifest.
    pub homeless: u64,
    /// Samples outside of the time of the round that they name.
    pub foreign: u64,
    /// Samples that the manifest counts in its measured rounds.
    pub expected: u64,
    /// Those of them that are not there.
    pub missing: u64,
}

impl RoundLatencies {
    /// Reads the samples of a capture.
    ///
    /// # Errors
    /// What reading them can meet.
    pub fn read(capture: &mut Capture) -> capture::Result<RoundLatencies> {
        let rounds: BTreeMap<u32, Round> = capture.manifest.rounds.iter().map(|round| (round.index, round.clone())).collect();
        let mut there: BTreeMap<u32, u64> = BTreeMap::new();
        let mut seen = RoundLatencies::default();
        for sample in capture.samples()? {
            let sample = sample?;
            let Some(round) = rounds.get(&sample.round) else {
                seen.homeless += 1;
                continue;
            };
            if round.warmup {
                continue;
            }
            if !round.holds(&sample) {
                seen.foreign += 1;
                continue;
            }
            *there.entry(sample.round).or_default() += 1;
            if sample.status != 0 {
                seen.failed += 1;
                continue;
            }
            match sample.latency_ns() {
                Some(latency) => {
                    let side = if round.traced { &mut seen.traced } else { &mut seen.untraced };
                    side.entry(sample.round).or_default().push(latency);
                    if !round.traced {
                        seen.post_ns.extend(sample.post_end_ns.checked_sub(sample.post_begin_ns));
                    }
                }
                None => seen.backwards += 1,
            }
        }
        let measured = || rounds.values().filter(|round| !round.warmup);
        seen.expected = total(measured().map(|round| round.samples));
        let missing = |round: &Round| round.samples.saturating_sub(there.get(&round.index).copied().unwrap_or(0));
        seen.missing = total(measured().map(missing));
        Ok(seen)
    }

    /// Samples that are not there, as a share of those that the manifest counts.
    pub fn missing_share(&self) -> f64 {
        if self.missing == 0 { 0.0 } else { self.missing as f64 / self.expected as f64 }
    }
}
