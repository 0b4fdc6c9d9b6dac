//! FETCH_ADD and CMP_SWAP on one counter in the server's memory, from the post to the own completion.
//!
//! The client is the only one that changes the counter, so each old value is known beforehand and checked.
use super::Operation;
use super::one_sided::finish_own;
use crate::runner::endpoint::Endpoint;
use crate::runner::error::RunnerError;
use crate::runner::modes::CompletionMode;
use crate::runner::monitor::Monitor;
use crate::runner::rings::Halt;
use crate::verbs::SendOp;
use analysis::capture::Sample;
use std::sync::atomic::Ordering;

/// A value that the counter never has: what the own memory holds until the old value arrives.
const NOT_YET: u64 = u64::MAX;

#[inline]
fn forget(end: &Endpoint) -> Result<(), Halt> {
    end.recv_mr.atomic_u64(0)?.store(NOT_YET, Ordering::Release);
    Ok(())
}

#[inline]
fn check_old(end: &Endpoint) -> Result<(), Halt> {
    // The counter held the number of operations before this one.
    let expected = end.sends.posted() - 1;
    let got = end.recv_mr.atomic_u64(0)?.load(Ordering::Acquire);
    if got == expected { Ok(()) } else { Err(RunnerError::Payload(format!("the old value is {got:#x}, expected {expected:#x}")).into()) }
}

/// FETCH_ADD of 1.
#[derive(Default)]
pub(crate) struct FetchAdd;

impl Operation for FetchAdd {
    const WAITS_FOR: &'static str = "the completion of its own fetch-and-add";

    #[inline]
    fn prepare(&mut self, end: &mut Endpoint, _: &Monitor) -> Result<u64, Halt> {
        forget(end)?;
        Ok(end.sends.next()?.0)
    }

    #[inline]
    fn finish<M: CompletionMode>(&mut self, end: &mut Endpoint, mode: &mut M, monitor: &Monitor, sample: &mut Sample) -> Result<(), Halt> {
        finish_own("The fetch-and-add", end, mode, monitor, sample)
    }

    #[inline]
    fn check(&mut self, end: &mut Endpoint) -> Result<(), Halt> {
        check_old(end)
    }
}

/// CMP_SWAP from n to n + 1; each one succeeds.
#[derive(Default)]
pub(crate) struct CmpSwap;

impl Operation for CmpSwap {
    const WAITS_FOR: &'static str = "the completion of its own compare-and-swap";

    #[inline]
    fn prepare(&mut self, end: &mut Endpoint, _: &Monitor) -> Result<u64, Halt> {
        forget(end)?;
        let compare = end.sends.posted();
        end.sends.wr.set_op(SendOp::CmpSwap { remote_address: end.remote.0, rkey: end.remote.1, compare, swap: compare + 1 });
        Ok(end.sends.next()?.0)
    }

    #[inline]
    fn finish<M: CompletionMode>(&mut self, end: &mut Endpoint, mode: &mut M, monitor: &Monitor, sample: &mut Sample) -> Result<(), Halt> {
        finish_own("The compare-and-swap", end, mode, monitor, sample)
    }

    #[inline]
    fn check(&mut self, end: &mut Endpoint) -> Result<(), Halt> {
        check_old(end)
    }
}
