//! What both atomics have in common: one counter in the server's memory, whose old value arrives in the client's.
//!
//! The client is the only one that changes the counter, so each old value is known beforehand and checked.
use super::description::{Description, FixedSize, LocalArea, NOT_REACHED, Slots, nothing_before};
use crate::machine::{Root, faults};
use crate::runner::error::RunnerError;
use crate::runner::queues::Queues;
use crate::runner::step_error::StepError;
use crate::verbs::{Access, Device, RemoteMemory, SendOp};
use capture::Side;
use std::sync::atomic::Ordering;

/// A value that the counter never has: what the own memory holds until the old value arrives.
const NOT_YET: u64 = u64::MAX;

/// An atomic that does this to the counter.
pub(super) const fn description(send_op: fn(RemoteMemory) -> SendOp) -> Description {
    Description {
        send_op,
        local: LocalArea::Receive,
        client_lends: NOT_REACHED,
        server_lends: Access { remote_atomic: true, ..NOT_REACHED },
        alignment: 8,
        size: Some(FixedSize { bytes: 8, of: "an atomic" }),
        send_slots: Slots::One,
        recv_slots: Slots::One,
        takes_receives: false,
        put_before: nothing_before,
        verify,
        fault,
    }
}

/// The server's memory holds the counter, the client's the old value of the last operation.
fn verify(queues: &Queues, side: Side, done: u64) -> Result<(), RunnerError> {
    let expected = match side {
        Side::Client => done.saturating_sub(1),
        Side::Server => done,
    };
    let got = queues.memory.recv.word()?.load(Ordering::Acquire);
    if got == expected { Ok(()) } else { Err(RunnerError::Payload(format!("the counter is {got}, expected {expected}"))) }
}

/// Devices without atomics, and kernels that do not survive them.
fn fault(device: &Device) -> Option<String> {
    let driver = device.driver();
    if device.limits().atomics {
        faults::atomics(Root::live(), &driver).map(str::to_owned)
    } else {
        Some(format!("{} ({driver}) has no atomic operations", device.name()))
    }
}

/// Before an operation: the old value has not come.
#[inline]
pub(super) fn forget(queues: &Queues) -> Result<(), StepError> {
    queues.memory.recv.word()?.store(NOT_YET, Ordering::Release);
    Ok(())
}

/// After it: the old value is the one that was expected.
#[inline]
pub(super) fn check_old(queues: &Queues) -> Result<(), StepError> {
    // The counter held the number of operations before this one.
    let expected = queues.submit.sends.posted() - 1;
    let got = queues.memory.recv.word()?.load(Ordering::Acquire);
    if got == expected { Ok(()) } else { Err(RunnerError::Payload(format!("the old value is {got:#x}, expected {expected:#x}")).into()) }
}
