//! A round: one uninterrupted block of operations on the measured thread.
use super::counters::{RoundStats, Usage};
use super::endpoint::Endpoint;
use super::error::RunnerError;
use super::modes::CompletionMode;
use super::monitor::{Monitor, StopReason};
use super::ops::Party;
use super::params::Role;
use super::rings::{Halt, bad_completion};
use crate::verbs::ffi::os::monotonic_ns;
use crate::verbs::{Completion, QpState};
use analysis::capture::Sample;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Status of a request that was flushed: another completion holds the cause.
const FLUSHED: u32 = 5;
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
pub(crate) fn run<P: Party, M: CompletionMode>(
    party: &mut P,
    end: &mut Endpoint,
    mode: &mut M,
    spec: &RoundSpec,
    monitor: &Monitor,
) -> RoundOutcome {
    let mut stats = RoundStats::default();
    if end.dirty {
        return Err(Box::new(RoundFailure { error: RunnerError::Dirty, samples: Vec::new(), stats }));
    }
    let wanted = if P::TAKES_PART { spec.samples } else { 0 };
    let mut samples = touched(if spec.record { wanted as usize } else { 0 });
    *mode.counters() = Default::default();
    stats.begin_ns = monotonic_ns();
    // Within begin and end, so that a stall between two clocks cannot make the CPU's time longer than the round.
    let usage = Usage::now();
    let template = Sample { qpn: end.qpn(), round: spec.index, worker: end.params.worker, ..Sample::default() };
    let last_ns = match end.role {
        Role::Client => stats.begin_ns.saturating_add(u64::try_from(spec.max_time.as_nanos()).unwrap_or(u64::MAX)),
        Role::Server => u64::MAX,
    };

    let (done, sample, halted) = measure(party, end, mode, monitor, &mut samples, template, wanted, last_ns);

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

    let halted = halted.and_then(|round_end| settle(end, monitor).map(|()| round_end));
    end.end_cq().acknowledge();
    match halted {
        Ok(round_end) => Ok(RoundResult { samples, stats, end: round_end }),
        Err(Halt::Stopped) if monitor.reason() == Some(StopReason::Abort) => {
            // A server that waits for a message has begun nothing; a client has.
            end.dirty = end.role == Role::Client && done < wanted;
            settle_after_stop(end);
            Ok(RoundResult { samples, stats, end: RoundEnd::Aborted })
        }
        Err(halt) => {
            end.dirty = true;
            let error = explain::<P>(end, halt, spec, done);
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
fn measure<P: Party, M: CompletionMode>(
    party: &mut P,
    end: &mut Endpoint,
    mode: &mut M,
    monitor: &Monitor,
    samples: &mut [Sample],
    template: Sample,
    wanted: u64,
    last_ns: u64,
) -> (u64, Sample, Result<RoundEnd, Halt>) {
    let mut sample = template;
    let mut done = 0;
    while done < wanted {
        sample = template;
        if let Err(halt) = party.step(end, mode, monitor, &mut sample) {
            return (done, sample, Err(halt));
        }
        if let Some(place) = samples.get_mut(done as usize) {
            *place = sample;
        }
        done += 1;
        monitor.progress(done);
        if let Err(halt) = mode.between(end.end_cq()) {
            return (done, sample, Err(halt));
        }
        if sample.done_ns > last_ns {
            return (done, sample, Ok(if done == wanted { RoundEnd::Done } else { RoundEnd::TimeUp }));
        }
        // Between two operations a stop costs nothing.
        if monitor.stopped() && done < wanted {
            return (done, sample, Err(Halt::Stopped));
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
fn settle(end: &mut Endpoint, monitor: &Monitor) -> Result<(), Halt> {
    end.sends.reap_to(0, &end.send_cq, monitor)
}

/// The same after a stop, for a bounded time and without an error: the caller has one already, or none is due.
fn settle_after_stop(end: &mut Endpoint) {
    let begin = Instant::now();
    while end.sends.outstanding() > 0 && begin.elapsed() < SETTLE && end.sends.reap(&end.send_cq).is_ok() {
        std::hint::spin_loop();
    }
}

/// Turns a halt into the error to show: the root cause where one lies on the other queue.
#[cold]
fn explain<P: Party>(end: &mut Endpoint, halt: Halt, spec: &RoundSpec, done: u64) -> RunnerError {
    match halt {
        Halt::Failed(error) => *error,
        Halt::Bad(what, completion) if completion.status != FLUSHED => bad_completion(what, completion),
        Halt::Bad(what, completion) => match root_cause(end) {
            Some(cause) => bad_completion("A work request of this queue pair", cause),
            None => bad_completion(what, completion),
        },
        Halt::Stopped => match root_cause(end) {
            Some(cause) => bad_completion("A work request of this queue pair", cause),
            None => no_progress(end, P::WAITS_FOR, spec, done),
        },
    }
}

/// Looks through both queues for a completion that is neither good nor merely flushed. The endpoint measures nothing any more.
fn root_cause(end: &mut Endpoint) -> Option<Completion> {
    let begin = Instant::now();
    // A device may flush some time after the error.
    while begin.elapsed() < SETTLE {
        for cq in [&end.send_cq, &end.recv_cq] {
            if cq.poll(&mut end.batch).is_err() {
                return None;
            }
            let found = end.batch.iter().find(|completion| completion.status != 0 && completion.status != FLUSHED);
            if found.is_some() {
                return found;
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

fn no_progress(end: &Endpoint, waits_for: &str, spec: &RoundSpec, done: u64) -> RunnerError {
    let state = end.qp.state();
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
        cq_depth: end.end_cq().depth(),
        qpn: end.qpn(),
        qp_state: state.map_or_else(|error| error.to_string(), |state| state.to_string()),
        port_state: end.port_state(),
        unacknowledged: end.sends.outstanding(),
        hint,
    }
}
