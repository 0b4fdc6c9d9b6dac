//! What takes the CPU from a poller is named: a busy thread that shares the poller's CPU for a part of the run, and next to nothing
//! where the poller is left alone.
//!
//! Ignored by default: `cargo xtask test` runs them inside the guest, where `rdmascope` is on the PATH and `rxe0` is there.

use crate::support::program::{Program, rdmascope, wait_for};
use analysis::explain::model::Cause;
use analysis::explain::{SampleVerdict, verdicts};
use analysis::report::model::RunReport;
use analysis::report::of_folder as report;
use analysis::stages::StageId;
use capture::manifest::Outcome;
use capture::{Capture, Sample, find};
use rdmascope_core::probes::monotonic_ns;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(300);
/// Name of the busy thread.
const BUSY: &str = "busyhog";
/// The poller's CPU, and that of the busy thread.
const CPU: &str = "1";
/// The other one, which the server takes.
const SERVER_CPU: &str = "0";
/// The busy thread runs for so long, and rests.
const BURST: Duration = Duration::from_millis(60);
const REST: Duration = Duration::from_millis(140);
/// So long the busy thread is beside the poller: a hundred and fifty bursts.
const BUSY_FOR: Duration = Duration::from_secs(30);
/// A sample in which the busy thread ran for so long, by its own log, was hit: the scheduler gives it slices of milliseconds.
const HIT_NS: u64 = 1_000_000;
/// A longer time between two looks at the clock: the busy thread was off its CPU.
const GAP_NS: u64 = 100_000;

/// A polled run of `send`, server on the other CPU.
fn poller(out: &Path, samples: &str) -> Program {
    let out = out.to_str().expect("a plain path");
    let flags = ["run", "--loopback", "--device", "rxe0", "--op", "send", "--mode", "poll", "--cpu", CPU, "-n", samples];
    rdmascope(&[&flags[..], &["--no-report", "--no-seal", "--quiet", "--out", out]].concat())
}

fn capture_of(out: &Path) -> PathBuf {
    find(out).expect("a capture").remove(0)
}

/// Samples that a reader of the growing capture sees.
fn recorded(out: &Path) -> usize {
    let Some(folder) = find(out).ok().and_then(|found| found.into_iter().next()) else { return 0 };
    let samples: Option<Vec<Sample>> =
        Capture::open(&folder).ok().and_then(|mut capture| capture.samples().ok()?.collect::<Result<_, _>>().ok());
    samples.map_or(0, |samples| samples.len())
}

fn end(program: &mut Program) {
    let end = program.end_within(PATIENCE);
    assert_eq!(end.code, Some(0), "{}", end.text);
}

fn only_run(out: &Path) -> RunReport {
    let report = report(out).expect("the capture opens");
    assert_eq!(report.runs.len(), 1);
    report.runs.into_iter().next().expect("one run")
}

/// The overlay of every sample fits into it, and says what it rests on.
fn assert_sums(run: &RunReport, samples: &[SampleVerdict]) {
    let breakdown = run.breakdown.as_ref().unwrap_or_else(|| panic!("no stages: {:?}", run.warnings));
    assert!(breakdown.interference.not_seen.is_empty(), "not recorded here: {:?}", breakdown.interference.not_seen);
    assert!(samples.len() as u64 == breakdown.samples && samples.len() > 1000, "{} samples", samples.len());
    for sample in samples {
        assert!(sample.taken_ns <= sample.total_ns, "{sample:?}");
    }
}

/// Whether this kernel's rxe completes through a workqueue: its wait for a worker is a stage of the samples.
fn has_worker(run: &RunReport) -> bool {
    run.breakdown
        .iter()
        .flat_map(|it| &it.stages)
        .any(|stage| stage.n > 0 && matches!(stage.stage, StageId::RequesterWorkqueue | StageId::TaskWorkqueue))
}

/// Kernel id of the calling thread.
fn thread_id() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").expect("procfs");
    link.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok()).expect("a thread id")
}

/// Pins a thread to a CPU.
fn run_on(cpu: &str, tid: u32) {
    let pinned = Command::new("taskset").args(["-pc", cpu, &tid.to_string()]).output().expect("taskset is there");
    assert!(pinned.status.success(), "{}", String::from_utf8_lossy(&pinned.stderr));
}

/// A busy thread with a name, on the poller's CPU: runs in bursts until it is told to stop, and logs when it had the CPU.
fn busy_thread(stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<(u32, Vec<(u64, u64)>)> {
    let stop = Arc::clone(stop);
    let busy = move || {
        let tid = thread_id();
        run_on(CPU, tid);
        let mut slices = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let begin = Instant::now();
            let (mut since_ns, mut last_ns) = (monotonic_ns(), monotonic_ns());
            while begin.elapsed() < BURST {
                let now_ns = monotonic_ns();
                if now_ns - last_ns > GAP_NS {
                    slices.push((since_ns, last_ns));
                    since_ns = now_ns;
                }
                last_ns = now_ns;
            }
            slices.push((since_ns, last_ns));
            std::thread::sleep(REST);
        }
        (tid, slices)
    };
    std::thread::Builder::new().name(BUSY.to_owned()).spawn(busy).expect("a thread")
}

#[test]
#[ignore = "runs in the VM"]
fn a_busy_thread_on_the_pollers_cpu_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let mut client = poller(&out, "60000");
    assert!(wait_for(PATIENCE, || recorded(&out) > 0), "no sample was recorded: {}", client.text());
    let stop = Arc::new(AtomicBool::new(false));
    let busy = busy_thread(&stop);
    // Bursts enough; where a sample takes milliseconds, all samples would take many minutes.
    let begin = Instant::now();
    while client.is_running() && begin.elapsed() < BUSY_FOR {
        std::thread::sleep(REST);
    }
    if client.is_running() {
        client.signal("INT");
    }
    let ended = client.end_within(PATIENCE);
    stop.store(true, Ordering::Relaxed);
    let (tid, slices) = busy.join().expect("the busy thread ends");

    let samples = verdicts(&capture_of(&out)).expect("the capture opens");
    let run = only_run(&out);
    assert!(matches!(run.manifest.outcome, Outcome::Complete | Outcome::Interrupted), "{:?}: {}", run.manifest.outcome, ended.text);
    assert_sums(&run, &samples);
    let ran_in = |sample: &SampleVerdict| {
        let overlap = |(begin, end): &(u64, u64)| sample.end_ns.min(*end).saturating_sub(sample.begin_ns.max(*begin));
        slices.iter().map(overlap).sum::<u64>()
    };
    let hit: Vec<&SampleVerdict> = samples.iter().filter(|it| !it.is_lost() && ran_in(it) >= HIT_NS).collect();
    let names_thread = |it: &SampleVerdict| it.culprit.as_ref().is_some_and(|who| who.kind == Cause::Preempted && who.pid == Some(tid));
    // Where rxe works in a workqueue, the busy thread may keep a worker of this side or of the peer from the CPU instead of the poller:
    // then it is the worker, or the peer, that the sample waited for.
    let has_worker = has_worker(&run);
    let for_worker = |stage: StageId| matches!(stage, StageId::RequesterWorkqueue | StageId::TaskWorkqueue | StageId::WirePeer);
    let waits_for_worker = |it: &SampleVerdict| has_worker && it.stage.is_some_and(for_worker);
    let is_named = |it: &SampleVerdict| names_thread(it) || waits_for_worker(it);
    let named = hit.iter().filter(|it| is_named(it)).count();
    let by_thread = hit.iter().filter(|it| names_thread(it)).count();
    println!("{by_thread} of {} name the thread itself", hit.len());
    println!("{} slices, {} of {} samples hit, {named} name thread {tid}", slices.len(), hit.len(), samples.len());
    let mut others: BTreeMap<String, usize> = BTreeMap::new();
    for it in hit.iter().filter(|it| !is_named(it)) {
        let who = it.culprit.as_ref().map_or_else(|| "nobody".to_owned(), |who| format!("{} {}", who.kind, who.name));
        *others.entry(format!("{}: {who}", it.stage.map_or("no stage", StageId::name))).or_default() += 1;
    }
    println!("  the others: {others:?}");
    for it in hit.iter().take(5) {
        println!("  {} ns, {} of it busy; {:?} grew by {} ns, {:?}", it.total_ns, ran_in(it), it.stage, it.grown_ns, it.culprit);
    }
    assert!(hit.len() >= 10, "the busy thread hit {} samples only", hit.len());
    assert!(named * 100 >= hit.len() * 95, "{named} of {} hit samples name it", hit.len());
    assert!(by_thread >= 10, "{by_thread} of {} hit samples name thread {tid} itself", hit.len());
    assert!(hit.iter().filter_map(|it| it.culprit.as_ref()).any(|who| who.name == BUSY), "its name is not known");

    let breakdown = run.breakdown.expect("probes ran");
    let source = breakdown.interference.sources.iter().find(|source| source.pid == Some(tid)).expect("a source of its own");
    println!("  {source:?}");
    assert!(source.name.contains(BUSY) && source.samples as usize >= by_thread, "{source:?}");
    // The slowest of all may have waited for a worker; those that lost their own CPU say to whom.
    let mut slow = breakdown.slow.iter().filter(|it| it.overlay.iter().any(|item| item.pid == Some(tid)) && it.verdict.contains(BUSY));
    let explained = slow.find(|it| it.explained_share.is_some_and(|share| share > 0.5));
    println!("  {}", explained.unwrap_or_else(|| panic!("no slow sample is explained by it: {:?}", breakdown.slow)).verdict);
}

#[test]
#[ignore = "runs in the VM"]
fn a_poller_that_is_left_alone_loses_ticks_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let mut client = poller(&out, "10000");
    // The thread that waits here would be one that comes between.
    run_on(SERVER_CPU, thread_id());
    end(&mut client);
    let samples = verdicts(&capture_of(&out)).expect("the capture opens");
    let run = only_run(&out);
    assert_sums(&run, &samples);
    let interference = &run.breakdown.as_ref().expect("probes ran").interference;
    for source in &interference.sources {
        println!(
            "  {:<40} {:>6} times in {:>6} samples, {:>10} ns in all, at most {} ns",
            source.name, source.times, source.samples, source.total_ns, source.max_ns
        );
    }
    // Kernels whose rxe has a workqueue run its worker on this CPU, in the way of the poller that waits for it: seen in most samples.
    let has_worker = has_worker(&run);
    // PREEMPT_RT runs the timers, softirqs and RCU callbacks of each CPU in threads.
    let realtime = run.manifest.host.realtime;
    let is_the_kernels = |name: &str| {
        has_worker && name.contains("kworker/")
            || realtime && ["ktimers/", "ksoftirqd/", "rcuc/", "irq/"].iter().any(|it| name.contains(it))
    };
    let of = |kind: Cause| interference.sources.iter().filter(move |it| it.kind == kind && !is_the_kernels(&it.name));
    assert!(of(Cause::Tick).any(|it| it.samples > 0), "no tick in {} samples", interference.samples);
    // Kernel threads and the server's watchdog want a CPU now and then, the more often the longer a slow machine takes: what they may
    // have is a share of the time. The busy thread of the other test takes thirty times as much.
    let to_threads = [Cause::Preempted, Cause::Blocked].into_iter().flat_map(of);
    let others_ns: u64 = to_threads.map(|it| it.total_ns).sum();
    let all_ns: u64 = samples.iter().map(|it| it.total_ns).sum();
    println!("  {others_ns} of {all_ns} ns went to threads");
    assert!(others_ns * 100 <= all_ns, "{others_ns} of {all_ns} ns went to threads");
    assert!(!interference.sources.iter().any(|it| it.kind == Cause::Migrated), "a pinned thread does not migrate");
}
