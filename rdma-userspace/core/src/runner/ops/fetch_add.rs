//! FETCH_ADD of 1 on one counter in the server's memory, from the post to the own completion.
use super::atomic;
use super::description::Description;
use super::step::{ClientOperation, Idle};
use crate::runner::monitor::Monitor;
use crate::runner::queues::Queues;
use crate::runner::reap::CompletionMode;
use crate::runner::step_error::StepError;
use crate::verbs::SendOp;
use capture::Sample;

/// FETCH_ADD of 1.
#[derive(Default)]
pub(crate) struct FetchAdd;

impl ClientOperation for FetchAdd {
    const DESCRIPTION: &'static Description = &atomic::description(|at| SendOp::FetchAdd { at, add: 1 });

    type Server = Idle;

    const WAITS_FOR: &'static str = "the completion of its own fetch-and-add";

    #[inline]
    fn prepare(&mut self, queues: &mut Queues, _: &Monitor) -> Result<u64, StepError> {
        atomic::forget(queues)?;
        Ok(queues.submit.sends.next()?.0)
    }

    #[inline]
    fn finish<M: CompletionMode>(
        &mut self,
        queues: &mut Queues,
        mode: &mut M,
        monitor: &Monitor,
        sample: &mut Sample,
    ) -> Result<(), StepError> {
        let Queues { submit, completions, .. } = queues;
        completions.wait_own("The fetch-and-add", &mut submit.sends, mode, monitor, sample)
    }

    #[inline]
    fn check(&mut self, queues: &mut Queues) -> Result<(), StepError> {
        atomic::check_old(queues)
    }
}
