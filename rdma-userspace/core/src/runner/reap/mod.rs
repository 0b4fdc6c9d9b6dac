//! How completions are found: the completion modes on the CQ that ends the samples, the stamps of waiting, and what came back.
//! What posts the work requests is [`super::submit`].
mod completions;
mod event;
mod poll;
mod timed;
mod watch;

pub(super) use completions::Completions;
pub(super) use timed::{TimedHit, TimedWindow};
pub(super) use watch::watch;

use super::counters::ModeCounters;
use super::monitor::Monitor;
use super::step_error::StepError;
use crate::verbs::{Batch, Cq};
use capture::{Mode, Sample};

/// A completion mode. The measured loop is compiled once per operation and mode; there is no dynamic call in it.
pub(crate) trait CompletionMode: Default {
    /// Waits until the queue gives completions into `batch`, and stamps the sample: arm, wait and done.
    ///
    /// It is called after the post, with the queue empty but for what that post brings.
    fn wait(&mut self, cq: &Cq, batch: &mut Batch, monitor: &Monitor, sample: &mut Sample) -> Result<(), StepError>;

    /// Between two samples: puts in order what the last wait left behind.
    fn between(&mut self, cq: &Cq) -> Result<(), StepError>;

    /// Counters since the round began; taking them resets them.
    fn counters(&mut self) -> &mut ModeCounters;
}

/// What is done with a completion mode once its type is known.
pub(super) trait WithMode {
    /// Does it.
    fn with<M: CompletionMode>(self);
}

/// Does something with the type of a completion mode. This is their one list.
pub(super) fn with_mode(mode: Mode, then: impl WithMode) {
    match mode {
        Mode::Poll => then.with::<poll::PollMode>(),
        Mode::Event => then.with::<event::EventMode>(),
    }
}
