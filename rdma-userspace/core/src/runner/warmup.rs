//! Warm-up: blocks of operations until two in a row agree, for a bounded time.
use std::time::{Duration, Instant};

/// Two blocks agree when their medians differ by less than this factor.
const FACTOR: u64 = 2;

/// What to do after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmupStep {
    /// Run another block.
    Again,
    /// The last two blocks agree: measure.
    Settled,
    /// Time is up and they still do not: the machine is too noisy to say anything.
    Unstable {
        /// Median of the block before the last, ns.
        before_ns: u64,
        /// Median of the last block, ns.
        last_ns: u64,
    },
}

/// Judges the blocks of a warm-up; running them is the session's business, since both ends take part.
#[derive(Debug)]
pub struct Warmup {
    begin: Instant,
    most: Duration,
    before_ns: Option<u64>,
}

impl Warmup {
    /// A warm-up that takes at most this long.
    pub fn new(most: Duration) -> Self {
        Self { begin: Instant::now(), most, before_ns: None }
    }

    /// Takes the median of the next block.
    pub fn block(&mut self, median_ns: u64) -> WarmupStep {
        let Some(before_ns) = self.before_ns.replace(median_ns) else {
            return WarmupStep::Again;
        };
        let (low, high) = (before_ns.min(median_ns), before_ns.max(median_ns));
        if high <= low.saturating_mul(FACTOR) {
            WarmupStep::Settled
        } else if self.begin.elapsed() >= self.most {
            WarmupStep::Unstable { before_ns, last_ns: median_ns }
        } else {
            WarmupStep::Again
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_blocks_must_agree() {
        let mut warmup = Warmup::new(Duration::from_secs(3600));
        assert_eq!(warmup.block(7_000_000), WarmupStep::Again);
        assert_eq!(warmup.block(250_000), WarmupStep::Again);
        assert_eq!(warmup.block(400_000), WarmupStep::Settled);
    }

    #[test]
    fn a_noisy_machine_is_said_to_be_one() {
        let mut warmup = Warmup::new(Duration::ZERO);
        assert_eq!(warmup.block(1000), WarmupStep::Again);
        assert_eq!(warmup.block(2001), WarmupStep::Unstable { before_ns: 1000, last_ns: 2001 });
    }
}
