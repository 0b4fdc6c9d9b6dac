//! Why a session ends early, each a sentence for the user.
use crate::control::ControlError;
use crate::probes::ProbeError;
use crate::runner::RunnerError;
use crate::verbs::VerbsError;
use std::time::Duration;

/// Why a session ended without its result.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Client and server could not talk.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A verb failed.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// A round failed on this side.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// A round failed here, and the peer reports a failure of its own.
    #[error("{here}. Peer: {there}")]
    BothSides {
        /// What was seen on this side.
        here: Box<RunnerError>,
        /// What the peer reported, or that it is gone.
        there: String,
    },
    /// The probes failed after they had been loaded.
    #[error(transparent)]
    Probes(#[from] ProbeError),
    /// A CPU that a side does not have.
    #[error("{flag} {cpu}: there is no such CPU to run on; that side has {allowed}. `auto` chooses one")]
    NoSuchCpu {
        /// The flag that asked for it.
        flag: &'static str,
        /// The CPU.
        cpu: u32,
        /// What there is.
        allowed: String,
    },
    /// There is no device to measure on.
    #[error("{0}")]
    NoDevice(String),
    /// The folder for the captures cannot be used; the text says what to give instead.
    #[error("{0}")]
    Folder(String),
    /// The capture cannot be written.
    #[error(transparent)]
    Capture(#[from] capture::Error),
    /// The server process of a loopback session did not come up.
    #[error("the server process for --loopback did not start: {0}")]
    Loopback(String),
    /// The warm-up never settled.
    #[error("UNSTABLE: {op} in {mode} mode did not settle within {} s of warm-up ({seen}). Something else uses this machine's CPUs; stop it, or allow more time with --warm-up", limit.as_secs())]
    Unstable {
        /// Operation.
        op: String,
        /// Completion mode.
        mode: String,
        /// How long it was given.
        limit: Duration,
        /// What was seen.
        seen: String,
    },
    /// The user stopped it.
    #[error("interrupted; the captures hold what was recorded until then")]
    Interrupted,
    /// Something of the system failed.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
}
