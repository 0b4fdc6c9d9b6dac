//! The trace while it runs: attach, collect, show, detach.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use analysis::trace::model::TraceReport;
use analysis::trace::{Join, prepare, report};
use capture::Manifest;
use capture::manifest::{Outcome, TraceFacts, UnreadCqes};
use ebpf_probes::{Body, Event, decode};

use super::calls::Calls;
use super::live::LiveView;
use super::processes::TracedProcesses;
use super::recording::Recording;
use super::targets::Selection;
use super::{Options, TraceError, existing_cqs, manifest};
use rdmascope_core::machine::{Root, interrupts};
use rdmascope_core::probes::{Config, Plan, Probes, monotonic_ns};

/// Time between two drains of the ring.
const DRAIN_EVERY: Duration = Duration::from_millis(20);
/// Time between two searches for new processes.
const SEARCH_EVERY: Duration = Duration::from_millis(200);
/// Records younger than this wait: a CPU may still be about to write an older one.
const SETTLE_NS: u64 = 20_000_000;

/// Traces until the end and returns the finished numbers.
pub(super) fn watch(options: &Options, plan: &Plan, stop: &AtomicBool, out: &mut impl Write) -> Result<TraceReport, TraceError> {
    let config = Config { trace_all_qps: true, by_process: true, auto_track: options.targets.auto_track(), ..Config::default() };
    let mut probes = Probes::load(plan, &config)?;
    let mut traced = TracedProcesses::begin(&options.targets, &mut probes)?;
    let device = match &options.targets.selection {
        Selection::Device(name) => name.as_str(),
        _ => "",
    };
    let mut capture_manifest = manifest::begin(&options.targets.description(), device, &probes);
    let mut recording = Recording::begin(options, &capture_manifest)?;
    let mut calls = Calls::begin(options)?;
    let before = interrupts::read(Root::live()).unwrap_or_default();
    writeln!(out, "attaching probes to {}; tracing {}; Ctrl-C ends", plan.release, options.targets.description())?;
    out.flush()?;

    probes.attach()?;
    let attached = probes.hooks()?;
    let mut join = Join::default();
    let facts = capture_manifest.trace.get_or_insert_default();
    facts.begin_ns = monotonic_ns();
    // After the attach: a switch between this reading and the attach would not be seen.
    traced.read_thread_states();
    facts.known_cqs = existing_cqs::existing_cqs(&traced.processes.iter().map(|process| process.tgid).collect::<Vec<_>>());
    facts.processes = traced.processes.clone();
    prepare(&mut join, facts);
    let begin_ns = facts.begin_ns;
    manifest::counted(&mut capture_manifest, &probes, &attached)?;
    recording.manifest(&capture_manifest)?;
    let count = attached.iter().filter(|hook| hook.attached).count();
    writeln!(out, "{count} probes are attached; {} processes are there", traced.processes.len())?;
    out.flush()?;
    traced.start(&mut probes)?;

    let begin = Instant::now();
    let mut live = LiveView::new(options, &before);
    let mut records = PendingRecords::default();
    let mut searched = Instant::now();
    let mut all_ended = false;
    let mut why_not = None;
    while !all_ended && !stop.load(Ordering::Relaxed) && options.duration.is_none_or(|duration| begin.elapsed() < duration) {
        std::thread::sleep(DRAIN_EVERY);
        all_ended = traced.update();
        if searched.elapsed() >= SEARCH_EVERY {
            searched = Instant::now();
            traced.find_new(&mut probes)?;
        }
        for creator in records.collect(&mut probes, &mut recording) {
            traced.created_cq(creator, &mut probes)?;
        }
        recording.flush()?;
        records.settle(monotonic_ns().saturating_sub(SETTLE_NS), |event| {
            join.event(event);
            calls.event(event, &join, begin_ns);
        });
        calls.print(out)?;
        if live.is_due() {
            let unread = unread_cqes(&mut probes, &join, &mut why_not);
            live.draw(&join, &traced.processes, &unread, probes.losses()?.lost(), out)?;
            join.clear_interval();
        }
    }
    // Before the probes are detached, which takes a moment.
    let unread = unread_cqes(&mut probes, &join, &mut why_not);
    let end_ns = monotonic_ns();
    probes.detach();
    records.collect(&mut probes, &mut recording);
    // Probes go one after the other: what came meanwhile would be incomplete.
    records.settle(end_ns, |event| {
        join.event(event);
        calls.event(event, &join, begin_ns);
    });
    calls.end(out)?;
    live.end(out)?;

    let now = interrupts::read(Root::live()).unwrap_or_default();
    let facts = TraceFacts {
        end_ns,
        processes: traced.processes.clone(),
        unread,
        interrupts: manifest::interrupts_since(&before, &now),
        unknown_records: records.unknown,
        ..capture_manifest.trace.take().unwrap_or_default()
    };
    capture_manifest.trace = Some(facts);
    manifest::counted(&mut capture_manifest, &probes, &attached)?;
    capture_manifest.notes.extend(why_not);
    capture_manifest.outcome = Outcome::Complete;
    end(recording, join, capture_manifest, out)
}

fn end(recording: Recording, join: Join, capture_manifest: Manifest, out: &mut impl Write) -> Result<TraceReport, TraceError> {
    let folder = recording.end(&capture_manifest)?;
    if let Some(folder) = &folder {
        writeln!(out, "recorded: {} (open it with `rdmascope report`)", folder.display())?;
    }
    Ok(report(join, capture_manifest, folder.map(|folder| folder.display().to_string()).unwrap_or_default()))
}

/// CQEs that are unread now, of the CQs that show them; where they cannot be had, why.
fn unread_cqes(probes: &mut Probes, join: &Join, why_not: &mut Option<String>) -> Vec<UnreadCqes> {
    let live = join.cqs().iter().filter(|cq| cq.destroyed_ns.is_none() && cq.cq != 0 && cq.tells_unread());
    let mut unread = Vec::new();
    for (cq, restrack_id) in live.filter_map(|cq| Some((cq, cq.restrack_id?))) {
        match probes.unread_cqes(cq.cq, restrack_id, cq.tgid) {
            Ok(cqes) => unread.extend(cqes.map(|cqes| UnreadCqes { cq: cq.cq, cqes })),
            Err(error) => drop(why_not.get_or_insert_with(|| format!("unread CQEs are not known: {error}"))),
        }
    }
    unread
}

/// Records that wait until no older one can come.
#[derive(Default)]
struct PendingRecords {
    waiting: Vec<Event>,
    unknown: u64,
}

impl PendingRecords {
    /// Takes what is in the ring; returns the processes that created CQs.
    fn collect(&mut self, probes: &mut Probes, recording: &mut Recording) -> Vec<u32> {
        let mut creators = Vec::new();
        probes.drain(|record| {
            recording.take(record);
            match decode(record) {
                Ok(event) => {
                    if matches!(event.body, Body::CqCreate(_)) {
                        creators.push(event.header.tgid);
                    }
                    self.waiting.push(event);
                }
                Err(_) => self.unknown += 1,
            }
        });
        creators
    }

    /// Hands records older than `until_ns` on, in the order of their time. The ring holds them in the order in which room was
    /// taken, which may differ by moments; records of one CPU at one time keep their order.
    fn settle(&mut self, until_ns: u64, mut sink: impl FnMut(&Event)) {
        self.waiting.sort_by_key(|event| event.header.ts_ns);
        let ripe = self.waiting.partition_point(|event| event.header.ts_ns < until_ns);
        for event in self.waiting.drain(..ripe) {
            sink(&event);
        }
    }
}
