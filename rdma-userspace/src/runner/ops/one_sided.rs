//! RDMA WRITE and RDMA READ, from the post to the own completion. The server's thread takes no part.
use super::Operation;
use crate::runner::endpoint::Endpoint;
use crate::runner::modes::CompletionMode;
use crate::runner::monitor::Monitor;
use crate::runner::payload::wrong_sequence;
use crate::runner::rings::{Halt, only};
use analysis::capture::Sample;

/// The sequence that the memory behind a READ holds.
pub(crate) const READ_SEQUENCE: u64 = 1;

/// Waits for the completion of the one WR that is outstanding.
#[inline]
pub(super) fn finish_own<M: CompletionMode>(
    what: &'static str,
    end: &mut Endpoint,
    mode: &mut M,
    monitor: &Monitor,
    sample: &mut Sample,
) -> Result<(), Halt> {
    mode.wait(&end.send_cq, &mut end.batch, monitor, sample)?;
    sample.end_wr_id = sample.begin_wr_id;
    only(what, &end.batch, sample.begin_wr_id)?;
    end.sends.taken();
    Ok(())
}

/// RDMA WRITE.
#[derive(Default)]
pub(crate) struct Write;

impl Operation for Write {
    const WAITS_FOR: &'static str = "the completion of its own write";

    #[inline]
    fn prepare(&mut self, end: &mut Endpoint, _: &Monitor) -> Result<u64, Halt> {
        let sequence = end.sends.layout.on_wire(end.sends.posted() + 1);
        let (wr_id, slot) = end.sends.next()?;
        end.sends.layout.store(&end.send_mr, slot, sequence)?;
        Ok(wr_id)
    }

    #[inline]
    fn finish<M: CompletionMode>(&mut self, end: &mut Endpoint, mode: &mut M, monitor: &Monitor, sample: &mut Sample) -> Result<(), Halt> {
        finish_own("The write", end, mode, monitor, sample)
    }

    #[inline]
    fn check(&mut self, _: &mut Endpoint) -> Result<(), Halt> {
        // What was written lies in the peer's memory; the peer checks it after the run.
        Ok(())
    }
}

/// RDMA READ. The last bytes of the own memory are zeroed before each one, so that data which did not come is noticed.
#[derive(Default)]
pub(crate) struct Read;

impl Operation for Read {
    const WAITS_FOR: &'static str = "the completion of its own read";

    #[inline]
    fn prepare(&mut self, end: &mut Endpoint, _: &Monitor) -> Result<u64, Halt> {
        end.recvs.layout.store(&end.recv_mr, 0, 0)?;
        Ok(end.sends.next()?.0)
    }

    #[inline]
    fn finish<M: CompletionMode>(&mut self, end: &mut Endpoint, mode: &mut M, monitor: &Monitor, sample: &mut Sample) -> Result<(), Halt> {
        finish_own("The read", end, mode, monitor, sample)
    }

    #[inline]
    fn check(&mut self, end: &mut Endpoint) -> Result<(), Halt> {
        let got = end.recvs.layout.load(&end.recv_mr, 0)?;
        if got == READ_SEQUENCE { Ok(()) } else { Err(wrong_sequence(READ_SEQUENCE, got).into()) }
    }
}
