//! RDMA WRITE ping-pong: each side watches the last bytes of its own memory until the peer's next sequence is there.
//!
//! No completion marks the pong, so there is no event to wait for: polling only. The completions of the own writes are reaped as in `send`.
use super::description::{Description, LocalArea, NOT_REACHED, Slots, nothing_before, on_every_device, other};
use super::step::{ClientOperation, Step};
use crate::runner::monitor::Monitor;
use crate::runner::queues::Queues;
use crate::runner::reap::{CompletionMode, watch};
use crate::runner::step_error::StepError;
use crate::verbs::{Access, SendOp};
use capture::Sample;

/// The client.
#[derive(Default)]
pub(crate) struct WritePp {
    on_wire: u64,
}

impl ClientOperation for WritePp {
    const DESCRIPTION: &'static Description = &Description {
        send_op: SendOp::Write,
        local: LocalArea::Send,
        client_lends: Access { remote_write: true, ..NOT_REACHED },
        server_lends: Access { remote_write: true, ..NOT_REACHED },
        alignment: 1,
        size: None,
        send_slots: Slots::PerWorkRequest,
        recv_slots: Slots::One,
        takes_receives: false,
        put_before: nothing_before,
        verify: |queues, side, done| queues.memory.recv.verify(0, other(side), done),
        fault: on_every_device,
    };

    type Server = WatchAnswer;

    const WAITS_FOR: &'static str = "the answer of the peer (its write into this side's memory)";

    #[inline]
    fn prepare(&mut self, queues: &mut Queues, monitor: &Monitor) -> Result<u64, StepError> {
        let wr_id;
        (wr_id, self.on_wire) = set_up(queues, monitor)?;
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
        watch(&queues.memory.recv, self.on_wire, mode, monitor, sample)
    }

    #[inline]
    fn check(&mut self, _: &mut Queues) -> Result<(), StepError> {
        // The watched value was the sequence itself.
        Ok(())
    }
}

/// The server. Its sample says: `done_ns` message seen, `post_*` answer posted.
#[derive(Default)]
pub(crate) struct WatchAnswer;

impl Step for WatchAnswer {
    const WAITS_FOR: &'static str = "a message of the client (its write into this side's memory)";

    #[inline]
    fn step<M: CompletionMode>(
        &mut self,
        queues: &mut Queues,
        mode: &mut M,
        monitor: &Monitor,
        sample: &mut Sample,
    ) -> Result<(), StepError> {
        let (wr_id, on_wire) = set_up(queues, monitor)?;
        watch(&queues.memory.recv, on_wire, mode, monitor, sample)?;
        sample.begin_wr_id = wr_id;
        queues.submit.post(sample)?;
        Ok(())
    }
}

/// The next write with its sequence in place: its wr_id, and the sequence, which is also that of the peer's next write.
#[inline]
fn set_up(queues: &mut Queues, monitor: &Monitor) -> Result<(u64, u64), StepError> {
    let Queues { submit, completions, memory } = queues;
    completions.make_room(&mut submit.sends, monitor)?;
    let on_wire = memory.send.layout.on_wire(submit.sends.posted() + 1);
    let (wr_id, slot) = submit.sends.next()?;
    memory.send.store(slot, on_wire)?;
    Ok((wr_id, on_wire))
}
