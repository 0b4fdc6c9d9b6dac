//! The server: serves one client after another, each only after it showed the token and only within the limits.
use super::ControlError;
use super::admission::Admission;
use super::connection::Connection;
use super::endpoint_facts::EndpointFacts;
use super::limits::{Limits, RecordingLimits, Usage};
use super::message::{Reply, Request, Retention, ServerFacts};
use super::protocol::HELLO_DEADLINE;
use super::server_recorder::ServerRecorder;
use super::token::Token;
use crate::machine::device::kernel_driver;
use crate::probes::ProbeThread;
use crate::runner::{Endpoint, Params, PeerInfo, RoundOutcome, RoundSpec, RunnerError, Worker, WorkerConfig};
use crate::verbs::Device;
use capture::Sample;
use capture::Side;
use capture::manifest::costs::Spread;
use capture::text::{chain, printable};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A client that says nothing for so long between two messages is gone.
const IDLE_DEADLINE: Duration = Duration::from_secs(300);

/// No message moves for so long within a round: the round failed.
const NO_PROGRESS: Duration = Duration::from_secs(8);

/// Longest round of which a server keeps its own samples (88 bytes each). A round is planned for two seconds at most, so that a client
/// of this version does not ask for more on its own account.
const RECORDED_SAMPLES_MAX: u64 = 1_000_000;

/// What a server needs to know.
pub struct ServerConfig {
    /// Where to listen.
    pub bind: SocketAddr,
    /// What a client must show.
    pub token: Token,
    /// What a client may ask for.
    pub limits: Limits,
    /// What a client may have recorded here.
    pub recording: RecordingLimits,
    /// The thread that holds the probes; `None`: there are none.
    pub probes: Option<ProbeThread>,
    /// End after the first client.
    pub once: bool,
    /// End when no client comes for so long: the program that started this server, and alone has its token, is gone.
    pub client_within: Option<Duration>,
}

/// Serves until the process ends, or one client.
/// `ready` is called with the address that is listened on; `log` gets a line per client.
///
/// # Errors
/// When the address cannot be listened on, or (with `once`) the one client failed.
pub async fn serve(
    device: Device,
    facts: ServerFacts,
    config: ServerConfig,
    ready: impl FnOnce(SocketAddr),
    log: impl Fn(&str),
) -> Result<(), ControlError> {
    let listen = |source| ControlError::Listen { address: config.bind.to_string(), source };
    let listener = TcpListener::bind(config.bind).await.map_err(listen)?;
    ready(listener.local_addr().map_err(listen)?);
    let log = |line: &str| log(&printable(line));
    let mut admission = Admission::new(listener, config.token.clone());
    loop {
        let (peer, connection) = match config.client_within {
            None => admission.next(&log).await,
            Some(deadline) => tokio::time::timeout(deadline, admission.next(&log))
                .await
                .map_err(|_| ControlError::Deadline { what: "a client", deadline })?,
        };
        log(&format!("{peer} connected"));
        let outcome = tokio::select! {
            outcome = serve_client(connection, &device, &facts, &config) => outcome,
            () = refuse_others(&mut admission, &log) => Ok(()),
        };
        match &outcome {
            Ok(()) => log(&format!("{peer} is done")),
            Err(error) => log(&format!("{peer}: {error}")),
        }
        if config.once {
            return outcome;
        }
    }
}

/// Refuses every client that comes with the token while another one is served. Never ends.
async fn refuse_others(admission: &mut Admission, log: &impl Fn(&str)) {
    loop {
        let (_, mut waiting) = admission.next(log).await;
        let why = "it serves another client at the moment; try again when that one is done".to_owned();
        let _ = waiting.send(&Reply::Refused { why }, HELLO_DEADLINE).await;
    }
}

async fn serve_client(
    mut peer: Connection<Request>,
    device: &Device,
    facts: &ServerFacts,
    config: &ServerConfig,
) -> Result<(), ControlError> {
    peer.send(&Reply::Welcome(facts.clone()), HELLO_DEADLINE).await?;
    let recorder = ServerRecorder::new(config.recording, config.probes.as_ref(), kernel_driver(device.name()));
    let mut client = Client { device, limits: &config.limits, runs: BTreeMap::new(), usage: Usage::default(), round: None, recorder };
    let outcome = client.answer_requests(&mut peer).await;
    client.close_all().await;
    if let Err(error) = &outcome
        && !matches!(error, ControlError::Closed | ControlError::Peer(_))
    {
        let _ = peer.send(&Reply::Failed { why: error.to_string() }, HELLO_DEADLINE).await;
    }
    outcome
}

/// One run as the server sees it.
struct ServedRun {
    worker: Worker,
    bytes: u64,
    /// Its thread answers messages.
    answers: bool,
}

/// A round that this side is in: the run's number, how to end it, and its result once there is one.
struct PendingRound {
    run: u32,
    index: u32,
    keep: Retention,
    abort: Arc<AtomicBool>,
    result: JoinHandle<RoundOutcome>,
}

struct Client<'a> {
    device: &'a Device,
    limits: &'a Limits,
    runs: BTreeMap<u32, ServedRun>,
    usage: Usage,
    round: Option<PendingRound>,
    recorder: ServerRecorder<'a>,
}

impl<'a> Client<'a> {
    async fn answer_requests(&mut self, peer: &mut Connection<Request>) -> Result<(), ControlError> {
        loop {
            let request = tokio::select! {
                request = peer.next_within(IDLE_DEADLINE, "the client's next message") => request?,
                error = failure_of(&mut self.round) => return Err(error),
            };
            let reply = match request {
                Request::Open { run, params, cpu, client } => self.open(run, *params, cpu, client).await?,
                Request::Round { run, index, samples, keep } => self.start_round(run, index, samples, keep)?,
                Request::Observe { level } => self.between_rounds()?.load_probes(level)?,
                Request::Probes { traced } => self.between_rounds()?.set_probes(traced)?,
                Request::Capture { run } => Reply::Capture(Box::new(self.between_rounds()?.capture(run)?)),
                Request::CaptureRound { run, at } => Reply::CaptureRound(Box::new(self.between_rounds()?.capture_round(run, at)?)),
                Request::Fetch { run, at, from } => Reply::Part { bytes: self.between_rounds()?.part(run, at, from)? },
                Request::Collect { run } => self.collect(run).await?,
                Request::Close { run } => {
                    self.close(run).await?;
                    Reply::Closed
                }
                Request::Abort { why } => return Err(ControlError::Peer(why)),
                Request::Bye => return Ok(()),
                Request::Hello { .. } => return Err(ControlError::Unexpected { got: "Hello".to_owned(), expected: "a request" }),
            };
            peer.send(&reply, HELLO_DEADLINE).await?;
        }
    }

    async fn open(&mut self, run: u32, params: Params, cpu: Option<u32>, client: PeerInfo) -> Result<Reply, ControlError> {
        if self.runs.contains_key(&run) {
            return Err(ControlError::Request(format!("run {run} is open already")));
        }
        let bytes = self.limits.admit(&self.usage, &params).map_err(ControlError::Request)?;
        let (device, answers) = (self.device.clone(), params.op.server_answers());
        let made = tokio::task::spawn_blocking(move || {
            let mut endpoint = Endpoint::create(&device, &params, Side::Server)?;
            let local = endpoint.local();
            endpoint.connect(&client)?;
            let facts = EndpointFacts::of(&endpoint, &device, &client, cpu);
            let worker = Worker::spawn(endpoint, WorkerConfig { cpu, priority: None })?;
            Ok::<_, RunnerError>((worker, local, facts))
        });
        let (worker, local, facts) = joined(made.await)?.map_err(|error| ControlError::Request(chain(&error)))?;
        let tid = worker.tid();
        self.recorder.open(run, facts, tid)?;
        self.usage.add(bytes);
        self.runs.insert(run, ServedRun { worker, bytes, answers });
        Ok(Reply::Opened { server: local, tid })
    }

    /// The recorder, which is neither read nor changed while a round runs.
    fn between_rounds(&mut self) -> Result<&mut ServerRecorder<'a>, ControlError> {
        match &self.round {
            None => Ok(&mut self.recorder),
            Some(round) => Err(ControlError::Request(format!("round {} of run {} was not collected yet", round.index, round.run))),
        }
    }

    fn start_round(&mut self, run: u32, index: u32, samples: u64, keep: Retention) -> Result<Reply, ControlError> {
        if self.round.is_some() {
            return Err(ControlError::Request("the last round was not collected yet".to_owned()));
        }
        let served = self.runs.get(&run).ok_or_else(|| not_open(run))?;
        let abort = Arc::new(AtomicBool::new(false));
        let record = served.answers && samples <= RECORDED_SAMPLES_MAX;
        let spec = RoundSpec { index, samples, record, max_time: Duration::MAX, no_progress: NO_PROGRESS, abort: Arc::clone(&abort) };
        let result = tokio::spawn(served.worker.round(spec).done());
        self.round = Some(PendingRound { run, index, keep, abort, result });
        Ok(Reply::RoundStarted)
    }

    async fn collect(&mut self, run: u32) -> Result<Reply, ControlError> {
        match self.round.take() {
            Some(round) if round.run == run => {
                // The client is done, perhaps before its count: nothing more will come.
                round.abort.store(true, Ordering::Relaxed);
                let result = joined(round.result.await)?.map_err(|failure| ControlError::Request(chain(&failure.error)))?;
                let reply = Reply::RoundDone { stats: result.stats, residency: residency(&result.samples) };
                self.recorder.round(run, round.index, round.keep, result.samples, result.stats)?;
                Ok(reply)
            }
            _ => Err(ControlError::Request(format!("run {run} has no round to collect"))),
        }
    }

    async fn close(&mut self, run: u32) -> Result<(), ControlError> {
        let served = self.runs.remove(&run).ok_or_else(|| not_open(run))?;
        self.usage.remove(served.bytes);
        self.recorder.close(run);
        stop(served).await
    }

    /// Ends whatever still runs: a client that went away leaves nothing behind.
    async fn close_all(&mut self) {
        if let Some(round) = self.round.take() {
            round.abort.store(true, Ordering::Relaxed);
        }
        for (_, served) in std::mem::take(&mut self.runs) {
            let _ = stop(served).await;
        }
    }
}

/// How long this side held the messages of a round: from `done_ns` (received) to `post_begin_ns` (about to answer).
fn residency(samples: &[Sample]) -> Option<Spread> {
    let mut held_ns: Vec<u64> = samples.iter().filter_map(|sample| sample.post_begin_ns.checked_sub(sample.done_ns)).collect();
    Spread::of(&mut held_ns)
}

/// Waits for the running round to fail; for ever when there is none or when it ends well (its result is kept for `Collect`).
async fn failure_of(round: &mut Option<PendingRound>) -> ControlError {
    let Some(pending) = round else { return std::future::pending().await };
    let result = (&mut pending.result).await;
    match result {
        Ok(Err(failure)) => ControlError::Request(chain(&failure.error)),
        Err(error) => ControlError::Io(std::io::Error::other(error)),
        Ok(Ok(done)) => {
            pending.result = tokio::spawn(async move { Ok(done) });
            std::future::pending().await
        }
    }
}

async fn stop(served: ServedRun) -> Result<(), ControlError> {
    joined(tokio::task::spawn_blocking(move || drop(served.worker.stop())).await)
}

fn not_open(run: u32) -> ControlError {
    ControlError::Request(format!("run {run} is not open"))
}

fn joined<T>(result: Result<T, tokio::task::JoinError>) -> Result<T, ControlError> {
    result.map_err(|error| ControlError::Io(std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residency_is_from_the_receive_to_the_post_of_the_answer() {
        let answered = |done_ns, post_begin_ns| Sample { done_ns, post_begin_ns, post_end_ns: post_begin_ns + 900, ..Sample::default() };
        let it = residency(&[answered(100, 150), answered(1000, 1020)]).expect("two messages");
        assert_eq!((it.n, it.min_ns, it.max_ns, it.p50_ns), (2, 20.0, 50.0, None));
        assert_eq!(residency(&[]), None);
    }
}
