//! One run of a session: opened on both ends, and closed with its capture.
use super::Session;
use crate::control::endpoint_facts;
use crate::runner::{Endpoint, Params, Worker, WorkerConfig};
use crate::session::combinations::params;
use crate::session::peer::Peer;
use crate::session::peer_capture::Transfer;
use crate::session::progress::Progress;
use crate::session::recording::Recording;
use crate::session::{SessionError, run_manifest};
use capture::manifest::{Outcome, Placement, ServerSide};
use capture::text::chain;
use capture::{Mode, Operation, Side};
use std::time::Duration;

/// One run while it is open.
pub(super) struct OpenRun {
    pub(super) index: u32,
    pub(super) op: Operation,
    pub(super) mode: Mode,
    pub(super) qpn: u32,
    pub(super) worker: Worker,
    pub(super) recording: Recording,
    /// Typical time of one sample, from the warm-up.
    pub(super) sample: Duration,
}

impl OpenRun {
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.op, self.mode)
    }
}

impl Session {
    /// Makes both ends of a run, and its capture.
    pub(super) async fn open(&mut self, op: Operation, mode: Mode, peer: &mut Peer) -> Result<OpenRun, SessionError> {
        let index = self.next_run;
        let params = Params { gid_index: self.gids.local.index, ..params(&self.options, op, mode) };
        let mut endpoint = Endpoint::create(&self.device, &params, Side::Client)?;
        let theirs = Params { gid_index: self.gids.remote.index, comp_vector: 0, port: peer.facts.port, ..params.clone() };
        let remote = peer.open(index, theirs, self.cpus.server, endpoint.local()).await?;
        endpoint.connect(&remote)?;
        let mut manifest = run_manifest::manifest(&self.options, &self.device, &self.gids, &endpoint, index, peer);
        let qpn = endpoint.qpn();
        let (mut thread, rest) = endpoint_facts::measured_thread(&endpoint, &self.device, &remote, self.cpus.client);
        let worker = Worker::spawn(endpoint, WorkerConfig { cpu: self.cpus.client, priority: None })?;
        thread.tid = worker.tid();
        let (tid, polls) = (thread.tid, mode.spins());
        manifest.set_workers(vec![thread], Placement { server_cpu: self.cpus.server, ..rest });
        self.probes.run(move |it| it.track(std::process::id(), tid, qpn, polls))??;
        manifest.plan = self.probes.run(|it| it.plan())?;
        manifest.kernel_threads = self.threads.clone();
        manifest.clock_check = self.probes.run(|it| it.clock_check())?;
        manifest.notes.extend(self.probes.run(|it| it.note())?);
        let name = capture::run_dir_name(&crate::machine::host::name(), index, op.name(), mode.name());
        let recording = Recording::begin(&self.options.out.join(name), manifest)?;
        self.next_run += 1;
        Ok(OpenRun { index, op, mode, qpn, worker, recording, sample: Duration::ZERO })
    }

    /// Closes the runs of an operation, and fetches the server's captures of those that ended well.
    pub(super) async fn close(&mut self, runs: Vec<OpenRun>, peer: &mut Peer, outcome: &Result<(), SessionError>, progress: &mut Progress) {
        let _ = self.probes.run(|probes| probes.set_attached(false));
        let state = match outcome {
            Ok(()) => Outcome::Complete,
            Err(SessionError::Interrupted) => Outcome::Interrupted,
            Err(error @ SessionError::Unstable { .. }) => Outcome::Unstable(error.to_string()),
            Err(error) => Outcome::Failed(chain(error)),
        };
        let plan = self.probes.run(|it| it.plan()).unwrap_or_default();
        for mut run in runs {
            let (tid, qpn) = (run.worker.tid(), run.qpn);
            let _ = self.probes.run(move |it| it.untrack(tid, qpn));
            run.recording.refresh_plan(&plan);
            run.recording.manifest.server_side = match outcome {
                Ok(()) => {
                    let transfer = Transfer { run: run.index, op: run.op, peer, progress, stopped: &self.stopped };
                    transfer.fetch_into(&run.recording.dir(), &run.recording.manifest, &self.peer_capture).await
                }
                Err(_) => ServerSide::Absent("the run ended early, before the server's side was fetched".to_owned()),
            };
            let (worker, index) = (run.worker, run.index);
            let _ = tokio::task::spawn_blocking(move || drop(worker.stop())).await;
            if outcome.is_ok() {
                let _ = peer.close(index).await;
            }
            if let Err(error) = run.recording.end(state.clone()) {
                progress.warn(&chain(&error));
            }
        }
    }
}
