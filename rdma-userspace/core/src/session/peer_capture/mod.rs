//! The capture of the server's side of a run: recorded there in step with this side's rounds, and fetched after them into the folder
//! `peer` of this side's capture. Whatever goes wrong there, this side's capture stays what it is, and its manifest says what is missing.
use super::SessionError;
use super::peer::Peer;
use super::progress::Progress;
use super::recording::Recording;
use crate::control::ControlError;
use crate::control::message::{PeerCapture, Retention};
use crate::control::transfer::{TAKEN_MAX_BYTES, split_round};
use crate::probes::RoundRecords;
use capture::manifest::{Outcome, Round, Run, ServerSide};
use capture::text::chain;
use capture::{Manifest, PEER_DIR, Sample};
use capture::{Operation, Side};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The transfer of one run ends after this, with what has come.
const TRANSFER_MAX: Duration = Duration::from_secs(600);

/// What this session asks the server to record of its side.
#[derive(Debug, Default)]
pub(super) struct PeerCaptureRequest {
    /// The server's samples are fetched, and its events where it has probes.
    pub wanted: bool,
    /// The server's probes are attached and detached with ours.
    pub probes: bool,
    /// Why they do not.
    pub note: Option<String>,
}

impl PeerCaptureRequest {
    /// What the server keeps of a round.
    pub fn retention(&self, op: Operation, traced: bool, warmup: bool) -> Retention {
        match self.wanted && op.server_answers() && !warmup {
            false => Retention::Nothing,
            true if traced && self.probes => Retention::Traced,
            true => Retention::Samples,
        }
    }

    /// True where the server's probes follow ours.
    pub fn follows(&self, op: Operation) -> bool {
        self.wanted && self.probes && op.server_answers()
    }
}

/// The transfer of the peer capture of one run.
pub(super) struct Transfer<'a> {
    /// The run's number.
    pub run: u32,
    /// Its operation.
    pub op: Operation,
    /// The server.
    pub peer: &'a mut Peer,
    /// Where progress is reported.
    pub progress: &'a mut Progress,
    /// Ctrl-C.
    pub stopped: &'a AtomicBool,
}

impl Transfer<'_> {
    /// Fetches into the capture at `dir`, whose manifest is `ours`, and says what came of it.
    pub async fn fetch_into(mut self, dir: &Path, ours: &Manifest, request: &PeerCaptureRequest) -> ServerSide {
        if !request.wanted && self.op.server_answers() {
            return ServerSide::Absent("it was not asked for (--no-peer-capture)".to_owned());
        }
        if !self.op.server_answers() {
            return ServerSide::Absent(format!("the server's thread takes no part in {}: it has no sample", self.op));
        }
        let peer_capture = match self.peer.capture(self.run).await {
            Ok(peer_capture) => peer_capture,
            Err(error) => return self.absent(chain(&error)),
        };
        if peer_capture.rounds.is_empty() {
            return self.absent(peer_capture.cut.unwrap_or_else(|| "the server recorded no round".to_owned()));
        }
        if peer_capture.bytes > TAKEN_MAX_BYTES {
            let (has, limit) = (peer_capture.bytes >> 20, TAKEN_MAX_BYTES >> 20);
            return self.absent(format!("the server announced {has} MiB, the limit of a transfer is {limit} MiB"));
        }
        let mut recording = match Recording::begin(&dir.join(PEER_DIR), manifest(ours, &peer_capture, request, self.peer)) {
            Ok(recording) => recording,
            Err(error) => return self.absent(chain(&error)),
        };
        let failure = self.transfer(&peer_capture, &mut recording).await.err().map(|error| chain(&error)).or(peer_capture.cut);
        let outcome = failure.clone().map_or(Outcome::Complete, Outcome::Failed);
        let ended = recording.end(outcome).err().map(|error| chain(&error));
        match failure.or(ended) {
            None => ServerSide::Present,
            Some(why) => {
                self.progress.say("server's side", &format!("not whole: {why}"));
                ServerSide::Partial(why)
            }
        }
    }

    fn absent(self, why: String) -> ServerSide {
        self.progress.say("server's side", &format!("absent: {why}"));
        ServerSide::Absent(why)
    }

    /// All rounds, one after another; what has come is in the recording whatever happens.
    async fn transfer(&mut self, peer_capture: &PeerCapture, recording: &mut Recording) -> Result<(), SessionError> {
        let begin = Instant::now();
        let mut taken = 0;
        for at in 0..u32::try_from(peer_capture.rounds.len()).unwrap_or(u32::MAX) {
            let round = self.peer.capture_round(self.run, at).await?;
            let total = round.samples.saturating_mul(size_of::<Sample>() as u64).saturating_add(round.record_bytes);
            if total > peer_capture.bytes {
                return Err(ControlError::PeerCapture(format!("round {} is larger than all rounds together", round.index)).into());
            }
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < total {
                if self.stopped.load(Ordering::Relaxed) {
                    return Err(SessionError::Interrupted);
                }
                if begin.elapsed() > TRANSFER_MAX {
                    let seconds = TRANSFER_MAX.as_secs();
                    return Err(ControlError::PeerCapture(format!("the transfer took more than {seconds} s and was ended")).into());
                }
                let part = self.peer.part(self.run, at, bytes.len() as u64).await?;
                taken += part.len() as u64;
                bytes.extend(part);
                self.progress.step("server's side", &format!("run {} ({}), KiB", self.run, self.op), taken >> 10, peer_capture.bytes >> 10);
            }
            let (samples, records) = split_round(&round, &bytes)?;
            let mut row = Round { index: round.index, traced: round.traced, ..Round::default() };
            round.stats.fill(&mut row);
            recording.round(
                row,
                &samples,
                RoundRecords { bytes: records, hits: round.hits, losses: round.losses, missed: round.missed },
            )?;
        }
        Ok(())
    }
}

/// The manifest of the server's side, from ours and from what it handed over.
fn manifest(ours: &Manifest, peer_capture: &PeerCapture, request: &PeerCaptureRequest, peer: &Peer) -> Manifest {
    let run = Run { mode: ours.run.server_mode.unwrap_or(ours.run.mode), server_mode: Some(ours.run.mode), ..ours.run.clone() };
    let mut theirs = Manifest {
        side: Side::Server,
        server_side: ServerSide::Unknown,
        tool_version: peer.facts.tool_version.clone(),
        tool_revision: None,
        host: peer_capture.host.clone(),
        device: peer_capture.device.clone(),
        run,
        rounds: Vec::new(),
        kernel_threads: peer_capture.kernel_threads.clone(),
        plan: peer_capture.plan.clone(),
        losses: Vec::new(),
        missed_probes: None,
        clock_check: peer_capture.clock_check.clone(),
        poll_costs: None,
        syscalls: None,
        sealed: None,
        notes: peer_capture.notes.iter().chain(&request.note).cloned().collect(),
        outcome: Outcome::Recording,
        ..ours.clone()
    };
    theirs.set_workers(peer_capture.workers.clone(), peer_capture.placement.clone());
    theirs
}

#[cfg(test)]
mod tests;
