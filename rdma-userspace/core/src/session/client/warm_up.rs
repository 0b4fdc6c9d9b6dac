//! What is done with a run before its measured rounds: the warm-up, the costs of polling, the system calls of its thread.
use super::rounds::RoundKind;
use super::run::OpenRun;
use super::{NO_PROGRESS, Session};
use crate::runner::{Warmup, WarmupStep};
use crate::session::peer::Peer;
use crate::session::poll_costs::{self, PollCostRun};
use crate::session::{SessionError, bypass};
use capture::Sample;
use capture::manifest::SyscallRound;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Samples of one warm-up block.
const WARM_UP_SAMPLES: u64 = 200;

impl Session {
    /// Blocks of samples until two in a row agree.
    pub(super) async fn warm_up(&mut self, run: &mut OpenRun, peer: &mut Peer) -> Result<(), SessionError> {
        let mut warmup = Warmup::new(self.options.warm_up_max);
        loop {
            let kind = RoundKind { traced: false, warmup: true };
            let samples = self.round(run, WARM_UP_SAMPLES, kind, peer).await?;
            let unstable =
                |seen| SessionError::Unstable { op: run.op.to_string(), mode: run.mode.to_string(), limit: self.options.warm_up_max, seen };
            let median_ns = median_ns(&samples).ok_or_else(|| unstable("a block without one good sample".to_owned()))?;
            match warmup.block(median_ns) {
                WarmupStep::Again => {}
                WarmupStep::Settled => {
                    run.sample = Duration::from_nanos(median_ns);
                    return Ok(());
                }
                WarmupStep::Unstable { before_ns, last_ns } => {
                    return Err(unstable(format!("medians of its last two blocks: {} µs and {} µs", before_ns / 1000, last_ns / 1000)));
                }
            }
        }
    }

    /// What polling costs on this run's thread and CQ, without probes.
    pub(super) async fn measure_poll_costs(&mut self, run: &mut OpenRun, peer: &mut Peer) -> Result<(), SessionError> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(SessionError::Interrupted);
        }
        self.probes.run(|probes| probes.set_attached(false))??;
        let (round, latency) = (run.recording.next_round(), run.sample);
        let of = PollCostRun { index: run.index, round, op: run.op, mode: run.mode, latency, worker: &run.worker };
        let costs = poll_costs::measure(of, peer, NO_PROGRESS, &self.abort, &self.interrupted).await?;
        run.recording.manifest.poll_costs = Some(costs);
        Ok(())
    }

    /// Which system calls this run's thread makes: a round of its own, and one without any operation to tell what a round itself takes.
    pub(super) async fn count_syscalls(&mut self, run: &mut OpenRun, peer: &mut Peer) -> Result<(), SessionError> {
        let tid = run.worker.tid();
        let absent = self.probes.run(move |it| it.count_syscalls(tid))?.err();
        let mut found = SyscallRound { absent, ..SyscallRound::default() };
        if found.absent.is_none() {
            let samples = self.options.samples.min(bypass::SYSCALL_OPERATIONS);
            let kind = RoundKind { traced: false, warmup: true };
            let done = self.round(run, samples, kind, peer).await;
            let calls = self.probes.run(|it| it.syscalls())?;
            found.operations = done?.len() as u64;
            let frame = match self.probes.run(move |it| it.count_syscalls(tid))? {
                Ok(()) => {
                    let spec = self.spec(run.recording.next_round(), 0);
                    let empty = run.worker.round(spec).done().await;
                    let frame = self.probes.run(|it| it.syscalls())?;
                    empty.map_err(|failure| failure.error)?;
                    frame
                }
                Err(why) => Err(why),
            };
            match calls.and_then(|calls| Ok((calls, frame?))) {
                Ok((calls, frame)) => (found.calls, found.frame) = (bypass::named(&calls), bypass::named(&frame)),
                Err(why) => found.absent = Some(why),
            }
        }
        run.recording.manifest.syscalls = Some(found);
        Ok(())
    }
}

fn median_ns(samples: &[Sample]) -> Option<u64> {
    let mut latencies: Vec<u64> = samples.iter().filter_map(Sample::latency_ns).collect();
    latencies.sort_unstable();
    latencies.get(latencies.len() / 2).copied()
}
