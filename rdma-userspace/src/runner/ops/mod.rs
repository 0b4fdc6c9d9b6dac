//! Operations: what a client measures, and what a server answers.
mod atomic;
mod one_sided;
mod send;
mod write_pp;

pub(super) use atomic::{CmpSwap, FetchAdd};
pub(super) use one_sided::{READ_SEQUENCE, Read, Write};
pub(super) use send::{Send, SendAnswer};
pub(super) use write_pp::{WatchAnswer, WritePp};

use super::endpoint::Endpoint;
use super::modes::CompletionMode;
use super::monitor::Monitor;
use super::rings::Halt;
use crate::verbs::ffi::os::monotonic_ns;
use analysis::capture::Sample;

/// One end of a run: makes one step of a round. The loop around it is the same for all.
pub(crate) trait Party {
    /// What a step waits for, for the error of a step that does not end.
    const WAITS_FOR: &'static str;
    /// False for an end that only lends its memory.
    const TAKES_PART: bool = true;

    fn step<M: CompletionMode>(&mut self, end: &mut Endpoint, mode: &mut M, monitor: &Monitor, sample: &mut Sample) -> Result<(), Halt>;
}

/// An operation as the client measures it.
pub(crate) trait Operation {
    const WAITS_FOR: &'static str;

    /// Before the sample: everything that must not count. Gives the wr_id that will be posted.
    fn prepare(&mut self, end: &mut Endpoint, monitor: &Monitor) -> Result<u64, Halt>;

    /// Waits for the end, stamps it, and sets `end_wr_id`.
    fn finish<M: CompletionMode>(&mut self, end: &mut Endpoint, mode: &mut M, monitor: &Monitor, sample: &mut Sample) -> Result<(), Halt>;

    /// After the sample: checks what came.
    fn check(&mut self, end: &mut Endpoint) -> Result<(), Halt>;
}

/// The client's end: an operation, measured.
pub(crate) struct Client<O>(pub O);

impl<O: Operation> Party for Client<O> {
    const WAITS_FOR: &'static str = O::WAITS_FOR;

    #[inline]
    fn step<M: CompletionMode>(&mut self, end: &mut Endpoint, mode: &mut M, monitor: &Monitor, sample: &mut Sample) -> Result<(), Halt> {
        sample.begin_wr_id = self.0.prepare(end, monitor)?;
        sample.post_begin_ns = monotonic_ns();
        end.sends.post(&end.qp)?;
        sample.post_end_ns = monotonic_ns();
        self.0.finish(end, mode, monitor, sample)?;
        self.0.check(end)
    }
}

/// The server's end of a one-sided operation: its memory is used, its thread is not.
pub(crate) struct Idle;

impl Party for Idle {
    const WAITS_FOR: &'static str = "nothing";
    const TAKES_PART: bool = false;

    fn step<M: CompletionMode>(&mut self, _: &mut Endpoint, _: &mut M, _: &Monitor, _: &mut Sample) -> Result<(), Halt> {
        Ok(())
    }
}
