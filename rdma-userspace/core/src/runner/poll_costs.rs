//! What polling costs: rounds of their own on the measured thread, its queue pair and its CQ. None of their samples is kept.
//!
//! The clock and the empty poll are timed in blocks, because one of them may be shorter than the clock can tell.
use super::endpoint::Endpoint;
use super::error::RunnerError;
use super::monitor::Monitor;
use super::ops::Step;
use super::params::MAX_SAMPLES_PER_ROUND;
use super::reap::{CompletionMode, TimedHit, TimedWindow};
use super::round::{self, RoundResult, RoundSpec};
use crate::verbs::ffi::os::monotonic_ns;
use capture::manifest::costs::{Absent, DetectionWindow, HitPoll, PollCosts, Spread};
use capture::{Mode, Operation, Side};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Calls between the two clock reads of a block.
const CALLS_PER_BLOCK: u32 = 100;

/// What is measured of the polling, and for how long at most.
#[derive(Clone, Debug)]
pub struct PollCostSpec {
    /// Blocks of 100 clock reads, and of 100 empty polls.
    pub blocks: u64,
    /// Operations whose completion is taken by one timed poll (one-sided operations only).
    pub hit_polls: u64,
    /// Time that such a completion gets to come, from the end of its post.
    pub hit_wait: Duration,
    /// Operations with a clock read after every poll (mode poll only; a server of ping-pongs must be in a round of as many).
    pub window_ops: u64,
    /// Each of the four parts ends after this, with what it has.
    pub part_max: Duration,
    /// A part without a new operation for this long fails.
    pub no_progress: Duration,
    /// Ends everything within about a tenth of a second.
    pub abort: Arc<AtomicBool>,
}

impl PollCostSpec {
    fn round(&self, samples: u64) -> RoundSpec {
        let (max_time, no_progress, abort) = (self.part_max, self.no_progress, Arc::clone(&self.abort));
        RoundSpec { index: 0, samples: samples.min(MAX_SAMPLES_PER_ROUND), record: false, max_time, no_progress, abort }
    }
}

/// True when the rounds for the costs hold operations that a server's thread must answer.
pub fn poll_costs_need_server(op: Operation, mode: Mode) -> bool {
    op.server_answers() && op.has_cqe() && mode.spins()
}

/// Measures on the calling thread. A part that cannot be is said to be absent.
pub(super) fn run<S: Step>(step: &mut S, end: &mut Endpoint, spec: &PollCostSpec, monitor: &Monitor) -> Result<PollCosts, RunnerError> {
    if end.dirty {
        return Err(RunnerError::Dirty);
    }
    let mut costs = PollCosts { calls_per_block: CALLS_PER_BLOCK, ..PollCosts::default() };
    let (op, mode) = (end.params.op, end.params.mode_of(end.side));
    let mut absent = |what: &str, why: &str| costs.absent.push(Absent { what: what.to_owned(), why: why.to_owned() });
    let no_cq = !op.has_cqe();
    let client = end.side == Side::Client;
    let hit = client && !op.server_answers();
    let window = client && mode.spins() && !no_cq;
    match (client, no_cq) {
        (false, _) => absent("hit_poll, detection_window", "they are measured on the client"),
        (true, true) => {
            absent("empty_poll, hit_poll, detection_window", &format!("{op} watches memory: it polls no CQ for the end of a sample"))
        }
        (true, false) => {
            if !hit {
                absent(
                    "hit_poll",
                    "in a ping-pong the peer's thread decides when the completion comes, so no wait makes sure that it is there",
                );
            }
            if !window {
                absent("detection_window", &format!("mode {mode}: the thread sleeps and does not poll until the completion is there"));
            }
        }
    }
    costs.clock_read = blocks(spec, monitor, || {
        std::hint::black_box(monotonic_ns());
        Ok(())
    })?;
    if !no_cq {
        costs.empty_poll = empty_polls(end, spec, monitor)?;
    }
    if hit {
        let mut polls = TimedHit::new(spec.round(spec.hit_polls).samples, nanoseconds(spec.hit_wait));
        let done = operations(step, end, &mut polls, spec, spec.hit_polls, monitor)?;
        costs.hit_poll = Some(HitPoll {
            waited_ns: nanoseconds(spec.hit_wait),
            operations: done.stats.samples,
            came_back_empty: polls.came_back_empty(),
            poll: Spread::of(polls.polls_ns()),
        });
    }
    // An abort may have cut off an operation: nothing more can run on this queue pair then.
    let stopped = monitor.stopped();
    if window && stopped {
        costs.absent.push(Absent { what: "detection_window".to_owned(), why: "stopped before it".to_owned() });
    }
    if window && !stopped {
        let mut windows = TimedWindow::new(spec.round(spec.window_ops).samples);
        let done = operations(step, end, &mut windows, spec, spec.window_ops, monitor)?;
        costs.detection_window = Some(DetectionWindow {
            operations: done.stats.samples,
            first_poll_hits: windows.first_poll_hits(),
            window: Spread::of(windows.windows_ns()),
        });
    }
    // Mode event: a queue that an ordinary round left armed has raised its one event here. No later sample may read it.
    if end.queues.completions.end_cq().has_channel() {
        end.queues.completions.end_cq().drain_events()?;
        end.queues.completions.end_cq().acknowledge();
    }
    Ok(costs)
}

/// One round of operations in a mode of its own.
fn operations<S: Step, M: CompletionMode>(
    step: &mut S,
    end: &mut Endpoint,
    mode: &mut M,
    spec: &PollCostSpec,
    samples: u64,
    monitor: &Monitor,
) -> Result<RoundResult, RunnerError> {
    round::run(step, end, mode, &spec.round(samples), monitor).map_err(|failure| failure.error)
}

/// Times of blocks of empty polls.
fn empty_polls(end: &mut Endpoint, spec: &PollCostSpec, monitor: &Monitor) -> Result<Option<Spread>, RunnerError> {
    let (cq, batch) = end.queues.completions.end_cq_and_batch();
    let mut found = 0;
    let spread = blocks(spec, monitor, || {
        found += cq.poll(batch)?;
        Ok(())
    })?;
    if found == 0 {
        return Ok(spread);
    }
    Err(RunnerError::Unexpected { expected: "an empty CQ, with nothing outstanding".to_owned(), got: format!("{found} completions") })
}

/// Blocks of calls, two clock reads each, until all are done or the time is up.
#[inline]
fn blocks(
    spec: &PollCostSpec,
    monitor: &Monitor,
    mut call: impl FnMut() -> Result<(), RunnerError>,
) -> Result<Option<Spread>, RunnerError> {
    let mut blocks_ns = vec![1; usize::try_from(spec.blocks.min(MAX_SAMPLES_PER_ROUND)).unwrap_or(0)];
    let last_ns = monotonic_ns().saturating_add(nanoseconds(spec.part_max));
    let mut done = 0;
    for place in &mut blocks_ns {
        let begin_ns = monotonic_ns();
        for _ in 0..CALLS_PER_BLOCK {
            call()?;
        }
        let end_ns = monotonic_ns();
        *place = end_ns.saturating_sub(begin_ns);
        done += 1;
        monitor.progress(done);
        if monitor.stopped() || end_ns > last_ns {
            break;
        }
    }
    blocks_ns.truncate(usize::try_from(done).unwrap_or(0));
    Ok(Spread::per_call(&mut blocks_ns, CALLS_PER_BLOCK))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::named::Named;

    fn spec(blocks: u64, part_max: Duration) -> PollCostSpec {
        PollCostSpec {
            blocks,
            hit_polls: 0,
            hit_wait: Duration::ZERO,
            window_ops: 0,
            part_max,
            no_progress: Duration::from_secs(1),
            abort: Arc::default(),
        }
    }

    #[test]
    fn a_block_is_so_many_calls_and_its_time_is_divided_by_them() {
        let mut calls = 0;
        let long = Duration::from_secs(600);
        let spread = blocks(&spec(20, long), &Monitor::default(), || {
            calls += 1;
            std::thread::sleep(Duration::from_micros(20));
            Ok(())
        });
        let spread = spread.expect("no error").expect("blocks");
        assert_eq!((calls, spread.n), (20 * u64::from(CALLS_PER_BLOCK), 20));
        assert!(spread.min_ns >= 20_000.0 && spread.p50_ns.is_some_and(|p50| p50 >= spread.min_ns), "{spread:?}");
    }

    #[test]
    fn time_ends_the_blocks_and_what_there_is_counts() {
        let spread = blocks(&spec(1_000_000, Duration::from_millis(5)), &Monitor::default(), || {
            std::thread::sleep(Duration::from_micros(10));
            Ok(())
        });
        let n = spread.expect("no error").expect("one block at least").n;
        assert!((1..100_000).contains(&n), "{n} blocks");
    }

    #[test]
    fn only_a_polled_send_needs_the_server() {
        let needed: Vec<_> = Operation::MEASURED
            .iter()
            .flat_map(|op| Mode::ALL.iter().map(|mode| (*op, *mode)))
            .filter(|(op, mode)| poll_costs_need_server(*op, *mode))
            .collect();
        assert!(needed.contains(&(Operation::Send, Mode::Poll)), "{needed:?}");
        let answered = |(op, mode): &(Operation, Mode)| op.server_answers() && *op != Operation::WritePp && mode.spins();
        assert!(needed.iter().all(answered), "{needed:?}");
    }
}
