//! One session: what one invocation of `run` or `compare` does.
//!
//! [`client`] goes through the operations; [`peer`] is the server as the client sees it, [`loopback`] starts one on this host; [`schedule`]
//! orders the rounds; [`bypass`] proves that no socket is in the way; [`poll_costs`] measures what polling costs; [`recording`] writes the
//! captures and [`peer_capture`] fetches the server's, [`output`] is the folder that holds them; [`run_manifest`] and [`placement`] fill
//! their manifests; [`progress`] reports how far it is.

mod bypass;
mod client;
mod combinations;
mod device;
mod error;
mod loopback;
mod options;
mod output;
mod peer;
mod peer_capture;
mod placement;
mod poll_costs;
mod progress;
mod recording;
mod run_manifest;
mod schedule;

pub use device::{open_device, server_facts};
pub use error::SessionError;
pub use loopback::Announcement;
pub use options::{CpuChoice, Options, Target};
pub use output::OutputFolder;

use crate::probes::ProbeThread;
use std::time::Duration;

/// Runs a session to its end. The calling thread, and every thread that it starts later, has given up the rights that probes need: only the
/// thread of the probes keeps them, and it ends with the session.
///
/// # Errors
/// What ended it early; the captures are valid all the same.
pub fn run(options: Options) -> Result<(), SessionError> {
    // Before any other thread is there: all of them are to be without the rights that the probes need.
    let probes =
        ProbeThread::start().map_err(|source| SessionError::System { what: "starting the thread of the probes".to_owned(), source })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|source| SessionError::System { what: "starting the control plane".to_owned(), source })?;
    let outcome = runtime.block_on(client::run(options, probes));
    runtime.shutdown_timeout(Duration::from_secs(5));
    outcome
}
