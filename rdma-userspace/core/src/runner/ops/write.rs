//! RDMA WRITE, from the post to the own completion. The server's thread takes no part.
use super::description::{Description, LocalArea, NOT_REACHED, Slots, nothing_before, on_every_device, other};
use super::step::{ClientOperation, Idle};
use crate::runner::error::RunnerError;
use crate::runner::monitor::Monitor;
use crate::runner::queues::Queues;
use crate::runner::reap::CompletionMode;
use crate::runner::step_error::StepError;
use crate::verbs::{Access, SendOp};
use capture::{Sample, Side};

/// RDMA WRITE.
#[derive(Default)]
pub(crate) struct Write;

impl ClientOperation for Write {
    const DESCRIPTION: &'static Description = &Description {
        send_op: SendOp::Write,
        local: LocalArea::Send,
        client_lends: NOT_REACHED,
        server_lends: Access { remote_write: true, ..NOT_REACHED },
        alignment: 1,
        size: None,
        send_slots: Slots::One,
        recv_slots: Slots::One,
        takes_receives: false,
        put_before: nothing_before,
        verify,
        fault: on_every_device,
    };

    type Server = Idle;

    const WAITS_FOR: &'static str = "the completion of its own write";

    #[inline]
    fn prepare(&mut self, queues: &mut Queues, _: &Monitor) -> Result<u64, StepError> {
        let Queues { submit, memory, .. } = queues;
        let sequence = memory.send.layout.on_wire(submit.sends.posted() + 1);
        let (wr_id, slot) = submit.sends.next()?;
        memory.send.store(slot, sequence)?;
        Ok(wr_id)
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
        completions.wait_own("The write", &mut submit.sends, mode, monitor, sample)
    }

    #[inline]
    fn check(&mut self, _: &mut Queues) -> Result<(), StepError> {
        // What was written lies in the peer's memory; the peer checks it after the run.
        Ok(())
    }
}

/// What was written lies in the server's memory.
fn verify(queues: &Queues, side: Side, done: u64) -> Result<(), RunnerError> {
    match side {
        Side::Client => Ok(()),
        Side::Server => queues.memory.recv.verify(0, other(side), done),
    }
}
