//! The client's way through a session: agree, open the runs of an operation, warm up, interleave the rounds, record, close.
use super::bypass;
use super::combinations::{combinations, params, possible_on};
use super::costs::{self, CostRun};
use super::peer::Peer;
use super::placement::{self, Cpus};
use super::progress::Progress;
use super::recording::Recording;
use super::schedule::{self, Rounds};
use super::side::{Fetch, Wish};
use super::{Options, SessionError, facts};
use crate::probes::{Guardian, Harvest, Level, Wanted};
use crate::runner::{
    Endpoint, Mode, OpKind, Params, Role, RoundFailure, RoundOutcome, RoundResult, RoundSpec, RoundStats, Warmup, WarmupStep, Worker,
    WorkerConfig,
};
use crate::system::device::kernel_driver;
use crate::system::stat::{machine_busy_ns, machine_steal_ns};
use crate::system::threads;
use crate::verbs::{Device, GidPair, choose_pair, gid_table};
use analysis::capture::Sample;
use analysis::capture::manifest::{KernelThread, Outcome, Round, ServerSide, SyscallRound};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// No completion for so long within a round: the round failed.
const NO_PROGRESS: Duration = Duration::from_secs(5);
/// A round ends with the operation that ends later than this, however many samples are missing; twice what rounds are planned for.
const ROUND_TIME_MAX: Duration = Duration::from_secs(4);
/// Samples of one warm-up block.
const WARM_UP_SAMPLES: u64 = 200;
/// Runs that are short of samples get up to so many times the planned rounds on top.
const MORE_ROUNDS: u32 = 4;
/// Samples of the warm-up after the probes came or went.
const SETTLE_SAMPLES: u64 = 20;
/// After a failure on this side the peer gets so long to tell its part of the story.
const PEER_STORY: Duration = Duration::from_millis(500);

/// Runs all operations of a session.
///
/// # Errors
/// What ended it early. The captures are closed and valid all the same.
pub async fn run(options: Options, probes: Guardian) -> Result<(), SessionError> {
    let mut progress = Progress::new(options.quiet, options.progress_json.as_deref())
        .map_err(|source| SessionError::System { what: opening(options.progress_json.as_deref()), source })?;
    let asked = combinations(&options, &mut progress)?;
    let device = facts::open_device(options.device.as_deref(), options.port)?;
    let combinations = possible_on(&device, asked, &mut progress)?;
    let mut peer = Peer::reach(&options.target, device.name(), options.port, options.connect_timeout).await?;
    let answers = combinations.iter().any(|(op, _)| op.server_answers());
    let outcome = match begin(options, device, probes, answers, &mut peer, &mut progress).await {
        Ok(mut session) => session.all(&combinations, &mut peer, &mut progress).await,
        Err(error) => Err(error),
    };
    peer.leave(outcome.as_ref().err()).await;
    outcome
}

fn opening(progress: Option<&Path>) -> String {
    progress.map_or_else(|| "reporting progress".to_owned(), |path| format!("opening {} for --progress-json", path.display()))
}

/// Sets the session up. Both sides load their probes at the same time, where both have a kernel of their own.
async fn begin(
    options: Options,
    device: Device,
    probes: Guardian,
    answers: bool,
    peer: &mut Peer,
    progress: &mut Progress,
) -> Result<Session, SessionError> {
    let mut wish = Wish { wanted: options.peer_capture && answers, ..Wish::default() };
    let same_kernel = crate::system::host::host().boot_id == peer.facts.boot_id;
    let ask = wish.wanted && options.level != Level::None && !same_kernel;
    if ask {
        peer.observe(options.level).await?;
    }
    let mut session = Session::new(options, device, probes, peer, progress)?;
    if ask {
        let (why_not, summary) = peer.observing().await?;
        progress.say("server's probes", &summary);
        wish.probes = why_not.is_none() && session.can_trace()?;
        wish.note = match why_not {
            Some(why) => Some(format!("no probes on the server: {why}; its kernel stages are absent")),
            None if !wish.probes => Some("the server attached no probes, since the client has none and made no traced round".to_owned()),
            None => None,
        };
    } else if wish.wanted && same_kernel {
        wish.note = Some("the server shares the client's kernel and attached no second set of probes".to_owned());
    }
    session.side = wish;
    Ok(session)
}

/// One run while it is open.
struct OpenRun {
    index: u32,
    op: OpKind,
    mode: Mode,
    qpn: u32,
    worker: Worker,
    recording: Recording,
    sample: Duration,
}

impl OpenRun {
    fn name(&self) -> String {
        format!("{} {}", self.op, self.mode)
    }
}

struct Session {
    options: Options,
    device: Device,
    gids: GidPair,
    cpus: Cpus,
    observer: Guardian,
    /// Kernel threads in the path whose scheduling is recorded.
    threads: Vec<KernelThread>,
    side: Wish,
    abort: Arc<AtomicBool>,
    interrupted: Arc<Notify>,
    stopped: Arc<AtomicBool>,
    next_run: u32,
}

impl Session {
    fn new(options: Options, device: Device, observer: Guardian, peer: &Peer, progress: &mut Progress) -> Result<Session, SessionError> {
        let same_kernel = crate::system::host::host().boot_id == peer.facts.boot_id;
        let gids =
            choose_pair(&gid_table(&device, options.port)?, &peer.facts.gids, same_kernel, options.gid_index, options.server_gid_index)?;
        progress.say("agree", &format!("GID {} here and {} there: {}", gids.local.index, gids.remote.index, gids.reason));
        let cpus = placement::choose(&options, &peer.facts, same_kernel)?;
        progress.say("agree", &cpus.to_string());
        observer.load(Wanted {
            level: options.level,
            arrivals: options.arrivals(),
            device_driver: kernel_driver(device.name()),
            ring_bytes: options.ring_bytes,
        });
        progress.say("probes", &observer.ask(|it| it.summary())?);
        let pinned = [Some(cpus.client), same_kernel.then_some(cpus.server)];
        let pinned: Vec<Option<u32>> = pinned.into_iter().flatten().collect();
        let threads = threads::in_path(device.name(), &pinned);
        let threads = observer.ask(move |it| it.track_kernel_threads(threads))??;
        let (interrupted, stopped) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (notify, flag) = (Arc::clone(&interrupted), Arc::clone(&stopped));
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                flag.store(true, Ordering::Relaxed);
                notify.notify_one();
            }
        });
        let abort = Arc::new(AtomicBool::new(false));
        Ok(Session { options, device, gids, cpus, observer, threads, side: Wish::default(), abort, interrupted, stopped, next_run: 0 })
    }

    async fn all(&mut self, combinations: &[(OpKind, Vec<Mode>)], peer: &mut Peer, progress: &mut Progress) -> Result<(), SessionError> {
        let total = combinations.len() as u64;
        for (done, (op, modes)) in combinations.iter().enumerate() {
            progress.step("operation", &op.to_string(), done as u64 + 1, total);
            let mut runs = Vec::new();
            let outcome = self.operation(*op, modes, &mut runs, peer, progress).await;
            self.close(runs, peer, &outcome, progress).await;
            outcome?;
        }
        progress.say("done", &format!("{} runs recorded", self.next_run));
        Ok(())
    }

    async fn operation(
        &mut self,
        op: OpKind,
        modes: &[Mode],
        runs: &mut Vec<OpenRun>,
        peer: &mut Peer,
        progress: &mut Progress,
    ) -> Result<(), SessionError> {
        for &mode in modes {
            let run = self.open(op, mode, peer).await?;
            runs.push(run);
        }
        for run in runs.iter_mut() {
            progress.say("warm-up", &run.name());
            self.warm_up(run, peer).await?;
            self.costs(run, peer).await?;
            self.syscalls(run, peer).await?;
        }
        let slowest = runs.iter().map(|run| run.sample).max().unwrap_or_default();
        let rounds = schedule::spread(self.options.samples, slowest);
        self.rounds(op, rounds, runs, peer, progress).await
    }

    /// The rounds as planned, and some more for runs whose rounds were cut before their count, as happens on a busy machine.
    async fn rounds(
        &mut self,
        op: OpKind,
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

    fn can_trace(&self) -> Result<bool, SessionError> {
        Ok(self.observer.ask(|it| it.can_trace())?)
    }

    /// Probes on or off, on both sides where the server's follow. Nothing goes on before both have done it.
    async fn set_probes(&mut self, traced: bool, op: OpKind, peer: &mut Peer) -> Result<bool, SessionError> {
        let both = self.side.follows(op);
        if both {
            peer.set_probes(traced).await?;
        }
        let here = self.observer.ask(move |it| it.set(traced))??;
        let there = if both { peer.probes_set().await? } else { false };
        Ok(here || there)
    }

    async fn open(&mut self, op: OpKind, mode: Mode, peer: &mut Peer) -> Result<OpenRun, SessionError> {
        let index = self.next_run;
        let params = Params { gid_index: self.gids.local.index, ..params(&self.options, op, mode) };
        let mut endpoint = Endpoint::create(&self.device, &params, Role::Client)?;
        let theirs = Params { gid_index: self.gids.remote.index, comp_vector: 0, port: peer.facts.port, ..params.clone() };
        let remote = peer.open(index, theirs, self.cpus.server, endpoint.local()).await?;
        endpoint.connect(&remote)?;
        let mut manifest = facts::manifest(&self.options, &self.device, &self.gids, &endpoint, index, peer);
        let (cq_handle, qpn) = (endpoint.cq_handle(), endpoint.qpn());
        let worker = Worker::spawn(endpoint, WorkerConfig { cpu: self.cpus.client, priority: None })?;
        let (tid, polls) = (worker.tid(), mode == Mode::Poll);
        self.observer.ask(move |it| it.track(std::process::id(), tid, qpn, polls))??;
        let identity = facts::Identity { tid: worker.tid(), cq_handle, qpn, peer_qpn: remote.qpn };
        manifest.placement = facts::placement(&self.device, &self.options, &self.cpus, identity);
        manifest.plan = self.observer.ask(|it| it.plan())?;
        manifest.kernel_threads = self.threads.clone();
        manifest.clock_check = self.observer.ask(|it| it.clock_check())?;
        manifest.notes.extend(self.observer.ask(|it| it.note())?);
        let name = analysis::capture::run_dir_name(&facts::host_name(), index, op.name(), mode.name());
        let recording = Recording::begin(&self.options.out.join(name), manifest)?;
        self.next_run += 1;
        Ok(OpenRun { index, op, mode, qpn, worker, recording, sample: Duration::ZERO })
    }

    /// Blocks of samples until two in a row agree.
    async fn warm_up(&mut self, run: &mut OpenRun, peer: &mut Peer) -> Result<(), SessionError> {
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
    async fn costs(&mut self, run: &mut OpenRun, peer: &mut Peer) -> Result<(), SessionError> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(SessionError::Interrupted);
        }
        self.observer.ask(|it| it.set(false))??;
        let (round, latency) = (run.recording.next_round(), run.sample);
        let of = CostRun { index: run.index, round, op: run.op, mode: run.mode, latency, worker: &run.worker };
        let costs = costs::measure(of, peer, NO_PROGRESS, &self.abort, &self.interrupted).await?;
        run.recording.manifest.poll_costs = Some(costs);
        Ok(())
    }

    /// Which system calls this run's thread makes: a round of its own, and one without any operation to tell what a round itself takes.
    async fn syscalls(&mut self, run: &mut OpenRun, peer: &mut Peer) -> Result<(), SessionError> {
        let tid = run.worker.tid();
        let absent = self.observer.ask(move |it| it.count_syscalls(tid))?.err();
        let mut found = SyscallRound { absent, ..SyscallRound::default() };
        if found.absent.is_none() {
            let samples = self.options.samples.min(bypass::SYSCALL_OPERATIONS);
            let kind = RoundKind { traced: false, warmup: true };
            let done = self.round(run, samples, kind, peer).await;
            let calls = self.observer.ask(|it| it.syscalls())?;
            found.operations = done?.len() as u64;
            let frame = match self.observer.ask(move |it| it.count_syscalls(tid))? {
                Ok(()) => {
                    let spec = self.spec(run.recording.next_round(), 0);
                    let empty = run.worker.round(spec).done().await;
                    let frame = self.observer.ask(|it| it.syscalls())?;
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

    fn spec(&self, index: u32, samples: u64) -> RoundSpec {
        RoundSpec { index, samples, record: true, max_time: ROUND_TIME_MAX, no_progress: NO_PROGRESS, abort: Arc::clone(&self.abort) }
    }

    /// One round on both sides, recorded. Whatever happens, the samples that were made are kept.
    async fn round(&mut self, run: &mut OpenRun, samples: u64, kind: RoundKind, peer: &mut Peer) -> Result<Vec<Sample>, SessionError> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(SessionError::Interrupted);
        }
        let index = run.recording.next_round();
        peer.start_round(run.index, index, samples, self.side.keep(run.op, kind.traced, kind.warmup)).await?;
        let io_before = bypass::Before::read(run.worker.tid(), peer);
        let (busy_before, steal_before) = (machine_busy_ns(), machine_steal_ns());
        let outcome = self.measured(run, index, samples, peer).await;
        let busy_ns = busy_before.zip(machine_busy_ns()).map(|(before, after)| after.saturating_sub(before));
        let steal_ns = steal_before.zip(machine_steal_ns()).map(|(before, after)| after.saturating_sub(before));
        let io = io_before.until_now(peer);
        let harvest = match kind {
            RoundKind { traced: true, warmup: false } => self.observer.ask(|it| it.harvest())??,
            RoundKind { traced: true, warmup: true } => self.observer.ask(|it| it.discard())??,
            RoundKind { traced: false, .. } => Harvest::default(),
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
        run.recording.round(round, &samples, harvest)?;
        failure.map_or(Ok(samples), Err)
    }

    /// The measured part: this side's thread runs while the control plane only listens for a failure of the peer and for Ctrl-C.
    async fn measured(&mut self, run: &OpenRun, index: u32, samples: u64, peer: &mut Peer) -> Result<RoundResult, Cut> {
        self.abort.store(false, Ordering::Relaxed);
        let round = run.worker.round(self.spec(index, samples)).done();
        tokio::pin!(round);
        let stop = tokio::select! {
            outcome = &mut round => return with_peers_story(outcome, peer).await,
            failure = peer.failure() => failure,
            () = self.interrupted.notified() => SessionError::Interrupted,
        };
        self.abort.store(true, Ordering::Relaxed);
        match round.await {
            Ok(result) => Err((result.samples, result.stats, stop)),
            Err(failure) => Err((failure.samples, failure.stats, stop)),
        }
    }

    async fn close(&mut self, runs: Vec<OpenRun>, peer: &mut Peer, outcome: &Result<(), SessionError>, progress: &mut Progress) {
        let _ = self.observer.ask(|it| it.set(false));
        let state = match outcome {
            Ok(()) => Outcome::Complete,
            Err(SessionError::Interrupted) => Outcome::Interrupted,
            Err(error @ SessionError::Unstable { .. }) => Outcome::Unstable(error.to_string()),
            Err(error) => Outcome::Failed(analysis::words::chain(error)),
        };
        let plan = self.observer.ask(|it| it.plan()).unwrap_or_default();
        for mut run in runs {
            let (tid, qpn) = (run.worker.tid(), run.qpn);
            let _ = self.observer.ask(move |it| it.untrack(tid, qpn));
            run.recording.refresh_plan(&plan);
            run.recording.manifest.server_side = match outcome {
                Ok(()) => {
                    let fetch = Fetch { run: run.index, op: run.op, peer, progress, stopped: &self.stopped };
                    fetch.into(&run.recording.dir(), &run.recording.manifest, &self.side).await
                }
                Err(_) => ServerSide::Absent("the run ended early, before the server's side was fetched".to_owned()),
            };
            let (worker, index) = (run.worker, run.index);
            let _ = tokio::task::spawn_blocking(move || drop(worker.stop())).await;
            if outcome.is_ok() {
                let _ = peer.close(index).await;
            }
            if let Err(error) = run.recording.end(state.clone()) {
                let _ = writeln!(std::io::stderr(), "rdmascope: {}", analysis::words::chain(&error));
            }
        }
    }
}

/// A round that was cut off: what there was until then, and why.
type Cut = (Vec<Sample>, RoundStats, SessionError);

/// What a round is for.
#[derive(Clone, Copy)]
struct RoundKind {
    traced: bool,
    warmup: bool,
}

/// A round that failed here often failed because of the other side: waits a moment for what the peer has to say.
async fn with_peers_story(outcome: RoundOutcome, peer: &mut Peer) -> Result<RoundResult, Cut> {
    let failure = match outcome {
        Ok(result) => return Ok(result),
        Err(failure) => failure,
    };
    let RoundFailure { error, samples, stats } = *failure;
    let error = match tokio::time::timeout(PEER_STORY, peer.failure()).await {
        Ok(story) => SessionError::BothSides { here: Box::new(error), there: story.to_string() },
        Err(_) => error.into(),
    };
    Err((samples, stats, error))
}

fn median_ns(samples: &[Sample]) -> Option<u64> {
    let mut latencies: Vec<u64> = samples.iter().filter_map(Sample::latency_ns).collect();
    latencies.sort_unstable();
    latencies.get(latencies.len() / 2).copied()
}
