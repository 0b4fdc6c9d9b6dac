//! Polling: look at the completion queue until something is there. Nothing else happens in the loop: no clock, no system call of ours.
use super::CompletionMode;
use crate::runner::counters::ModeCounters;
use crate::runner::monitor::Monitor;
use crate::runner::step_error::StepError;
use crate::verbs::ffi::os::monotonic_ns;
use crate::verbs::{Batch, Cq};
use capture::Sample;

#[derive(Default)]
pub(crate) struct PollMode {
    counters: ModeCounters,
}

impl CompletionMode for PollMode {
    #[inline]
    fn wait(&mut self, cq: &Cq, batch: &mut Batch, monitor: &Monitor, sample: &mut Sample) -> Result<(), StepError> {
        let mut empty = 0;
        let result = loop {
            if cq.poll(batch)? != 0 {
                sample.done_ns = monotonic_ns();
                break Ok(());
            }
            empty += 1;
            if monitor.stopped() {
                break Err(StepError::Stopped);
            }
        };
        self.counters.empty_polls += empty;
        result
    }

    #[inline]
    fn between(&mut self, _: &Cq) -> Result<(), StepError> {
        Ok(())
    }

    fn counters(&mut self) -> &mut ModeCounters {
        &mut self.counters
    }
}
