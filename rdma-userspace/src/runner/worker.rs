//! The measured thread: a plain pinned thread that owns an endpoint and runs its rounds.
use super::costs::{self, CostSpec};
use super::endpoint::Endpoint;
use super::error::RunnerError;
use super::modes::{CompletionMode, EventMode, PollMode};
use super::monitor::{Guarded, Watchdog};
use super::ops::{Client, CmpSwap, FetchAdd, Idle, Party, Read, Send, SendAnswer, WatchAnswer, Write, WritePp};
use super::params::{MAX_SAMPLES_PER_ROUND, Mode, OpKind, Role};
use super::round::{self, RoundFailure, RoundOutcome, RoundSpec};
use crate::verbs::ffi::os;
use analysis::capture::costs::PollCosts;
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
    Costs { spec: CostSpec, reply: oneshot::Sender<Result<PollCosts, RunnerError>> },
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
pub struct CostsHandle(oneshot::Receiver<Result<PollCosts, RunnerError>>);

impl CostsHandle {
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
    pub fn spawn(endpoint: Endpoint, config: WorkerConfig) -> Result<Self, RunnerError> {
        // The client is what is measured. A server that kept its own watchdog off its CPU would send it to the client's, where there are two.
        let measured_cpu = config.cpu.filter(|_| endpoint.role() == Role::Client);
        let (watchdog, guarded) = Watchdog::spawn(measured_cpu)?;
        let (jobs, incoming) = mpsc::channel();
        let (ready_in, ready_out) = mpsc::channel();
        let name = format!("rs-{}-{}", if endpoint.role() == Role::Client { "client" } else { "server" }, endpoint.params.worker);
        let body = move || {
            let ready = set_up(config).map(|()| os::thread_id());
            let failed = ready.is_err();
            if ready_in.send(ready).is_err() || failed {
                return endpoint;
            }
            serve(endpoint, &incoming, &guarded)
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
    pub fn costs(&self, spec: CostSpec) -> CostsHandle {
        let (reply, handle) = oneshot::channel();
        if let Some(jobs) = &self.jobs {
            // As for a round.
            let _ = jobs.send(Job::Costs { spec, reply });
        }
        CostsHandle(handle)
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

/// Chooses the compiled loop for operation, end and mode.
fn serve(endpoint: Endpoint, jobs: &mpsc::Receiver<Job>, guarded: &Guarded) -> Endpoint {
    let (op, role) = (endpoint.params.op, endpoint.role());
    match (op, role) {
        (OpKind::Send, Role::Client) => by_mode(Client(Send), endpoint, jobs, guarded),
        (OpKind::Send, Role::Server) => by_mode(SendAnswer, endpoint, jobs, guarded),
        // Mode event was refused when the parameters were checked.
        (OpKind::WritePp, Role::Client) => jobs_loop::<_, PollMode>(Client(WritePp::default()), endpoint, jobs, guarded),
        (OpKind::WritePp, Role::Server) => jobs_loop::<_, PollMode>(WatchAnswer, endpoint, jobs, guarded),
        (OpKind::Write, Role::Client) => by_mode(Client(Write), endpoint, jobs, guarded),
        (OpKind::Read, Role::Client) => by_mode(Client(Read), endpoint, jobs, guarded),
        (OpKind::FetchAdd, Role::Client) => by_mode(Client(FetchAdd), endpoint, jobs, guarded),
        (OpKind::CmpSwap, Role::Client) => by_mode(Client(CmpSwap), endpoint, jobs, guarded),
        (OpKind::Write | OpKind::Read | OpKind::FetchAdd | OpKind::CmpSwap, Role::Server) => {
            jobs_loop::<_, PollMode>(Idle, endpoint, jobs, guarded)
        }
    }
}

fn by_mode<P: Party>(party: P, endpoint: Endpoint, jobs: &mpsc::Receiver<Job>, guarded: &Guarded) -> Endpoint {
    match endpoint.params.mode_of(endpoint.role()) {
        Mode::Poll => jobs_loop::<P, PollMode>(party, endpoint, jobs, guarded),
        Mode::Event => jobs_loop::<P, EventMode>(party, endpoint, jobs, guarded),
    }
}

fn jobs_loop<P: Party, M: CompletionMode>(mut party: P, mut endpoint: Endpoint, jobs: &mpsc::Receiver<Job>, guarded: &Guarded) -> Endpoint {
    let mut mode = M::default();
    // When the watchdog no longer lets anything begin, the worker is being stopped: the reply is dropped, and the handle says that the
    // thread is gone. When nobody waits for a reply any more, there is nobody to tell.
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Round { mut spec, reply } => {
                spec.samples = spec.samples.min(MAX_SAMPLES_PER_ROUND);
                if !guarded.begin(&spec.abort, spec.no_progress) {
                    continue;
                }
                let outcome = round::run(&mut party, &mut endpoint, &mut mode, &spec, guarded.monitor());
                guarded.end();
                let _ = reply.send(outcome);
            }
            Job::Costs { spec, reply } => {
                if !guarded.begin(&spec.abort, spec.no_progress) {
                    continue;
                }
                let outcome = costs::run(&mut party, &mut endpoint, &spec, guarded.monitor());
                guarded.end();
                let _ = reply.send(outcome);
            }
        }
    }
    endpoint
}
