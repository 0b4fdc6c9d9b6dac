//! Two ways to wait that serve to measure the polling itself, in rounds of their own. Both read the clock where an ordinary round must not.
//!
//! ```text
//! TimedHit:    post ─► time passes, nobody looks ─► clock, poll, clock ─► done
//! TimedWindow: post ─► poll, clock ─► empty ─► poll, clock ─► found: the time since the clock read before is kept
//! ```
use super::CompletionMode;
use crate::runner::counters::ModeCounters;
use crate::runner::monitor::Monitor;
use crate::runner::step_error::StepError;
use crate::verbs::ffi::os::monotonic_ns;
use crate::verbs::{Batch, Cq};
use capture::Sample;

/// Times that are kept during a round, in memory that is there before it begins.
#[derive(Default)]
struct Kept {
    values_ns: Vec<u64>,
    count: usize,
}

impl Kept {
    fn room_for(count: u64) -> Self {
        // Ones, not zeros: zero pages might only be touched within the round.
        Self { values_ns: vec![1; usize::try_from(count).unwrap_or(0)], count: 0 }
    }

    #[inline]
    fn keep(&mut self, ns: u64) {
        if let Some(place) = self.values_ns.get_mut(self.count) {
            *place = ns;
            self.count += 1;
        }
    }

    fn taken(&mut self) -> &mut [u64] {
        &mut self.values_ns[..self.count]
    }
}

/// Gives the completion time to come, and then times the one poll that takes it.
#[derive(Default)]
pub(crate) struct TimedHit {
    counters: ModeCounters,
    wait_ns: u64,
    kept: Kept,
    came_back_empty: u64,
}

impl TimedHit {
    /// For so many operations, each of which gets so much time after its post.
    pub fn new(operations: u64, wait_ns: u64) -> Self {
        Self { wait_ns, kept: Kept::room_for(operations), ..Self::default() }
    }

    /// Durations of the polls that brought the completion.
    pub fn polls_ns(&mut self) -> &mut [u64] {
        self.kept.taken()
    }

    /// Timed polls that brought nothing.
    pub fn came_back_empty(&self) -> u64 {
        self.came_back_empty
    }
}

impl CompletionMode for TimedHit {
    #[inline]
    fn wait(&mut self, cq: &Cq, batch: &mut Batch, monitor: &Monitor, sample: &mut Sample) -> Result<(), StepError> {
        let until_ns = sample.post_end_ns.saturating_add(self.wait_ns);
        while monotonic_ns() < until_ns {
            if monitor.stopped() {
                return Err(StepError::Stopped);
            }
            std::hint::spin_loop();
        }
        let before_ns = monotonic_ns();
        let found = cq.poll(batch)?;
        sample.done_ns = monotonic_ns();
        if found != 0 {
            self.kept.keep(sample.done_ns.saturating_sub(before_ns));
            return Ok(());
        }
        self.came_back_empty += 1;
        while cq.poll(batch)? == 0 {
            if monitor.stopped() {
                return Err(StepError::Stopped);
            }
        }
        sample.done_ns = monotonic_ns();
        Ok(())
    }

    #[inline]
    fn between(&mut self, _: &Cq) -> Result<(), StepError> {
        Ok(())
    }

    fn counters(&mut self) -> &mut ModeCounters {
        &mut self.counters
    }
}

/// Polls with a clock read after each poll.
#[derive(Default)]
pub(crate) struct TimedWindow {
    counters: ModeCounters,
    kept: Kept,
    first_poll_hits: u64,
}

impl TimedWindow {
    /// For so many operations.
    pub fn new(operations: u64) -> Self {
        Self { kept: Kept::room_for(operations), ..Self::default() }
    }

    /// From the last empty poll to the hit, per operation that had an empty poll.
    pub fn windows_ns(&mut self) -> &mut [u64] {
        self.kept.taken()
    }

    /// Operations whose first poll was the hit.
    pub fn first_poll_hits(&self) -> u64 {
        self.first_poll_hits
    }
}

impl CompletionMode for TimedWindow {
    #[inline]
    fn wait(&mut self, cq: &Cq, batch: &mut Batch, monitor: &Monitor, sample: &mut Sample) -> Result<(), StepError> {
        let mut last_empty_ns = None;
        loop {
            let found = cq.poll(batch)?;
            let now_ns = monotonic_ns();
            if found != 0 {
                sample.done_ns = now_ns;
                match last_empty_ns {
                    Some(before_ns) => self.kept.keep(now_ns.saturating_sub(before_ns)),
                    None => self.first_poll_hits += 1,
                }
                return Ok(());
            }
            last_empty_ns = Some(now_ns);
            if monitor.stopped() {
                return Err(StepError::Stopped);
            }
        }
    }

    #[inline]
    fn between(&mut self, _: &Cq) -> Result<(), StepError> {
        Ok(())
    }

    fn counters(&mut self) -> &mut ModeCounters {
        &mut self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_left_out_and_nothing_unwritten_is_given() {
        let mut kept = Kept::room_for(2);
        assert!(kept.taken().is_empty());
        kept.keep(5);
        assert_eq!(kept.taken(), [5]);
        kept.keep(6);
        kept.keep(7);
        assert_eq!(kept.taken(), [5, 6]);
    }
}
