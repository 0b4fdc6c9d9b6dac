//! The server's side of a run: asked for in step with this side's rounds, and fetched after them into the folder `peer` of the capture.
//! Whatever goes wrong there, this side's capture stays what it is, and its manifest says what is missing.
use super::SessionError;
use super::peer::Peer;
use super::progress::Progress;
use super::recording::Recording;
use crate::control::ControlError;
use crate::control::message::{Keep, Side as Told};
use crate::control::side::{TAKEN_MAX_BYTES, split_round};
use crate::probes::Harvest;
use crate::runner::OpKind;
use analysis::capture::manifest::{Outcome, Round, Run, ServerSide, Side};
use analysis::capture::{Manifest, PEER_DIR, Sample};
use analysis::words::chain;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The transfer of one run ends after this, with what has come.
const TRANSFER_MAX: Duration = Duration::from_secs(600);

/// What this session wants of the server's side.
#[derive(Debug, Default)]
pub(super) struct Wish {
    /// Its samples, and its events where it has probes.
    pub wanted: bool,
    /// Its probes go along with ours.
    pub probes: bool,
    /// Why they do not.
    pub note: Option<String>,
}

impl Wish {
    /// What the server keeps of a round.
    pub fn keep(&self, op: OpKind, traced: bool, warmup: bool) -> Keep {
        match self.wanted && op.server_answers() && !warmup {
            false => Keep::Nothing,
            true if traced && self.probes => Keep::Traced,
            true => Keep::Samples,
        }
    }

    /// True where the server's probes follow ours.
    pub fn follows(&self, op: OpKind) -> bool {
        self.wanted && self.probes && op.server_answers()
    }
}

/// One run whose server's side is fetched.
pub(super) struct Fetch<'a> {
    /// The run's number.
    pub run: u32,
    /// Its operation.
    pub op: OpKind,
    /// The server.
    pub peer: &'a mut Peer,
    /// Who is told how far it is.
    pub progress: &'a mut Progress,
    /// Ctrl-C.
    pub stopped: &'a AtomicBool,
}

impl Fetch<'_> {
    /// Fetches into the capture at `dir`, whose manifest is `ours`, and tells what came of it.
    pub async fn into(mut self, dir: &Path, ours: &Manifest, wish: &Wish) -> ServerSide {
        if !wish.wanted && self.op.server_answers() {
            return ServerSide::Absent("it was not asked for (--no-peer-capture)".to_owned());
        }
        if !self.op.server_answers() {
            return ServerSide::Absent(format!("the server's thread takes no part in {}: it has no sample", self.op));
        }
        let told = match self.peer.side(self.run).await {
            Ok(told) => told,
            Err(error) => return self.absent(chain(&error)),
        };
        if told.rounds.is_empty() {
            return self.absent(told.cut.unwrap_or_else(|| "the server recorded no round".to_owned()));
        }
        if told.bytes > TAKEN_MAX_BYTES {
            let (has, limit) = (told.bytes >> 20, TAKEN_MAX_BYTES >> 20);
            return self.absent(format!("the server announced {has} MiB, the limit of a transfer is {limit} MiB"));
        }
        let mut recording = match Recording::begin(&dir.join(PEER_DIR), manifest(ours, &told, wish, self.peer)) {
            Ok(recording) => recording,
            Err(error) => return self.absent(chain(&error)),
        };
        let failure = self.transfer(&told, &mut recording).await.err().map(|error| chain(&error)).or(told.cut);
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
    async fn transfer(&mut self, told: &Told, recording: &mut Recording) -> Result<(), SessionError> {
        let begin = Instant::now();
        let mut taken = 0;
        for at in 0..u32::try_from(told.rounds.len()).unwrap_or(u32::MAX) {
            let round = self.peer.side_round(self.run, at).await?;
            let total = round.samples.saturating_mul(size_of::<Sample>() as u64).saturating_add(round.record_bytes);
            if total > told.bytes {
                return Err(ControlError::Side(format!("round {} is larger than all rounds together", round.index)).into());
            }
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < total {
                if self.stopped.load(Ordering::Relaxed) {
                    return Err(SessionError::Interrupted);
                }
                if begin.elapsed() > TRANSFER_MAX {
                    let seconds = TRANSFER_MAX.as_secs();
                    return Err(ControlError::Side(format!("the transfer took more than {seconds} s and was ended")).into());
                }
                let part = self.peer.part(self.run, at, bytes.len() as u64).await?;
                taken += part.len() as u64;
                bytes.extend(part);
                self.progress.step("server's side", &format!("run {} ({}), KiB", self.run, self.op), taken >> 10, told.bytes >> 10);
            }
            let (samples, records) = split_round(&round, &bytes)?;
            let mut row = Round { index: round.index, traced: round.traced, ..Round::default() };
            round.stats.fill(&mut row);
            recording.round(row, &samples, Harvest { records, hits: round.hits, losses: round.losses, missed: round.missed })?;
        }
        Ok(())
    }
}

/// The manifest of the server's side, from ours and from what it told.
fn manifest(ours: &Manifest, told: &Told, wish: &Wish, peer: &Peer) -> Manifest {
    let run = Run { mode: ours.run.server_mode.clone(), server_mode: ours.run.mode.clone(), ..ours.run.clone() };
    Manifest {
        side: Side::Server,
        server_side: ServerSide::Unknown,
        tool_version: peer.facts.tool_version.clone(),
        tool_revision: None,
        host: told.host.clone(),
        device: told.device.clone(),
        run,
        placement: told.placement.clone(),
        rounds: Vec::new(),
        kernel_threads: told.kernel_threads.clone(),
        plan: told.plan.clone(),
        losses: Vec::new(),
        missed_probes: None,
        clock_check: told.clock_check.clone(),
        poll_costs: None,
        syscalls: None,
        sealed: None,
        notes: told.notes.iter().chain(&wish.note).cloned().collect(),
        outcome: Outcome::Recording,
        ..ours.clone()
    }
}

#[cfg(test)]
#[path = "side_tests.rs"]
mod tests;
