//! Errors of the runner.
use crate::verbs::{Completion, VerbsError, status_info};
use std::borrow::Cow;
use std::io;

/// Why an endpoint could not be made, or why a round ended too early. The message never repeats its source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// A call to the device failed.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// A combination or value that cannot be.
    #[error("{what} is refused: {why}")]
    Refused {
        /// What.
        what: Cow<'static, str>,
        /// Why.
        why: String,
    },
    /// The thread cannot run on that CPU.
    #[error("Cannot pin the measured thread to CPU {cpu}: this machine lets it run on {allowed} (--cpu auto chooses one)")]
    NoSuchCpu {
        /// The CPU asked for.
        cpu: u32,
        /// CPUs that there are for this process.
        allowed: String,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// Real-time priority was refused.
    #[error("Cannot give the measured thread real-time priority {priority} (likely: CAP_SYS_NICE or RLIMIT_RTPRIO is missing)")]
    Priority {
        /// The priority asked for.
        priority: u8,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// A thread or a signal handler could not be set up.
    #[error("Cannot set up {what}")]
    Thread {
        /// What.
        what: &'static str,
        /// The errno.
        #[source]
        source: io::Error,
    },
    /// The peer's memory or address does not fit this run.
    #[error("The peer's endpoint does not fit: {0}")]
    BadPeer(String),
    /// No completion for too long.
    #[error(
        "No completion for {waited_ms} ms after {done} operations of this round: waiting for {waiting_for}. CQ of {cq_depth} entries, \
         QP {qpn:#x} is {qp_state}, port is {port_state}, {unacknowledged} sends without acknowledgement. {hint}"
    )]
    NoProgress {
        /// The deadline that passed.
        waited_ms: u64,
        /// Operations done in this round.
        done: u64,
        /// What was expected.
        waiting_for: String,
        /// Depth of the CQ.
        cq_depth: u32,
        /// Queue pair.
        qpn: u32,
        /// State of the QP, read back.
        qp_state: String,
        /// State of the port.
        port_state: String,
        /// Sends posted whose own completion has not come.
        unacknowledged: u64,
        /// What to try.
        hint: &'static str,
    },
    /// A completion with an error status.
    #[error(
        "{what} (wr_id {wr_id:#x}, QP {qpn:#x}) completed with {status} ({code}): {meaning}. Usual causes: {causes}. vendor_err {vendor_err:#x}"
    )]
    Completion {
        /// The operation that failed.
        what: &'static str,
        /// Its WR.
        wr_id: u64,
        /// Queue pair.
        qpn: u32,
        /// Name of the status.
        status: &'static str,
        /// Its value.
        code: u32,
        /// What it says.
        meaning: &'static str,
        /// What usually leads to it.
        causes: &'static str,
        /// The vendor's code.
        vendor_err: u32,
    },
    /// A completion that nobody waits for.
    #[error("Expected {expected}, but the CQ gave {got} (a defect of the device, the driver or the runner)")]
    Unexpected {
        /// What was expected.
        expected: String,
        /// What came.
        got: String,
    },
    /// Data that is not what the peer sent.
    #[error("Wrong data: {0}")]
    Payload(String),
    /// An earlier round was cut off in the middle of an operation.
    #[error("This endpoint was stopped in the middle of an operation and cannot measure again")]
    Dirty,
    /// The worker's thread is gone.
    #[error("The measured thread is gone")]
    WorkerGone,
}

impl RunnerError {
    /// The error for a completion with a bad status.
    #[cold]
    pub(crate) fn of_completion(what: &'static str, completion: Completion) -> Self {
        let info = status_info(completion.status);
        Self::Completion {
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

    /// The error for a sequence other than the one that was sent.
    #[cold]
    pub(crate) fn wrong_sequence(expected: u64, got: u64) -> Self {
        Self::Payload(format!("sequence {got}, expected {expected}"))
    }
}
