//! SEND/RECV ping-pong. The sample runs from the client's own send to its receive of the answer.
//!
//! The completion of a send comes with the peer's acknowledgement, on a queue of its own. It is reaped by polling outside of the sample,
//! before the next one begins; up to a whole queue of them may be outstanding, each with its slot, so that nobody waits for one as a rule.
use super::{Operation, Party};
use crate::runner::endpoint::Endpoint;
use crate::runner::error::RunnerError;
use crate::runner::modes::CompletionMode;
use crate::runner::monitor::Monitor;
use crate::runner::rings::{Halt, only};
use crate::verbs::Completion;
use crate::verbs::ffi::os::monotonic_ns;
use analysis::capture::Sample;

const RECEIVE: &str = "The receive of the answer";

/// The client.
#[derive(Default)]
pub(crate) struct Send;

impl Operation for Send {
    const WAITS_FOR: &'static str = "the answer of the peer (a receive completion)";

    #[inline]
    fn prepare(&mut self, end: &mut Endpoint, monitor: &Monitor) -> Result<u64, Halt> {
        end.sends.make_room(&end.send_cq, monitor)?;
        let sequence = end.sends.layout.on_wire(end.sends.posted() + 1);
        let (wr_id, slot) = end.sends.next()?;
        end.sends.layout.store(&end.send_mr, slot, sequence)?;
        Ok(wr_id)
    }

    #[inline]
    fn finish<M: CompletionMode>(&mut self, end: &mut Endpoint, mode: &mut M, monitor: &Monitor, sample: &mut Sample) -> Result<(), Halt> {
        mode.wait(&end.recv_cq, &mut end.batch, monitor, sample)?;
        sample.end_wr_id = end.recvs.expected();
        check_length(end, only(RECEIVE, &end.batch, sample.end_wr_id)?)
    }

    #[inline]
    fn check(&mut self, end: &mut Endpoint) -> Result<(), Halt> {
        let (number, slot) = end.recvs.take();
        end.recvs.layout.check_sequence(&end.recv_mr, slot, number + 1)?;
        end.recvs.fill(&end.qp)?;
        Ok(())
    }
}

/// The server: answers each message with its sequence. Its sample says: `done_ns` message received, `post_*` answer posted.
#[derive(Default)]
pub(crate) struct SendAnswer;

impl Party for SendAnswer {
    const WAITS_FOR: &'static str = "a message of the client (a receive completion)";

    #[inline]
    fn step<M: CompletionMode>(&mut self, end: &mut Endpoint, mode: &mut M, monitor: &Monitor, sample: &mut Sample) -> Result<(), Halt> {
        end.sends.make_room(&end.send_cq, monitor)?;
        let (wr_id, answer_slot) = end.sends.next()?;
        mode.wait(&end.recv_cq, &mut end.batch, monitor, sample)?;
        sample.begin_wr_id = wr_id;
        sample.end_wr_id = end.recvs.expected();
        check_length(end, only("The receive of a message", &end.batch, sample.end_wr_id)?)?;
        let (_, slot) = end.recvs.take();
        let sequence = end.recvs.layout.load(&end.recv_mr, slot)?;
        end.sends.layout.store(&end.send_mr, answer_slot, sequence)?;
        sample.post_begin_ns = monotonic_ns();
        end.sends.post(&end.qp)?;
        sample.post_end_ns = monotonic_ns();
        end.recvs.fill(&end.qp)?;
        Ok(())
    }
}

#[inline]
fn check_length(end: &Endpoint, completion: Completion) -> Result<(), Halt> {
    let expected = end.recvs.layout.size_bytes;
    if completion.byte_len == expected {
        return Ok(());
    }
    Err(RunnerError::Payload(format!("a message of {} bytes, expected {expected}", completion.byte_len)).into())
}
