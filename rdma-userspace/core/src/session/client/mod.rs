//! The client's way through a session: agree, open the runs of an operation, warm up, interleave the rounds, record, close.
//!
//! [`begin`] sets the session up with the server, [`run`] opens and closes a run, [`warm_up`] holds what is done before its measured
//! rounds, [`rounds`] the rounds themselves.

mod begin;
mod rounds;
mod run;
mod warm_up;

use super::combinations::{combinations, possible_on};
use super::peer::Peer;
use super::peer_capture::PeerCaptureRequest;
use super::placement::Cpus;
use super::progress::Progress;
use super::{Options, SessionError, device, schedule};
use crate::probes::ProbeThread;
use crate::verbs::{Device, GidPair};
use capture::manifest::KernelThread;
use capture::{Mode, Operation};
use run::OpenRun;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::Notify;

/// No completion for so long within a round: the round failed.
const NO_PROGRESS: Duration = Duration::from_secs(5);

/// Runs all operations of a session.
///
/// # Errors
/// What ended it early. The captures are closed and valid all the same.
pub async fn run(options: Options, probes: ProbeThread) -> Result<(), SessionError> {
    let mut progress = Progress::new(options.quiet, options.progress_json.as_deref())
        .map_err(|source| SessionError::System { what: opening(options.progress_json.as_deref()), source })?;
    let asked = combinations(&options, &mut progress)?;
    let device = device::open_device(options.device.as_deref(), options.port)?;
    let combinations = possible_on(&device, asked, &mut progress)?;
    let mut peer = Peer::reach(&options.target, device.name(), options.port, options.connect_timeout).await?;
    let server_answers = combinations.iter().any(|(op, _)| op.server_answers());
    let outcome = match begin::begin(options, device, probes, server_answers, &mut peer, &mut progress).await {
        Ok(mut session) => session.run_all(&combinations, &mut peer, &mut progress).await,
        Err(error) => Err(error),
    };
    peer.leave(outcome.as_ref().err()).await;
    outcome
}

fn opening(progress: Option<&Path>) -> String {
    progress.map_or_else(|| "reporting progress".to_owned(), |path| format!("opening {} for --progress-json", path.display()))
}

struct Session {
    options: Options,
    device: Device,
    gids: GidPair,
    cpus: Cpus,
    probes: ProbeThread,
    /// Kernel threads in the path whose scheduling is recorded.
    threads: Vec<KernelThread>,
    /// What the server records of its side.
    peer_capture: PeerCaptureRequest,
    /// Ends the round that runs.
    abort: Arc<AtomicBool>,
    /// Notified at Ctrl-C: ends a wait.
    interrupted: Arc<Notify>,
    /// Set at Ctrl-C, for the rest of the session.
    stopped: Arc<AtomicBool>,
    next_run: u32,
}

impl Session {
    async fn run_all(
        &mut self,
        combinations: &[(Operation, Vec<Mode>)],
        peer: &mut Peer,
        progress: &mut Progress,
    ) -> Result<(), SessionError> {
        let total = combinations.len() as u64;
        for (done, (op, modes)) in combinations.iter().enumerate() {
            progress.step("operation", &op.to_string(), done as u64 + 1, total);
            let mut runs = Vec::new();
            let outcome = self.operation(*op, modes, &mut runs, peer, progress).await;
            self.close(runs, peer, &outcome, progress).await;
            outcome?;
        }
        progress.say("done", &format!("{} runs recorded", self.next_run));
        Ok(())
    }

    async fn operation(
        &mut self,
        op: Operation,
        modes: &[Mode],
        runs: &mut Vec<OpenRun>,
        peer: &mut Peer,
        progress: &mut Progress,
    ) -> Result<(), SessionError> {
        for &mode in modes {
            let run = self.open(op, mode, peer).await?;
            runs.push(run);
        }
        for run in runs.iter_mut() {
            progress.say("warm-up", &run.name());
            self.warm_up(run, peer).await?;
            self.measure_poll_costs(run, peer).await?;
            self.count_syscalls(run, peer).await?;
        }
        let slowest = runs.iter().map(|run| run.sample).max().unwrap_or_default();
        let rounds = schedule::spread(self.options.samples, slowest);
        self.rounds(op, rounds, runs, peer, progress).await
    }

    fn can_trace(&self) -> Result<bool, SessionError> {
        Ok(self.probes.run(|it| it.can_trace())?)
    }

    /// Probes on or off, on both sides where the server's follow. Nothing goes on before both have done it.
    async fn set_probes(&mut self, traced: bool, op: Operation, peer: &mut Peer) -> Result<bool, SessionError> {
        let both = self.peer_capture.follows(op);
        if both {
            peer.set_probes(traced).await?;
        }
        let here = self.probes.run(move |it| it.set_attached(traced))??;
        let there = if both { peer.probes_set().await? } else { false };
        Ok(here || there)
    }
}
