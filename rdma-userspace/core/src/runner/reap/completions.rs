//! The completion queues of a queue pair: which one ends the samples, and what its completions must be.
use super::CompletionMode;
use crate::runner::error::RunnerError;
use crate::runner::monitor::Monitor;
use crate::runner::step_error::StepError;
use crate::runner::submit::{ReceiveQueue, SendQueue};
use crate::verbs::{Batch, Channel, Completion, Cq, Device, VerbsError};
use capture::operation::EndsWith;
use capture::{Mode, Sample};
use std::time::{Duration, Instant};

/// Status of a request that was flushed: another completion holds the cause.
const FLUSHED: u32 = 5;

/// The CQ of the sends and the CQ of the receives. One of them ends the samples; it has the completion channel, where there is one.
pub(crate) struct Completions {
    pub send_cq: Cq,
    pub recv_cq: Cq,
    batch: Batch,
    ends_with: EndsWith,
}

impl Completions {
    /// Creates both queues, and a channel for the one that ends the samples where the mode may sleep.
    pub fn create(device: &Device, ends_with: EndsWith, mode: Mode, entries: u32, comp_vector: u32) -> Result<Self, VerbsError> {
        let own_ends = ends_with == EndsWith::OwnCompletion;
        let channel = |ends: bool| if ends && mode.may_sleep() { Channel::create(device).map(Some) } else { Ok(None) };
        let send_cq = Cq::create(device, channel(own_ends)?, entries, comp_vector)?;
        let recv_cq = Cq::create(device, channel(!own_ends)?, entries, comp_vector)?;
        Ok(Self { send_cq, recv_cq, batch: Batch::default(), ends_with })
    }

    /// The CQ whose completions end the samples.
    #[inline]
    pub fn end_cq(&self) -> &Cq {
        match self.ends_with {
            EndsWith::OwnCompletion => &self.send_cq,
            EndsWith::Receive | EndsWith::Memory => &self.recv_cq,
        }
    }

    /// The same with room for what a poll of it gives.
    pub fn end_cq_and_batch(&mut self) -> (&Cq, &mut Batch) {
        let cq = match self.ends_with {
            EndsWith::OwnCompletion => &self.send_cq,
            EndsWith::Receive | EndsWith::Memory => &self.recv_cq,
        };
        (cq, &mut self.batch)
    }

    /// Waits for the completion of the send that began the sample, which is the only one outstanding, and retires it.
    #[inline]
    pub fn wait_own<M: CompletionMode>(
        &mut self,
        what: &'static str,
        sends: &mut SendQueue,
        mode: &mut M,
        monitor: &Monitor,
        sample: &mut Sample,
    ) -> Result<(), StepError> {
        mode.wait(&self.send_cq, &mut self.batch, monitor, sample)?;
        sample.end_wr_id = sample.begin_wr_id;
        only(what, &self.batch, sample.begin_wr_id)?;
        sends.retire();
        Ok(())
    }

    /// Waits for the completion of the next receive.
    #[inline]
    pub fn wait_receive<M: CompletionMode>(
        &mut self,
        what: &'static str,
        receives: &ReceiveQueue,
        mode: &mut M,
        monitor: &Monitor,
        sample: &mut Sample,
    ) -> Result<Completion, StepError> {
        mode.wait(&self.recv_cq, &mut self.batch, monitor, sample)?;
        sample.end_wr_id = receives.expected();
        only(what, &self.batch, sample.end_wr_id)
    }

    /// One look at the CQ of the sends of a ping-pong, outside of every sample: retires those whose completion is there.
    #[inline]
    pub fn retire_sends(&mut self, sends: &mut SendQueue) -> Result<(), StepError> {
        if sends.outstanding() == 0 {
            return Ok(());
        }
        self.send_cq.poll(&mut self.batch)?;
        for index in 0..self.batch.len() {
            let Some(completion) = self.batch.get(index) else { break };
            if completion.status != 0 {
                return Err(StepError::BadCompletion("A send", completion));
            }
            if completion.wr_id != sends.oldest() || sends.outstanding() == 0 {
                return Err(unexpected("a send", sends.oldest(), self.batch.len(), Some(completion)));
            }
            sends.retire();
        }
        Ok(())
    }

    /// Retires sends until there is room for one more. Takes one look when there is.
    #[inline]
    pub fn make_room(&mut self, sends: &mut SendQueue, monitor: &Monitor) -> Result<(), StepError> {
        self.retire_sends_to(sends.room() - 1, sends, monitor)
    }

    /// Retires sends until at most `left` are outstanding.
    #[inline]
    pub fn retire_sends_to(&mut self, left: u64, sends: &mut SendQueue, monitor: &Monitor) -> Result<(), StepError> {
        loop {
            self.retire_sends(sends)?;
            if sends.outstanding() <= left {
                return Ok(());
            }
            if monitor.stopped() {
                return Err(StepError::Stopped);
            }
        }
    }

    /// The error of a completion with a bad status: the root cause, where it was merely flushed and the cause lies on the other queue.
    #[cold]
    pub fn cause_of(&mut self, what: &'static str, completion: Completion, within: Duration) -> RunnerError {
        if completion.status != FLUSHED {
            return RunnerError::of_completion(what, completion);
        }
        self.root_cause(within).unwrap_or_else(|| RunnerError::of_completion(what, completion))
    }

    /// Looks through both queues for a completion that is neither good nor merely flushed. Nothing can be measured with them any more.
    #[cold]
    pub fn root_cause(&mut self, within: Duration) -> Option<RunnerError> {
        let begin = Instant::now();
        // A device may flush some time after the error.
        while begin.elapsed() < within {
            for cq in [&self.send_cq, &self.recv_cq] {
                cq.poll(&mut self.batch).ok()?;
                let found = self.batch.iter().find(|completion| completion.status != 0 && completion.status != FLUSHED);
                if let Some(found) = found {
                    return Some(RunnerError::of_completion("A work request of this queue pair", found));
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }
}

/// Takes the one completion of a batch that a queue of depth 1 can give, and checks that it is the one expected.
#[inline]
fn only(what: &'static str, batch: &Batch, wr_id: u64) -> Result<Completion, StepError> {
    match batch.get(0) {
        Some(completion) if completion.wr_id == wr_id && completion.status == 0 && batch.len() == 1 => Ok(completion),
        Some(completion) if completion.status != 0 => Err(StepError::BadCompletion(what, completion)),
        other => Err(unexpected(what, wr_id, batch.len(), other)),
    }
}

#[cold]
fn unexpected(what: &str, wr_id: u64, count: usize, first: Option<Completion>) -> StepError {
    let got = first.map_or_else(|| "nothing".into(), |c| format!("{count} completions, the first with wr_id {:#x}", c.wr_id));
    RunnerError::Unexpected { expected: format!("the completion of {what} with wr_id {wr_id:#x}"), got }.into()
}
