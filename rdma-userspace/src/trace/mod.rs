//! `trace --pid`: any verbs program in event mode, seen from outside. Per CQ: how long from the completion handler until the
//! waiting thread runs.
//!
//! Nothing of the program is changed or slowed but by the probes themselves. What is seen: kernel events. What is not: polls,
//! and completions that the program finds by polling (on hardware they leave no trace in the kernel).

mod join;
mod table;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ebpf_probes::{Event, Kind, decode};

use crate::probes::{Config, HookState, Level, Losses, Plan, ProbeError, Probes, monotonic_ns, threads_of};
pub use join::{CqTrace, Join};

/// What a trace needs of level std: the fewer probes, the less the program is slowed.
const KINDS: &[Kind] = &[Kind::CompHandler, Kind::SchedWaking, Kind::SchedWakeup, Kind::SchedSwitch, Kind::CqPost];
/// Time between two looks at the ring.
const DRAIN_EVERY: Duration = Duration::from_millis(20);
/// Records younger than this wait: a CPU may still be about to write an older one.
const SETTLE_NS: u64 = 20_000_000;

/// Why tracing failed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Probes or the process.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The report could not be written.
    #[error("cannot write the trace: {0}")]
    Output(#[from] std::io::Error),
    /// Completion events cannot be seen on this kernel.
    #[error("nothing to trace: the kernel's completion handler cannot be watched here ({0}); see `rdmascope doctor`")]
    NoHandler(String),
}

impl TraceError {
    /// The exit code that it ends with.
    pub fn exit_code(&self) -> u8 {
        use crate::cli::exit;
        match self {
            TraceError::NoHandler(_) => exit::INFRASTRUCTURE,
            TraceError::Probe(_) | TraceError::Output(_) => exit::FAILED,
        }
    }
}

/// What was seen.
#[derive(Debug)]
pub struct Trace {
    /// The CQs of the process that had events.
    pub cqs: Vec<CqTrace>,
    /// Records attempted, delivered, lost.
    pub losses: Losses,
    /// The hooks and their hits.
    pub hooks: Vec<HookState>,
    /// Time traced.
    pub duration: Duration,
    /// Records that this version does not know.
    pub unknown_records: u64,
    /// True when the process ended before the time was over.
    pub process_ended: bool,
}

/// Traces process `pid` for `duration` (or until `stop`, or until it ends), then writes the table to `out`.
///
/// # Errors
/// [`TraceError::Probe`] when the process does not exist or no probe can be had, [`TraceError::NoHandler`], [`TraceError::Output`].
pub fn run(pid: u32, duration: Option<Duration>, stop: &AtomicBool, out: &mut impl Write) -> Result<Trace, TraceError> {
    let plan = Plan::for_kernel(Path::new("/"), Level::Std).map_err(ProbeError::from)?.only(KINDS);
    if let Some(handler) = plan.hooks.iter().find(|hook| hook.gives.contains(&Kind::CompHandler) && hook.symbol.is_none()) {
        return Err(TraceError::NoHandler(handler.reason.clone()));
    }
    let mut probes = Probes::load(&plan, &Config { trace_all_qps: true, ..Config::default() })?;
    let threads = probes.track_process(pid)?;
    let mut join = Join::new(pid, &threads);
    probes.attach()?;
    for thread in threads {
        // After the attach: a switch between this look and the attach would not be seen.
        join.set_running(thread, is_running(pid, thread), monotonic_ns());
    }
    writeln!(out, "tracing process {pid} ({}) on {}; Ctrl-C ends", name_of(pid), plan.release)?;
    out.flush()?;

    let begin = Instant::now();
    let mut records = Records::default();
    let mut process_ended = false;
    while !process_ended && !stop.load(Ordering::Relaxed) && duration.is_none_or(|duration| begin.elapsed() < duration) {
        std::thread::sleep(DRAIN_EVERY);
        match threads_of(pid) {
            Ok(now) => follow_new(&mut probes, &mut join, &now)?,
            Err(_) => process_ended = true,
        }
        records.collect(&mut probes);
        records.settle(monotonic_ns().saturating_sub(SETTLE_NS), &mut join);
    }
    let (traced, end_ns) = (begin.elapsed(), monotonic_ns());
    probes.detach();
    records.collect(&mut probes);
    // Probes go one after the other: what came meanwhile would be half a story.
    records.settle(end_ns, &mut join);

    let (losses, hooks) = (probes.losses()?, probes.hooks()?);
    let cqs = join.finish();
    let trace = Trace { cqs, losses, hooks, duration: traced, unknown_records: records.unknown, process_ended };
    table::write(&trace, pid, out)?;
    Ok(trace)
}

/// Records that wait for their turn.
#[derive(Default)]
struct Records {
    waiting: Vec<Event>,
    unknown: u64,
}

impl Records {
    fn collect(&mut self, probes: &mut Probes) {
        probes.drain(|record| match decode(record) {
            Ok(event) => self.waiting.push(event),
            Err(_) => self.unknown += 1,
        });
    }

    /// Hands records older than `until_ns` on, in the order of their time. The ring holds them in the order in which room was
    /// taken, which may differ by moments; records of one CPU at one time keep their order.
    fn settle(&mut self, until_ns: u64, join: &mut Join) {
        self.waiting.sort_by_key(|event| event.header.ts_ns);
        let ripe = self.waiting.partition_point(|event| event.header.ts_ns < until_ns);
        for event in self.waiting.drain(..ripe) {
            join.event(&event);
        }
    }
}

fn follow_new(probes: &mut Probes, join: &mut Join, threads: &[u32]) -> Result<(), ProbeError> {
    for thread in threads {
        if join.add_thread(*thread) {
            probes.track_pid(*thread)?;
        }
    }
    Ok(())
}

/// Whether the kernel shows the thread as running or runnable; `None` when it is gone.
fn is_running(pid: u32, thread: u32) -> Option<bool> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    Some(after_name.trim_start().starts_with('R'))
}

fn name_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).map_or_else(|_| "gone".to_owned(), |name| name.trim().to_owned())
}
