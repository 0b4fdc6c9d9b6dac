//! The trace while it runs: attach, collect, show, detach.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use analysis::capture::Manifest;
use analysis::capture::manifest::{Outcome, TraceFacts, UnreadCqes};
use analysis::trace::model::TraceReport;
use analysis::trace::{Join, prepare, report};
use ebpf_probes::{Body, Event, decode};

use super::calls::Calls;
use super::live::Live;
use super::recorder::Recorder;
use super::targets::{Followed, Which};
use super::{Options, TraceError, known, manifest};
use crate::kernel::interrupts;
use crate::probes::{Config, Plan, Probes, monotonic_ns};

/// Time between two looks at the ring.
const DRAIN_EVERY: Duration = Duration::from_millis(20);
/// Time between two looks for processes that came.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Records younger than this wait: a CPU may still be about to write an older one.
const SETTLE_NS: u64 = 20_000_000;

/// Traces until the end and returns the finished numbers.
pub(super) fn watch(options: &Options, plan: &Plan, stop: &AtomicBool, out: &mut impl Write) -> Result<TraceReport, TraceError> {
    let config = Config { trace_all_qps: true, by_process: true, auto_track: options.targets.auto_track(), ..Config::default() };
    let mut probes = Probes::load(plan, &config)?;
    let mut followed = Followed::begin(&options.targets, &mut probes)?;
    let device = match &options.targets.which {
        Which::Device(name) => name.as_str(),
        _ => "",
    };
    let mut told = manifest::begin(&options.targets.words(), device, &probes);
    let mut recorder = Recorder::begin(options, &told)?;
    let mut calls = Calls::begin(options)?;
    let before = interrupts::read(Path::new("/")).unwrap_or_default();
    writeln!(out, "attaching probes to {}; tracing {}; Ctrl-C ends", plan.release, options.targets.words())?;
    out.flush()?;

    probes.attach()?;
    let attached = probes.hooks()?;
    let mut join = Join::default();
    let facts = told.trace.get_or_insert_default();
    facts.begin_ns = monotonic_ns();
    // After the attach: a switch between this look and the attach would not be seen.
    followed.look_at_threads();
    facts.known_cqs = known::known_cqs(&followed.processes.iter().map(|process| process.tgid).collect::<Vec<_>>());
    facts.processes = followed.processes.clone();
    prepare(&mut join, facts);
    let begin_ns = facts.begin_ns;
    manifest::counted(&mut told, &probes, &attached)?;
    recorder.manifest(&told)?;
    let count = attached.iter().filter(|hook| hook.attached).count();
    writeln!(out, "{count} probes are attached; {} processes are there", followed.processes.len())?;
    out.flush()?;
    followed.start(&mut probes)?;

    let begin = Instant::now();
    let mut live = Live::new(options, &before);
    let mut records = Records::default();
    let mut looked = Instant::now();
    let mut all_ended = false;
    let mut why_not = None;
    while !all_ended && !stop.load(Ordering::Relaxed) && options.duration.is_none_or(|duration| begin.elapsed() < duration) {
        std::thread::sleep(DRAIN_EVERY);
        all_ended = followed.look();
        if looked.elapsed() >= LOOK_EVERY {
            looked = Instant::now();
            followed.look_for_new(&mut probes)?;
        }
        for creator in records.collect(&mut probes, &mut recorder) {
            followed.created_cq(creator, &mut probes)?;
        }
        recorder.flush()?;
        records.settle(monotonic_ns().saturating_sub(SETTLE_NS), |event| {
            join.event(event);
            calls.event(event, &join, begin_ns);
        });
        calls.print(out)?;
        if live.is_due() {
            let unread = look_into(&mut probes, &join, &mut why_not);
            live.draw(&join, &followed.processes, &unread, probes.losses()?.lost(), out)?;
            join.clear_interval();
        }
    }
    // Looked at before the probes go, which takes a moment.
    let unread = look_into(&mut probes, &join, &mut why_not);
    let end_ns = monotonic_ns();
    probes.detach();
    records.collect(&mut probes, &mut recorder);
    // Probes go one after the other: what came meanwhile would be half a story.
    records.settle(end_ns, |event| {
        join.event(event);
        calls.event(event, &join, begin_ns);
    });
    calls.end(out)?;
    live.end(out)?;

    let now = interrupts::read(Path::new("/")).unwrap_or_default();
    let facts = TraceFacts {
        end_ns,
        processes: followed.processes.clone(),
        unread,
        interrupts: manifest::interrupts_since(&before, &now),
        unknown_records: records.unknown,
        ..told.trace.take().unwrap_or_default()
    };
    told.trace = Some(facts);
    manifest::counted(&mut told, &probes, &attached)?;
    told.notes.extend(why_not);
    told.outcome = Outcome::Complete;
    end(recorder, join, told, out)
}

fn end(recorder: Recorder, join: Join, told: Manifest, out: &mut impl Write) -> Result<TraceReport, TraceError> {
    let folder = recorder.end(&told)?;
    if let Some(folder) = &folder {
        writeln!(out, "recorded: {} (open it with `rdmascope report`)", folder.display())?;
    }
    Ok(report(join, told, folder.map(|folder| folder.display().to_string()).unwrap_or_default()))
}

/// CQEs that lie unread now, of the CQs that tell; where the look itself fails, why.
fn look_into(probes: &mut Probes, join: &Join, why_not: &mut Option<String>) -> Vec<UnreadCqes> {
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

/// Records that wait for their turn.
#[derive(Default)]
struct Records {
    waiting: Vec<Event>,
    unknown: u64,
}

impl Records {
    /// Takes what is in the ring; returns the processes that created CQs.
    fn collect(&mut self, probes: &mut Probes, recorder: &mut Recorder) -> Vec<u32> {
        let mut creators = Vec::new();
        probes.drain(|record| {
            recorder.take(record);
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
