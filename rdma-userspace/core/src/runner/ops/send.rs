//! SEND/RECV ping-pong. The sample runs from the client's own send to its receive of the answer.
//!
//! The completion of a send comes with the peer's acknowledgement, on a queue of its own. It is reaped by polling outside of the sample,
//! before the next one begins; up to a whole queue of them may be outstanding, each with its slot, so that nobody waits for one as a rule.
use super::description::{Description, LocalArea, NOT_REACHED, Slots, nothing_before, on_every_device, other};
use super::step::{ClientOperation, Step};
use crate::runner::error::RunnerError;
use crate::runner::monitor::Monitor;
use crate::runner::queues::Queues;
use crate::runner::reap::CompletionMode;
use crate::runner::step_error::StepError;
use crate::verbs::{Completion, SendOp};
use capture::{Sample, Side};

/// The client.
#[derive(Default)]
pub(crate) struct Send;

impl ClientOperation for Send {
    const DESCRIPTION: &'static Description = &Description {
        send_op: |_| SendOp::Send,
        local: LocalArea::Send,
        client_lends: NOT_REACHED,
        server_lends: NOT_REACHED,
        alignment: 1,
        size: None,
        send_slots: Slots::PerWorkRequest,
        recv_slots: Slots::PerWorkRequest,
        takes_receives: true,
        put_before: nothing_before,
        verify,
        fault: on_every_device,
    };

    type Server = SendAnswer;

    const WAITS_FOR: &'static str = "the answer of the peer (a receive completion)";

    #[inline]
    fn prepare(&mut self, queues: &mut Queues, monitor: &Monitor) -> Result<u64, StepError> {
        let Queues { submit, completions, memory } = queues;
        completions.make_room(&mut submit.sends, monitor)?;
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
        let Queues { submit, completions, memory } = queues;
        let completion = completions.wait_receive("The receive of the answer", &submit.receives, mode, monitor, sample)?;
        check_length(memory.recv.layout.size_bytes, completion)
    }

    #[inline]
    fn check(&mut self, queues: &mut Queues) -> Result<(), StepError> {
        let (number, slot) = queues.submit.receives.take();
        queues.memory.recv.check_sequence(slot, number + 1)?;
        queues.submit.fill_receives()?;
        Ok(())
    }
}

/// The server: answers each message with its sequence. Its sample says: `done_ns` message received, `post_*` answer posted.
#[derive(Default)]
pub(crate) struct SendAnswer;

impl Step for SendAnswer {
    const WAITS_FOR: &'static str = "a message of the client (a receive completion)";

    #[inline]
    fn step<M: CompletionMode>(
        &mut self,
        queues: &mut Queues,
        mode: &mut M,
        monitor: &Monitor,
        sample: &mut Sample,
    ) -> Result<(), StepError> {
        let Queues { submit, completions, memory } = queues;
        completions.make_room(&mut submit.sends, monitor)?;
        let (wr_id, answer_slot) = submit.sends.next()?;
        sample.begin_wr_id = wr_id;
        let completion = completions.wait_receive("The receive of a message", &submit.receives, mode, monitor, sample)?;
        check_length(memory.recv.layout.size_bytes, completion)?;
        let (_, slot) = submit.receives.take();
        let sequence = memory.recv.load(slot)?;
        memory.send.store(answer_slot, sequence)?;
        submit.post(sample)?;
        submit.fill_receives()?;
        Ok(())
    }
}

#[inline]
fn check_length(expected: u32, completion: Completion) -> Result<(), StepError> {
    if completion.byte_len == expected {
        return Ok(());
    }
    Err(RunnerError::Payload(format!("a message of {} bytes, expected {expected}", completion.byte_len)).into())
}

/// The last messages lie in the slots of the receives that they took.
fn verify(queues: &Queues, side: Side, done: u64) -> Result<(), RunnerError> {
    let (taken, area) = (queues.submit.receives.taken(), &queues.memory.recv);
    if taken != done {
        return Err(RunnerError::Payload(format!("{taken} messages received, expected {done}")));
    }
    let first = done.saturating_sub(u64::from(area.layout.slots));
    (first..done).try_for_each(|number| area.verify(number, other(side), number + 1))
}
