//! The rounds of an operation's runs: in the order of the schedule, each on both sides, recorded.
use super::run::OpenRun;
use super::{NO_PROGRESS, Session};
use crate::machine::cpu_time::{machine_busy_ns, machine_steal_ns};
use crate::probes::RoundRecords;
use crate::runner::{RoundFailure, RoundOutcome, RoundResult, RoundSpec, RoundStats};
use crate::session::peer::Peer;
use crate::session::progress::Progress;
use crate::session::schedule::{self, Rounds};
use crate::session::{SessionError, bypass};
use capture::manifest::Round;
use capture::{Operation, Sample};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A round ends with the operation that ends later than this, however many samples are missing; twice what rounds are planned for.
const ROUND_TIME_MAX: Duration = Duration::from_secs(4);
/// Runs that are short of samples get up to so many times the planned rounds on top.
const MORE_ROUNDS: u32 = 4;
/// Samples of the warm-up after the probes came or went.
const SETTLE_SAMPLES: u64 = 20;
/// After a failure on this side the peer gets so long to report its own.
const PEER_FAILURE_WAIT: Duration = Duration::from_millis(500);

/// A round that was cut off: what there was until then, and why.
type Cut = (Vec<Sample>, RoundStats, SessionError);

/// What a round is for.
#[derive(Clone, Copy)]
pub(super) struct RoundKind {
    pub(super) traced: bool,
    pub(super) warmup: bool,
}

/// A round that failed here often failed because of the other side: waits a moment for the failure that the peer reports.
async fn with_peer_failure(outcome: RoundOutcome, peer: &mut Peer) -> Result<RoundResult, Cut> {
    let failure = match outcome {
        Ok(result) => return Ok(result),
        Err(failure) => failure,
    };
    let RoundFailure { error, samples, stats } = *failure;
    let error = match tokio::time::timeout(PEER_FAILURE_WAIT, peer.failure()).await {
        Ok(theirs) => SessionError::BothSides { here: Box::new(error), there: theirs.to_string() },
        Err(_) => error.into(),
    };
    Err((samples, stats, error))
}

impl Session {
    /// The rounds as planned, and some more for runs whose rounds were cut before their count, as happens on a busy machine.
    pub(super) async fn rounds(
        &mut self,
        op: Operation,
        rounds: Rounds,
        runs: &mut [OpenRun],
        peer: &mut Peer,
        progress: &mut Progress,
    ) -> Result<(), SessionError> {
        let can_trace = self.can_trace()?;
        let planned = schedule::steps(rounds.count, can_trace);
        let more = schedule::steps(rounds.count.saturating_mul(MORE_ROUNDS), can_trace);
        let total = (planned.len() * runs.len()) as u64;
        let mut done = 0;
        for step in planned.into_iter().chain(more) {
            let (wanted, in_plan) = (self.options.samples, done < total);
            let is_due = |run: &&mut OpenRun| in_plan || run.recording.samples(step.traced) < wanted;
            let mut order: Vec<&mut OpenRun> = runs.iter_mut().filter(is_due).collect();
            if order.is_empty() {
                continue;
            }
            let changed = self.set_probes(step.traced, op, peer).await?;
            if step.reversed {
                order.reverse();
            }
            for run in order {
                done += 1;
                let kind = if step.traced { "traced" } else { "untraced" };
                progress.step("round", &format!("{}, {} samples, {kind}", run.name(), rounds.samples_each), done, total.max(done));
                let kind = RoundKind { traced: step.traced, warmup: false };
                if changed {
                    // The kernel's text has just changed: the first operations after that tell of cold caches, not of the path.
                    self.round(run, SETTLE_SAMPLES, RoundKind { warmup: true, ..kind }, peer).await?;
                }
                self.round(run, rounds.samples_each, kind, peer).await?;
            }
        }
        self.set_probes(false, op, peer).await?;
        Ok(())
    }

    pub(super) fn spec(&self, index: u32, samples: u64) -> RoundSpec {
        RoundSpec { index, samples, record: true, max_time: ROUND_TIME_MAX, no_progress: NO_PROGRESS, abort: Arc::clone(&self.abort) }
    }

    /// One round on both sides, recorded. Whatever happens, the samples that were made are kept.
    pub(super) async fn round(
        &mut self,
        run: &mut OpenRun,
        samples: u64,
        kind: RoundKind,
        peer: &mut Peer,
    ) -> Result<Vec<Sample>, SessionError> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(SessionError::Interrupted);
        }
        let index = run.recording.next_round();
        peer.start_round(run.index, index, samples, self.peer_capture.retention(run.op, kind.traced, kind.warmup)).await?;
        let io_before = bypass::Before::read(run.worker.tid(), peer);
        let (busy_before, steal_before) = (machine_busy_ns(), machine_steal_ns());
        let outcome = self.measured(run, index, samples, peer).await;
        let busy_ns = busy_before.zip(machine_busy_ns()).map(|(before, after)| after.saturating_sub(before));
        let steal_ns = steal_before.zip(machine_steal_ns()).map(|(before, after)| after.saturating_sub(before));
        let io = io_before.until_now(peer);
        let records = match kind {
            RoundKind { traced: true, warmup: false } => self.probes.run(|it| it.take_records())??,
            RoundKind { traced: true, warmup: true } => {
                self.probes.run(|it| it.discard_records())??;
                RoundRecords::default()
            }
            RoundKind { traced: false, .. } => RoundRecords::default(),
        };
        let (samples, stats, failure) = match outcome {
            Ok(result) => (result.samples, result.stats, None),
            Err((samples, stats, error)) => (samples, stats, Some(error)),
        };
        let server = match &failure {
            None => Some(peer.collect(run.index).await?),
            Some(_) => None,
        };
        let mut round = Round {
            index,
            traced: kind.traced,
            warmup: kind.warmup,
            server_cpu_ns: server.map(|it| it.0.thread_cpu_ns),
            server_residency: server.and_then(|it| it.1),
            machine_busy_ns: busy_ns,
            io: Some(io),
            steal_ns,
            ..Round::default()
        };
        stats.fill(&mut round);
        run.recording.round(round, &samples, records)?;
        failure.map_or(Ok(samples), Err)
    }

    /// The measured part: this side's thread runs while the control plane only listens for a failure of the peer and for Ctrl-C.
    async fn measured(&mut self, run: &OpenRun, index: u32, samples: u64, peer: &mut Peer) -> Result<RoundResult, Cut> {
        self.abort.store(false, Ordering::Relaxed);
        let round = run.worker.round(self.spec(index, samples)).done();
        tokio::pin!(round);
        let stop = tokio::select! {
            outcome = &mut round => return with_peer_failure(outcome, peer).await,
            failure = peer.failure() => failure,
            () = self.interrupted.notified() => SessionError::Interrupted,
        };
        self.abort.store(true, Ordering::Relaxed);
        match round.await {
            Ok(result) => Err((result.samples, result.stats, stop)),
            Err(failure) => Err((failure.samples, failure.stats, stop)),
        }
    }
}
