//! What posts work requests: room in the queue, wr_id, slot, the post and its stamps. How completions are found is [`super::reap`].
mod receive_queue;
mod send_queue;

pub(super) use receive_queue::ReceiveQueue;
pub(super) use send_queue::SendQueue;

use crate::verbs::ffi::os::monotonic_ns;
use crate::verbs::{Qp, RemoteMemory, VerbsError};
use capture::Sample;

/// A queue pair and what is posted to it.
pub(crate) struct Submit {
    pub qp: Qp,
    pub sends: SendQueue,
    pub receives: ReceiveQueue,
    /// The peer's memory; zeroes until the queue pair is connected.
    pub remote: RemoteMemory,
}

impl Submit {
    /// Posts the send that was set up by [`SendQueue::next`], and stamps the sample before and after it.
    #[inline]
    pub fn post(&mut self, sample: &mut Sample) -> Result<(), VerbsError> {
        sample.post_begin_ns = monotonic_ns();
        self.sends.post(&self.qp)?;
        sample.post_end_ns = monotonic_ns();
        Ok(())
    }

    /// Posts receives until the receive queue is full.
    #[inline]
    pub fn fill_receives(&mut self) -> Result<(), VerbsError> {
        self.receives.fill(&self.qp)
    }
}
