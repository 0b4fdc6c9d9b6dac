//! A round: one uninterrupted block of operations on the measured thread.
use super::counters::{RoundStats, ThreadUsage};
use super::endpoint::Endpoint;
use super::error::RunnerError;
use super::monitor::{Monitor, StopReason};
use super::ops::Step;
use super::queues::Queues;
use super::reap::CompletionMode;
use super::step_error::StepError;
use crate::verbs::QpState;
use crate::verbs::ffi::os::monotonic_ns;
use capture::Sample;
use capture::Side;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long the acknowledgements of the last sends are waited for after a round was stopped.
const SETTLE: Duration = Duration::from_millis(200);

/// What a round does.
#[derive(Clone, Debug)]
pub struct RoundSpec {
    /// Its index in the manifest.
    pub index: u32,
    /// Operations: exactly so many unless time or an abort ends it earlier.
    pub samples: u64,
    /// Keep the samples?
    pub record: bool,
    /// The client ends the round after the first operation that ends later than this. A server ignores it: it ends by count or abort.
    pub max_time: Duration,
    /// A round without a new operation for this long fails.
    pub no_progress: Duration,
    /// Ends the round within about a tenth of a second, whatever it waits for.
    pub abort: Arc<AtomicBool>,
}

/// How a round ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    /// All operations done.
    Done,
    /// The time was up; every operation that was begun is complete.
    TimeUp,
    /// Aborted. A client may have been stopped in the middle of an operation.
    Aborted,
}

/// A round that ended without an error.
#[derive(Debug)]
pub struct RoundResult {
    /// The samples, in their order; empty when they were not to be kept.
    ///
    /// A server's sample says: `done_ns` message received, `post_begin_ns` and `post_end_ns` answer posted, later than `done_ns`.
    pub samples: Vec<Sample>,
    /// Counters.
    pub stats: RoundStats,
    /// How it ended.
    pub end: RoundEnd,
}

/// A round that failed, with everything that it had until then.
#[derive(Debug)]
pub struct RoundFailure {
    /// Why.
    pub error: RunnerError,
    /// The samples so far; the failed operation is the last one when it got a completion.
    pub samples: Vec<Sample>,
    /// Counters so far.
    pub stats: RoundStats,
}

/// What comes of a round.
pub type RoundOutcome = Result<RoundResult, Box<RoundFailure>>;

/// Runs one round on the calling thread.
pub(crate) fn run<S: Step, M: CompletionMode>(
    step: &mut S,
    end: &mut Endpoint,
    mode: &mut M,
    spec: &RoundSpec,
    monitor: &Monitor,
) -> RoundOutcome {
    let mut stats = RoundStats::default();
    if end.dirty {
        return Err(Box::new(RoundFailure { error: RunnerError::Dirty, samples: Vec::new(), stats }));
    }
    let wanted = if S::TAKES_PART { spec.samples } else { 0 };
    let mut samples = touched(if spec.record { wanted as usize } else { 0 });
    *mode.counters() = Default::default();
    stats.begin_ns = monotonic_ns();
    // Within begin and end, so that a stall between two clocks cannot make the CPU's time longer than the round.
    let usage = ThreadUsage::now();
    let template = Sample { qpn: end.qpn(), round: spec.index, worker: end.params.worker, ..Sample::default() };
    let last_ns = match end.side {
        Side::Client => stats.begin_ns.saturating_add(u64::try_from(spec.max_time.as_nanos()).unwrap_or(u64::MAX)),
        Side::Server => u64::MAX,
    };

    let (done, sample, halted) = measure(step, &mut end.queues, mode, monitor, &mut samples, template, wanted, last_ns);

    usage.add_since(&mut stats);
    stats.end_ns = monotonic_ns();
    stats.samples = done;
    let counters = *mode.counters();
    stats.events = counters.events;
    stats.drained_events = counters.drained_events;
    stats.empty_wakeups = counters.empty_wakeups;
    stats.armed_poll_hits = counters.armed_poll_hits;
    stats.empty_polls = counters.empty_polls;
    samples.truncate(done as usize);

    let halted = halted.and_then(|round_end| settle(&mut end.queues, monitor).map(|()| round_end));
    end.queues.completions.end_cq().acknowledge();
    match halted {
        Ok(round_end) => Ok(RoundResult { samples, stats, end: round_end }),
        Err(StepError::Stopped) if monitor.reason() == Some(StopReason::Abort) => {
            // A server that waits for a message has begun nothing; a client has.
            end.dirty = end.side == Side::Client && done < wanted;
            settle_after_stop(&mut end.queues);
            Ok(RoundResult { samples, stats, end: RoundEnd::Aborted })
        }
        Err(why) => {
            end.dirty = true;
            let error = explain::<S>(end, why, spec, done);
            if let RunnerError::Completion { code, .. } = error {
                stats.failed = 1;
                if spec.record && sample.done_ns != 0 {
                    samples.push(Sample { status: u16::try_from(code).unwrap_or(u16::MAX), ..sample });
                }
            }
            Err(Box::new(RoundFailure { error, samples, stats }))
        }
    }
}

/// The measured loop. Gives the operations done, the last sample (complete or not), and how it ended.
#[expect(clippy::too_many_arguments, reason = "one caller; a structure would only rename them")]
fn measure<S: Step, M: CompletionMode>(
    step: &mut S,
    queues: &mut Queues,
    mode: &mut M,
    monitor: &Monitor,
    samples: &mut [Sample],
    template: Sample,
    wanted: u64,
    last_ns: u64,
) -> (u64, Sample, Result<RoundEnd, StepError>) {
    let mut sample = template;
    let mut done = 0;
    while done < wanted {
        sample = template;
        if let Err(why) = step.step(queues, mode, monitor, &mut sample) {
            return (done, sample, Err(why));
        }
        if let Some(place) = samples.get_mut(done as usize) {
            *place = sample;
        }
        done += 1;
        monitor.progress(done);
        if let Err(why) = mode.between(queues.completions.end_cq()) {
            return (done, sample, Err(why));
        }
        if sample.done_ns > last_ns {
            return (done, sample, Ok(if done == wanted { RoundEnd::Done } else { RoundEnd::TimeUp }));
        }
        // Between two operations a stop costs nothing.
        if monitor.stopped() && done < wanted {
            return (done, sample, Err(StepError::Stopped));
        }
    }
    (done, sample, Ok(RoundEnd::Done))
}

/// Room for samples whose pages are really there.
fn touched(count: usize) -> Vec<Sample> {
    let mut samples = Vec::with_capacity(count);
    // `vec![zero; n]` may get untouched zero pages; writing each element does not.
    samples.resize_with(count, || std::hint::black_box(Sample::default()));
    samples
}

/// After the last operation: waits for the acknowledgements of the sends.
fn settle(queues: &mut Queues, monitor: &Monitor) -> Result<(), StepError> {
    queues.completions.retire_sends_to(0, &mut queues.submit.sends, monitor)
}

/// The same after a stop, for a bounded time and without an error: the caller has one already, or none is due.
fn settle_after_stop(queues: &mut Queues) {
    let begin = Instant::now();
    let sends = &mut queues.submit.sends;
    while sends.outstanding() > 0 && begin.elapsed() < SETTLE && queues.completions.retire_sends(sends).is_ok() {
        std::hint::spin_loop();
    }
}

/// The error to show for a step that did not end: the root cause where one lies on the other queue.
#[cold]
fn explain<S: Step>(end: &mut Endpoint, why: StepError, spec: &RoundSpec, done: u64) -> RunnerError {
    match why {
        StepError::Failed(error) => *error,
        StepError::BadCompletion(what, completion) => end.queues.completions.cause_of(what, completion, SETTLE),
        StepError::Stopped => match end.queues.completions.root_cause(SETTLE) {
            Some(cause) => cause,
            None => no_progress(end, S::WAITS_FOR, spec, done),
        },
    }
}

fn no_progress(end: &Endpoint, waits_for: &str, spec: &RoundSpec, done: u64) -> RunnerError {
    let state = end.queues.submit.qp.state();
    let hint = match &state {
        Ok(state) if *state == QpState::RTS && end.params.op.server_answers() => {
            "The connection stands: look whether the peer's thread runs, and whether its CPU is free"
        }
        Ok(state) if *state == QpState::RTS => {
            "The connection stands: look at the network, at the peer's port, and at the counters of the device"
        }
        _ => "The queue pair has failed: look at the kernel logs of both sides",
    };
    RunnerError::NoProgress {
        waited_ms: u64::try_from(spec.no_progress.as_millis()).unwrap_or(u64::MAX),
        done,
        waiting_for: waits_for.into(),
        cq_depth: end.queues.completions.end_cq().depth(),
        qpn: end.qpn(),
        qp_state: state.map_or_else(|error| error.to_string(), |state| state.to_string()),
        port_state: end.port_state(),
        unacknowledged: end.queues.submit.sends.outstanding(),
        hint,
    }
}
