//! The send queue: which send uses which wr_id and which slot of memory, and which are outstanding. It never looks at a completion.
use crate::runner::payload::Layout;
use crate::verbs::{Qp, SendOp, SendWr, VerbsError};
use capture::wr_id::WrIds;

/// Sends: each signalled, each from a slot of its own until its completion is found.
pub(crate) struct SendQueue {
    wr: SendWr,
    layout: Layout,
    ids: WrIds,
    posted: u64,
    retired: u64,
}

impl SendQueue {
    pub fn new(wr: SendWr, layout: Layout, ids: WrIds) -> Self {
        Self { wr, layout, ids, posted: 0, retired: 0 }
    }

    /// What its next sends do.
    #[inline]
    pub fn set_op(&mut self, op: SendOp) {
        self.wr.set_op(op);
    }

    /// Sends posted so far; the number of the next one.
    #[inline]
    pub fn posted(&self) -> u64 {
        self.posted
    }

    /// Sends whose completion has not been found.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.posted - self.retired
    }

    /// Most sends that may be outstanding: each has a slot of its own.
    #[inline]
    pub fn room(&self) -> u64 {
        u64::from(self.layout.slots)
    }

    /// Sets up the next send and gives its wr_id and the offset of its slot.
    #[inline]
    pub fn next(&mut self) -> Result<(u64, usize), VerbsError> {
        let wr_id = self.ids.send(self.posted);
        let offset = self.layout.offset(self.posted);
        self.wr.set_wr_id(wr_id);
        self.wr.set_range(offset, self.layout.size_bytes)?;
        Ok((wr_id, offset))
    }

    /// Posts the send that was set up.
    #[inline]
    pub(super) fn post(&mut self, qp: &Qp) -> Result<(), VerbsError> {
        qp.post_send(&mut self.wr)?;
        self.posted += 1;
        Ok(())
    }

    /// wr_id of the oldest send whose completion has not been found.
    #[inline]
    pub fn oldest(&self) -> u64 {
        self.ids.send(self.retired)
    }

    /// The completion of the oldest send was found: its slot is free.
    #[inline]
    pub fn retire(&mut self) {
        self.retired += 1;
    }
}
