//! CMP_SWAP from n to n + 1 on one counter in the server's memory, from the post to the own completion. Each one succeeds.
use super::atomic;
use super::description::Description;
use super::step::{ClientOperation, Idle};
use crate::runner::monitor::Monitor;
use crate::runner::queues::Queues;
use crate::runner::reap::CompletionMode;
use crate::runner::step_error::StepError;
use crate::verbs::SendOp;
use capture::Sample;

/// CMP_SWAP from n to n + 1.
#[derive(Default)]
pub(crate) struct CmpSwap;

impl ClientOperation for CmpSwap {
    const DESCRIPTION: &'static Description = &atomic::description(|at| SendOp::CmpSwap { at, compare: 0, swap: 1 });

    type Server = Idle;

    const WAITS_FOR: &'static str = "the completion of its own compare-and-swap";

    #[inline]
    fn prepare(&mut self, queues: &mut Queues, _: &Monitor) -> Result<u64, StepError> {
        atomic::forget(queues)?;
        let submit = &mut queues.submit;
        let compare = submit.sends.posted();
        submit.sends.set_op(SendOp::CmpSwap { at: submit.remote, compare, swap: compare + 1 });
        Ok(submit.sends.next()?.0)
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
        completions.wait_own("The compare-and-swap", &mut submit.sends, mode, monitor, sample)
    }

    #[inline]
    fn check(&mut self, queues: &mut Queues) -> Result<(), StepError> {
        atomic::check_old(queues)
    }
}
