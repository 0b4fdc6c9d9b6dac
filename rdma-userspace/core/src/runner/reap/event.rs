//! Completion events: arm, poll once, and only when that finds nothing block in a read of the completion channel.
//!
//! ```text
//! post ─► arm ─► poll once ─┬─ found ───────────────────────────────► done
//!          ▲                └─ empty ─► read ONE event ─► poll ─┬─ found ─► done
//!          └───────────────────────────────── empty (spurious) ─┘
//! ```
//! Between wake-up and poll the queue is never armed. It is armed again only after an event that brought nothing: such an event was raised
//! by a completion that an earlier poll took, and hardware ignores an arm that came before that event was read.
//! A completion that was there before the arm raises no event on rxe, hence the poll between arm and read.
//!
//! A sample whose completion was found by that poll leaves an event behind, or a queue that is still armed and will raise one for a
//! completion that nobody waits for. Left alone, such events pile up in the channel, every later read returns at once with an old one, and
//! the thread never sleeps again. So after such a sample, before the next one begins, the channel is emptied without blocking.
use super::CompletionMode;
use crate::runner::counters::ModeCounters;
use crate::runner::monitor::Monitor;
use crate::runner::step_error::StepError;
use crate::verbs::ffi::os::monotonic_ns;
use crate::verbs::{Batch, Cq};
use capture::Sample;

#[derive(Default)]
pub(crate) struct EventMode {
    counters: ModeCounters,
    /// The last sample ended without a read: its event may be in the channel.
    unread: bool,
}

impl CompletionMode for EventMode {
    #[inline]
    fn wait(&mut self, cq: &Cq, batch: &mut Batch, monitor: &Monitor, sample: &mut Sample) -> Result<(), StepError> {
        loop {
            sample.arm_ns = monotonic_ns();
            cq.arm()?;
            if cq.poll(batch)? != 0 {
                sample.done_ns = monotonic_ns();
                // The read of a spurious event before this arm is not the one that the end CQE followed.
                (sample.wait_begin_ns, sample.wait_end_ns) = (0, 0);
                self.counters.armed_poll_hits += 1;
                self.unread = true;
                return Ok(());
            }
            sample.wait_begin_ns = monotonic_ns();
            while !cq.read_event()? {
                if monitor.stopped() {
                    return Err(StepError::Stopped);
                }
            }
            sample.wait_end_ns = monotonic_ns();
            let found = cq.poll(batch)?;
            let polled_ns = monotonic_ns();
            self.counters.events += 1;
            sample.waits = sample.waits.saturating_add(1);
            if found != 0 {
                sample.done_ns = polled_ns;
                return Ok(());
            }
            self.counters.empty_wakeups += 1;
            sample.empty_wakeups = sample.empty_wakeups.saturating_add(1);
            if monitor.stopped() {
                return Err(StepError::Stopped);
            }
        }
    }

    #[inline]
    fn between(&mut self, cq: &Cq) -> Result<(), StepError> {
        if std::mem::take(&mut self.unread) {
            self.counters.drained_events += cq.drain_events()?;
        }
        Ok(())
    }

    fn counters(&mut self) -> &mut ModeCounters {
        &mut self.counters
    }
}
