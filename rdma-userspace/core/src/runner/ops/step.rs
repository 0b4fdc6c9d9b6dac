//! What one end of a run does per operation.
use super::description::Description;
use crate::runner::monitor::Monitor;
use crate::runner::queues::Queues;
use crate::runner::reap::CompletionMode;
use crate::runner::step_error::StepError;
use capture::Sample;

/// What one end does per operation. The loop around it is the same for all, and is compiled for each of them.
pub(crate) trait Step {
    /// What a step waits for, for the error of a step that does not end.
    const WAITS_FOR: &'static str;
    /// False for an end that only lends its memory.
    const TAKES_PART: bool = true;

    /// One operation, stamped.
    fn step<M: CompletionMode>(
        &mut self,
        queues: &mut Queues,
        mode: &mut M,
        monitor: &Monitor,
        sample: &mut Sample,
    ) -> Result<(), StepError>;
}

/// An operation: what it is, and how the client measures it.
pub(crate) trait ClientOperation: Default {
    /// What it is.
    const DESCRIPTION: &'static Description;

    /// What the server does per operation; [`Idle`] where its thread takes no part.
    type Server: Step + Default;

    /// As [`Step::WAITS_FOR`].
    const WAITS_FOR: &'static str;

    /// Before the sample: everything that must not count. Gives the wr_id that will be posted.
    fn prepare(&mut self, queues: &mut Queues, monitor: &Monitor) -> Result<u64, StepError>;

    /// Waits for the end, stamps it, and sets `end_wr_id`.
    fn finish<M: CompletionMode>(
        &mut self,
        queues: &mut Queues,
        mode: &mut M,
        monitor: &Monitor,
        sample: &mut Sample,
    ) -> Result<(), StepError>;

    /// After the sample: checks what came.
    fn check(&mut self, queues: &mut Queues) -> Result<(), StepError>;
}

/// The client's step: an operation, measured.
#[derive(Default)]
pub(crate) struct Measured<O>(O);

impl<O: ClientOperation> Step for Measured<O> {
    const WAITS_FOR: &'static str = O::WAITS_FOR;

    #[inline]
    fn step<M: CompletionMode>(
        &mut self,
        queues: &mut Queues,
        mode: &mut M,
        monitor: &Monitor,
        sample: &mut Sample,
    ) -> Result<(), StepError> {
        sample.begin_wr_id = self.0.prepare(queues, monitor)?;
        queues.submit.post(sample)?;
        self.0.finish(queues, mode, monitor, sample)?;
        self.0.check(queues)
    }
}

/// The server's step of a one-sided operation: its memory is used, its thread is not.
#[derive(Default)]
pub(crate) struct Idle;

impl Step for Idle {
    const WAITS_FOR: &'static str = "nothing";
    const TAKES_PART: bool = false;

    fn step<M: CompletionMode>(&mut self, _: &mut Queues, _: &mut M, _: &Monitor, _: &mut Sample) -> Result<(), StepError> {
        Ok(())
    }
}
