//! Completion modes: how a thread learns that a completion has come.
mod costs;
mod event;
mod poll;

pub(super) use costs::{HitPoll, LastEmpty};
pub(super) use event::EventMode;
pub(super) use poll::PollMode;

use super::counters::ModeCounters;
use super::monitor::Monitor;
use super::rings::Halt;
use crate::verbs::{Batch, Cq};
use analysis::capture::Sample;

/// A completion mode. The measured loop is compiled once per operation and mode; there is no dynamic call in it.
pub(crate) trait CompletionMode: Default {
    /// Waits until the queue gives completions into `batch`, and stamps the sample: arm, wait and done.
    ///
    /// It is called after the post, with the queue empty but for what that post brings.
    fn wait(&mut self, cq: &Cq, batch: &mut Batch, monitor: &Monitor, sample: &mut Sample) -> Result<(), Halt>;

    /// Between two samples: puts in order what the last wait left behind.
    fn between(&mut self, cq: &Cq) -> Result<(), Halt>;

    /// Counters since the round began; taking them resets them.
    fn counters(&mut self) -> &mut ModeCounters;
}
