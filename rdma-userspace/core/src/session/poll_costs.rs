//! The costs of polling within a session: once per run, after its warm-up and before its rounds, while no probe is attached.
use super::SessionError;
use super::peer::Peer;
use crate::control::message::Retention;
use crate::runner::{PollCostSpec, RunnerError, Worker, poll_costs_need_server};
use capture::manifest::costs::PollCosts;
use capture::{Mode, Operation};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Blocks of clock reads and of empty polls: enough for a 99th percentile.
const BLOCKS: u64 = 1_000;
/// Operations of each kind: enough for a 99th percentile, with room for some that are left out.
const OPERATIONS: u64 = 1_100;
/// Each part ends after this, with what it has.
const PART_MAX: Duration = Duration::from_secs(1);
/// A completion gets so many times the usual latency before the timed poll …
const HIT_WAIT_LATENCIES: u32 = 3;
/// … but at least this long,
const HIT_WAIT_MIN: Duration = Duration::from_micros(50);
/// … and at most this long.
const HIT_WAIT_MAX: Duration = Duration::from_millis(2);

/// The run whose polling is measured.
pub(super) struct PollCostRun<'a> {
    /// Its number.
    pub index: u32,
    /// Index for the server's round.
    pub round: u32,
    /// Operation.
    pub op: Operation,
    /// Mode.
    pub mode: Mode,
    /// Usual latency, from the warm-up.
    pub latency: Duration,
    /// Its thread.
    pub worker: &'a Worker,
}

/// Time that a completion gets before the timed poll.
fn hit_wait(latency: Duration) -> Duration {
    (latency * HIT_WAIT_LATENCIES).clamp(HIT_WAIT_MIN, HIT_WAIT_MAX)
}

/// Measures. The server takes part where its thread must answer.
///
/// # Errors
/// What a round can meet on either side, and Ctrl-C.
pub(super) async fn measure(
    run: PollCostRun<'_>,
    peer: &mut Peer,
    no_progress: Duration,
    abort: &Arc<AtomicBool>,
    interrupted: &Notify,
) -> Result<PollCosts, SessionError> {
    abort.store(false, Ordering::Relaxed);
    let with_server = poll_costs_need_server(run.op, run.mode);
    if with_server {
        peer.start_round(run.index, run.round, OPERATIONS, Retention::Nothing).await?;
    }
    let spec = PollCostSpec {
        blocks: BLOCKS,
        hit_polls: OPERATIONS,
        hit_wait: hit_wait(run.latency),
        window_ops: OPERATIONS,
        part_max: PART_MAX,
        no_progress,
        abort: Arc::clone(abort),
    };
    let costs = run.worker.poll_costs(spec).done();
    tokio::pin!(costs);
    let outcome: Result<PollCosts, RunnerError> = tokio::select! {
        outcome = &mut costs => outcome,
        failure = peer.failure() => {
            abort.store(true, Ordering::Relaxed);
            let _ = costs.await;
            return Err(failure);
        }
        () = interrupted.notified() => {
            abort.store(true, Ordering::Relaxed);
            let _ = costs.await;
            return Err(SessionError::Interrupted);
        }
    };
    let costs = outcome?;
    if with_server {
        peer.collect(run.index).await?;
    }
    Ok(costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_follows_the_latency_within_bounds() {
        let us = Duration::from_micros;
        assert_eq!([us(2), us(100), us(5_000)].map(hit_wait), [us(50), us(300), us(2_000)]);
    }
}
