//! One session: what one invocation of `run` or `compare` does.
//!
//! [`client`] goes through the operations; [`peer`] is the server as the client sees it; [`schedule`] orders the rounds;
//! [`bypass`] proves that no socket is in the way; [`side`] fetches the server's part; [`costs`] measures what polling costs; [`recording`] writes
//! the captures; [`facts`] and [`placement`] fill their manifests; [`progress`] tells how far it is.

mod bypass;
mod client;
mod combinations;
mod costs;
mod facts;
mod options;
mod peer;
mod placement;
mod progress;
mod recording;
mod schedule;
mod side;

pub use facts::open_device;
pub use options::{CpuChoice, Options, Target};
pub use peer::Announcement;
pub use placement::allowed_cpus;

use crate::control::ControlError;
use crate::probes::Guardian;
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
    /// A round failed here, and the peer has its part of the story.
    #[error("{here}. Peer: {there}")]
    BothSides {
        /// What was seen on this side.
        here: Box<RunnerError>,
        /// What the peer told, or that it is gone.
        there: String,
    },
    /// The probes failed after they had been loaded.
    #[error(transparent)]
    Probes(#[from] crate::probes::ProbeError),
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
    /// The capture cannot be written.
    #[error(transparent)]
    Capture(#[from] analysis::capture::Error),
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

/// Runs a session to its end. The calling thread, and every thread that it starts later, has given up the rights that probes need: only the
/// thread of the probes keeps them, and it ends with the session.
///
/// # Errors
/// What ended it early; the captures are valid all the same.
pub fn run(options: Options) -> Result<(), SessionError> {
    // Before any other thread is there: all of them are to be without the rights that the probes need.
    let probes =
        Guardian::take_over().map_err(|source| SessionError::System { what: "starting the thread of the probes".to_owned(), source })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|source| SessionError::System { what: "starting the control plane".to_owned(), source })?;
    let outcome = runtime.block_on(client::run(options, probes));
    runtime.shutdown_timeout(Duration::from_secs(5));
    outcome
}
