//! The measured thread: a plain pinned thread that owns an endpoint and runs its rounds.
use super::endpoint::Endpoint;
use super::error::RunnerError;
use super::ops::{ClientOperation, Measured, Step, WithOperation, with_operation};
use super::params::MAX_SAMPLES_PER_ROUND;
use super::poll_costs::{self, PollCostSpec};
use super::reap::{CompletionMode, WithMode, with_mode};
use super::round::{self, RoundFailure, RoundOutcome, RoundSpec};
use super::watchdog::{Watchdog, WatchdogHandle};
use crate::verbs::ffi::os;
use capture::Side;
use capture::manifest::costs::PollCosts;
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// How the measured thread runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerConfig {
    /// CPU to pin it to; `None`: wherever the scheduler likes.
    pub cpu: Option<u32>,
    /// Real-time priority (SCHED_FIFO, 1 to 99); `None`: ordinary.
    pub priority: Option<u8>,
}

enum Job {
    Round { spec: RoundSpec, reply: oneshot::Sender<RoundOutcome> },
    PollCosts { spec: PollCostSpec, reply: oneshot::Sender<Result<PollCosts, RunnerError>> },
}

/// A measured thread with its endpoint and its watchdog.
pub struct Worker {
    tid: u32,
    // Dropped first: the thread sees the end of its jobs and gives the endpoint back.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<Endpoint>>,
    watchdog: Watchdog,
}

/// A round that was started.
pub struct RoundHandle(oneshot::Receiver<RoundOutcome>);

impl RoundHandle {
    /// Blocks until the round is over; its own deadlines bound that. Not for async code: use [`Self::done`] there.
    pub fn wait(self) -> RoundOutcome {
        self.0.blocking_recv().unwrap_or_else(|_| Err(gone()))
    }

    /// Waits for the end of the round.
    pub async fn done(self) -> RoundOutcome {
        self.0.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// A measurement of the costs of polling that was started.
pub struct PollCostsHandle(oneshot::Receiver<Result<PollCosts, RunnerError>>);

impl PollCostsHandle {
    /// Blocks until it is over; its own deadlines bound that. Not for async code: use [`Self::done`] there.
    ///
    /// # Errors
    /// What a round can meet.
    pub fn wait(self) -> Result<PollCosts, RunnerError> {
        self.0.blocking_recv().unwrap_or(Err(RunnerError::WorkerGone))
    }

    /// Waits for the end of it.
    ///
    /// # Errors
    /// What a round can meet.
    pub async fn done(self) -> Result<PollCosts, RunnerError> {
        self.0.await.unwrap_or(Err(RunnerError::WorkerGone))
    }
}

fn gone() -> Box<RoundFailure> {
    Box::new(RoundFailure { error: RunnerError::WorkerGone, samples: Vec::new(), stats: Default::default() })
}

impl Worker {
    /// Starts the thread for a connected endpoint and waits until it is pinned.
    pub fn spawn(mut endpoint: Endpoint, config: WorkerConfig) -> Result<Self, RunnerError> {
        // The client is what is measured. A server that kept its own watchdog off its CPU would send it to the client's, where there are two.
        let measured_cpu = config.cpu.filter(|_| endpoint.side() == Side::Client);
        let (watchdog, handle) = Watchdog::spawn(measured_cpu)?;
        let (jobs, incoming) = mpsc::channel();
        let (ready_in, ready_out) = mpsc::channel();
        let name = format!("rs-{}-{}", if endpoint.side() == Side::Client { "client" } else { "server" }, endpoint.params.worker);
        let body = move || {
            let ready = set_up(config).map(|()| os::thread_id());
            let failed = ready.is_err();
            if ready_in.send(ready).is_err() || failed {
                return endpoint;
            }
            // An operation that is none of ours was refused when the endpoint was made.
            let serve = Serve { endpoint: &mut endpoint, jobs: &incoming, watchdog: &handle };
            let _ = with_operation(serve.endpoint.params.op, serve);
            endpoint
        };
        let thread = std::thread::Builder::new().name(name).spawn(body);
        let thread = thread.map_err(|source| RunnerError::Thread { what: "the measured thread", source })?;
        let tid = ready_out.recv().map_err(|_| RunnerError::WorkerGone)??;
        Ok(Self { tid, jobs: Some(jobs), thread: Some(thread), watchdog })
    }

    /// Kernel id of the thread.
    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// Starts a round. Rounds run one after another.
    pub fn round(&self, spec: RoundSpec) -> RoundHandle {
        let (reply, handle) = oneshot::channel();
        if let Some(jobs) = &self.jobs {
            // A thread that is gone drops the reply, which the handle reports.
            let _ = jobs.send(Job::Round { spec, reply });
        }
        RoundHandle(handle)
    }

    /// Measures the costs of polling, between rounds.
    pub fn poll_costs(&self, spec: PollCostSpec) -> PollCostsHandle {
        let (reply, handle) = oneshot::channel();
        if let Some(jobs) = &self.jobs {
            // As for a round.
            let _ = jobs.send(Job::PollCosts { spec, reply });
        }
        PollCostsHandle(handle)
    }

    /// Ends a running round, stops the thread and gives the endpoint back; dropping that tears it down in order.
    pub fn stop(mut self) -> Result<Endpoint, RunnerError> {
        self.join().ok_or(RunnerError::WorkerGone)
    }

    fn join(&mut self) -> Option<Endpoint> {
        self.jobs = None;
        self.watchdog.quit();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.thread.is_some() && self.join().is_none() {
            eprintln!("rdmascope: a measured thread panicked; its endpoint is gone");
        }
    }
}

fn set_up(config: WorkerConfig) -> Result<(), RunnerError> {
    if let Some(cpu) = config.cpu {
        os::pin_to_cpu(cpu).map_err(|source| RunnerError::NoSuchCpu { cpu, allowed: allowed_text(), source })?;
    }
    if let Some(priority) = config.priority {
        os::set_fifo_priority(priority).map_err(|source| RunnerError::Priority { priority, source })?;
    }
    Ok(())
}

fn allowed_text() -> String {
    match os::allowed_cpus() {
        Ok(cpus) => format!("CPUs {}", cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        Err(error) => format!("CPUs that cannot be read ({error})"),
    }
}

/// What the thread serves with, once operation, side and mode have chosen the compiled loop.
struct Serve<'a> {
    endpoint: &'a mut Endpoint,
    jobs: &'a mpsc::Receiver<Job>,
    watchdog: &'a WatchdogHandle,
}

impl WithOperation for Serve<'_> {
    type Output = ();

    fn with<O: ClientOperation>(self) {
        match self.endpoint.side {
            Side::Client => self.by_mode(Measured::<O>::default()),
            Side::Server => self.by_mode(O::Server::default()),
        }
    }
}

impl Serve<'_> {
    fn by_mode<S: Step>(self, step: S) {
        let mode = self.endpoint.params.mode_of(self.endpoint.side);
        with_mode(mode, ServeStep { step, serve: self });
    }
}

struct ServeStep<'a, S> {
    step: S,
    serve: Serve<'a>,
}

impl<S: Step> WithMode for ServeStep<'_, S> {
    fn with<M: CompletionMode>(self) {
        jobs_loop::<S, M>(self.step, self.serve);
    }
}

fn jobs_loop<S: Step, M: CompletionMode>(mut step: S, serve: Serve<'_>) {
    let Serve { endpoint, jobs, watchdog } = serve;
    let mut mode = M::default();
    // When the watchdog no longer lets anything begin, the worker is being stopped: the reply is dropped, and the handle says that the
    // thread is gone. When nobody waits for a reply any more, there is nobody to tell.
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Round { mut spec, reply } => {
                spec.samples = spec.samples.min(MAX_SAMPLES_PER_ROUND);
                if !watchdog.begin(&spec.abort, spec.no_progress) {
                    continue;
                }
                let outcome = round::run(&mut step, endpoint, &mut mode, &spec, watchdog.monitor());
                watchdog.end();
                let _ = reply.send(outcome);
            }
            Job::PollCosts { spec, reply } => {
                if !watchdog.begin(&spec.abort, spec.no_progress) {
                    continue;
                }
                let outcome = poll_costs::run(&mut step, endpoint, &spec, watchdog.monitor());
                watchdog.end();
                let _ = reply.send(outcome);
            }
        }
    }
}
