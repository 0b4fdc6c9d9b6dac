//! The send and the receive queue of an endpoint as rings of slots: which WR uses which memory, what is outstanding, what must come next.
use super::error::RunnerError;
use super::monitor::Monitor;
use super::payload::Layout;
use super::wr_id::WrIds;
use crate::verbs::{Batch, Completion, Cq, Qp, RecvWr, SendWr, VerbsError, status_info};

/// Why a step did not come to its end.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The monitor's flag was seen.
    Stopped,
    /// An error.
    Failed(Box<RunnerError>),
    /// A completion with an error status; the cause may be on the other queue.
    Bad(&'static str, Completion),
}

impl From<VerbsError> for Halt {
    #[cold]
    fn from(error: VerbsError) -> Self {
        Self::Failed(Box::new(error.into()))
    }
}

impl From<RunnerError> for Halt {
    #[cold]
    fn from(error: RunnerError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// The error for a completion with a bad status.
#[cold]
pub(crate) fn bad_completion(what: &'static str, completion: Completion) -> RunnerError {
    let info = status_info(completion.status);
    RunnerError::Completion {
        what,
        wr_id: completion.wr_id,
        qpn: completion.qpn,
        status: info.name,
        code: info.code,
        meaning: info.meaning,
        causes: info.causes,
        vendor_err: completion.vendor_err,
    }
}

/// Takes the one completion of a batch that a queue of depth 1 can give, and checks that it is the one expected.
#[inline]
pub(crate) fn only(what: &'static str, batch: &Batch, wr_id: u64) -> Result<Completion, Halt> {
    match batch.get(0) {
        Some(completion) if completion.wr_id == wr_id && completion.status == 0 && batch.len() == 1 => Ok(completion),
        Some(completion) if completion.status != 0 => Err(Halt::Bad(what, completion)),
        other => Err(unexpected(what, wr_id, batch.len(), other)),
    }
}

#[cold]
fn unexpected(what: &str, wr_id: u64, count: usize, first: Option<Completion>) -> Halt {
    let got = first.map_or_else(|| "nothing".into(), |c| format!("{count} completions, the first with wr_id {:#x}", c.wr_id));
    RunnerError::Unexpected { expected: format!("the completion of {what} with wr_id {wr_id:#x}"), got }.into()
}

/// Sends: each signalled, each from a slot of its own until its completion is reaped.
pub(crate) struct SendRing {
    pub wr: SendWr,
    pub layout: Layout,
    ids: WrIds,
    posted: u64,
    reaped: u64,
    batch: Batch,
}

impl SendRing {
    pub fn new(wr: SendWr, layout: Layout, ids: WrIds) -> Self {
        Self { wr, layout, ids, posted: 0, reaped: 0, batch: Batch::default() }
    }

    /// Sends posted so far; the number of the next one.
    pub fn posted(&self) -> u64 {
        self.posted
    }

    pub fn outstanding(&self) -> u64 {
        self.posted - self.reaped
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

    #[inline]
    pub fn post(&mut self, qp: &Qp) -> Result<(), VerbsError> {
        qp.post_send(&mut self.wr)?;
        self.posted += 1;
        Ok(())
    }

    /// wr_id of the oldest send whose completion has not been taken.
    #[inline]
    pub fn oldest(&self) -> u64 {
        self.ids.send(self.reaped)
    }

    /// Counts a completion that was taken by whoever waited for it.
    #[inline]
    pub fn taken(&mut self) {
        self.reaped += 1;
    }

    /// One look at the send queue: takes what is there.
    #[inline]
    pub fn reap(&mut self, cq: &Cq) -> Result<(), Halt> {
        if self.outstanding() == 0 {
            return Ok(());
        }
        cq.poll(&mut self.batch)?;
        for index in 0..self.batch.len() {
            let Some(completion) = self.batch.get(index) else { break };
            if completion.status != 0 {
                return Err(Halt::Bad("A send", completion));
            }
            if completion.wr_id != self.oldest() || self.outstanding() == 0 {
                return Err(unexpected("a send", self.oldest(), self.batch.len(), Some(completion)));
            }
            self.reaped += 1;
        }
        Ok(())
    }

    /// Reaps until there is room for one more send. Takes one look when there is.
    #[inline]
    pub fn make_room(&mut self, cq: &Cq, monitor: &Monitor) -> Result<(), Halt> {
        self.reap_to(u64::from(self.layout.slots) - 1, cq, monitor)
    }

    /// Reaps until at most `left` sends are outstanding.
    #[inline]
    pub fn reap_to(&mut self, left: u64, cq: &Cq, monitor: &Monitor) -> Result<(), Halt> {
        loop {
            self.reap(cq)?;
            if self.outstanding() <= left {
                return Ok(());
            }
            if monitor.stopped() {
                return Err(Halt::Stopped);
            }
        }
    }
}

/// Receives: the queue is always full; each has a slot of its own.
pub(crate) struct RecvRing {
    wr: RecvWr,
    pub layout: Layout,
    ids: WrIds,
    posted: u64,
    taken: u64,
}

impl RecvRing {
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
    pub fn fill(&mut self, qp: &Qp) -> Result<(), VerbsError> {
        while self.posted - self.taken < u64::from(self.layout.slots) {
            self.wr.set_wr_id(self.ids.receive(self.posted));
            self.wr.set_range(self.layout.offset(self.posted), self.layout.size_bytes)?;
            qp.post_recv(&mut self.wr)?;
            self.posted += 1;
        }
        Ok(())
    }

    /// The next message has come: gives its number and the offset of its slot, which stays valid until the next `fill`.
    #[inline]
    pub fn take(&mut self) -> (u64, usize) {
        let number = self.taken;
        self.taken += 1;
        (number, self.layout.offset(number))
    }
}
