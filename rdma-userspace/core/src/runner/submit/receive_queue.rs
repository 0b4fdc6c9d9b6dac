//! The receive queue: always full, each receive with a slot of memory of its own.
use crate::runner::payload::Layout;
use crate::verbs::{Qp, RecvWr, VerbsError};
use capture::wr_id::WrIds;

/// Receives, in the order in which messages take them.
pub(crate) struct ReceiveQueue {
    wr: RecvWr,
    layout: Layout,
    ids: WrIds,
    posted: u64,
    taken: u64,
}

impl ReceiveQueue {
    pub fn new(wr: RecvWr, layout: Layout, ids: WrIds) -> Self {
        Self { wr, layout, ids, posted: 0, taken: 0 }
    }

    /// Messages received so far; the number of the next one.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// wr_id of the receive that the next message takes.
    #[inline]
    pub fn expected(&self) -> u64 {
        self.ids.receive(self.taken)
    }

    /// Posts receives until the queue is full.
    #[inline]
    pub(super) fn fill(&mut self, qp: &Qp) -> Result<(), VerbsError> {
        while self.posted - self.taken < u64::from(self.layout.slots) {
            self.wr.set_wr_id(self.ids.receive(self.posted));
            self.wr.set_range(self.layout.offset(self.posted), self.layout.size_bytes)?;
            qp.post_recv(&mut self.wr)?;
            self.posted += 1;
        }
        Ok(())
    }

    /// The next message has come: gives its number and the offset of its slot, which stays valid until the queue is filled again.
    #[inline]
    pub fn take(&mut self) -> (u64, usize) {
        let number = self.taken;
        self.taken += 1;
        (number, self.layout.offset(number))
    }
}
