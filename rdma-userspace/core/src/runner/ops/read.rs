//! RDMA READ, from the post to the own completion. The server's thread takes no part.
use super::description::{Description, LocalArea, NOT_REACHED, Slots, on_every_device, other};
use super::step::{ClientOperation, Idle};
use crate::runner::error::RunnerError;
use crate::runner::memory::Memory;
use crate::runner::monitor::Monitor;
use crate::runner::queues::Queues;
use crate::runner::reap::CompletionMode;
use crate::runner::step_error::StepError;
use crate::verbs::{Access, SendOp, VerbsError};
use capture::{Sample, Side};

/// The sequence that the memory behind a READ holds.
const READ_SEQUENCE: u64 = 1;

/// RDMA READ. The last bytes of the own memory are zeroed before each one, so that data which did not come is noticed.
#[derive(Default)]
pub(crate) struct Read;

impl ClientOperation for Read {
    const DESCRIPTION: &'static Description = &Description {
        send_op: SendOp::Read,
        local: LocalArea::Receive,
        client_lends: NOT_REACHED,
        server_lends: Access { remote_read: true, ..NOT_REACHED },
        alignment: 1,
        size: None,
        send_slots: Slots::One,
        recv_slots: Slots::One,
        takes_receives: false,
        put_before,
        verify,
        fault: on_every_device,
    };

    type Server = Idle;

    const WAITS_FOR: &'static str = "the completion of its own read";

    #[inline]
    fn prepare(&mut self, queues: &mut Queues, _: &Monitor) -> Result<u64, StepError> {
        queues.memory.recv.store(0, 0)?;
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
        completions.wait_own("The read", &mut submit.sends, mode, monitor, sample)
    }

    #[inline]
    fn check(&mut self, queues: &mut Queues) -> Result<(), StepError> {
        let got = queues.memory.recv.load(0)?;
        if got == READ_SEQUENCE { Ok(()) } else { Err(RunnerError::wrong_sequence(READ_SEQUENCE, got).into()) }
    }
}

/// The server's memory holds a message.
fn put_before(memory: &Memory, side: Side) -> Result<(), VerbsError> {
    match side {
        Side::Client => Ok(()),
        Side::Server => {
            memory.recv.fill(side)?;
            memory.recv.store(0, READ_SEQUENCE)
        }
    }
}

/// What was read lies in the client's memory.
fn verify(queues: &Queues, side: Side, _: u64) -> Result<(), RunnerError> {
    match side {
        Side::Client => queues.memory.recv.verify(0, other(side), READ_SEQUENCE),
        Side::Server => Ok(()),
    }
}
