//! What takes the CPU from a poller is named: a busy thread that shares the poller's CPU for a part of the run, and next to nothing
//! where the poller is left alone.
//!
//! Ignored by default: `cargo xtask test` runs them inside the guest, where `rdmascope` is on the PATH and `rxe0` is there.
#[path = "vm/program.rs"]
#[allow(dead_code)]
mod program;

use analysis::analyse::{SampleVerdict, report, verdicts};
use analysis::capture::{Capture, Sample, find};
use analysis::model::RunReport;
use program::{Program, rdmascope, wait_for};
use rdma_userspace::probes::monotonic_ns;
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
/// The busy thread runs for so long, and rests.
const BURST: Duration = Duration::from_millis(60);
const REST: Duration = Duration::from_millis(140);
/// A sample that grew by so much while the busy thread ran was hit: the scheduler gives it slices of milliseconds.
const HIT_NS: u64 = 1_000_000;

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

/// A busy thread with a name, on the poller's CPU: runs in bursts until it is told to stop, and logs them.
fn busy_thread(stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<(u32, Vec<(u64, u64)>)> {
    let stop = Arc::clone(stop);
    let busy = move || {
        let link = std::fs::read_link("/proc/thread-self").expect("procfs");
        let tid: u32 = link.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok()).expect("a thread id");
        let pinned = Command::new("taskset").args(["-pc", CPU, &tid.to_string()]).output().expect("taskset is there");
        assert!(pinned.status.success(), "{}", String::from_utf8_lossy(&pinned.stderr));
        let mut bursts = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let (begin_ns, begin) = (monotonic_ns(), Instant::now());
            while begin.elapsed() < BURST {
                std::hint::spin_loop();
            }
            bursts.push((begin_ns, monotonic_ns()));
            std::thread::sleep(REST);
        }
        (tid, bursts)
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
    end(&mut client);
    stop.store(true, Ordering::Relaxed);
    let (tid, bursts) = busy.join().expect("the busy thread ends");

    let samples = verdicts(&capture_of(&out)).expect("the capture opens");
    let run = only_run(&out);
    assert_sums(&run, &samples);
    let mut totals: Vec<u64> = samples.iter().map(|sample| sample.total_ns).collect();
    totals.sort_unstable();
    let median_ns = totals[totals.len() / 2];
    let disturbed = |sample: &&SampleVerdict| bursts.iter().any(|(begin, end)| sample.begin_ns < *end && sample.end_ns > *begin);
    let hit: Vec<&SampleVerdict> =
        samples.iter().filter(|it| it.total_ns > median_ns + HIT_NS && !it.is_lost()).filter(disturbed).collect();
    let named = hit.iter().filter(|it| it.culprit.as_ref().is_some_and(|who| who.kind == "preempted" && who.pid == Some(tid))).count();
    println!("{} bursts, median {median_ns} ns, {} of {} samples hit, {named} name thread {tid}", bursts.len(), hit.len(), samples.len());
    for it in hit.iter().take(5) {
        println!("  {} ns, {:?} grew by {} ns, {:?}", it.total_ns, it.stage, it.grown_ns, it.culprit);
    }
    assert!(hit.len() >= 10, "the busy thread hit {} samples only", hit.len());
    assert!(named * 100 >= hit.len() * 95, "{named} of {} hit samples name it", hit.len());
    assert!(hit.iter().filter_map(|it| it.culprit.as_ref()).any(|who| who.name == BUSY), "its name is not known");

    let breakdown = run.breakdown.expect("probes ran");
    let source = breakdown.interference.sources.iter().find(|source| source.pid == Some(tid)).expect("a source of its own");
    println!("  {source:?}");
    assert!(source.name.contains(BUSY) && source.samples as usize >= named, "{source:?}");
    let slowest = &breakdown.slow[0];
    println!("  {}", slowest.verdict);
    assert!(slowest.overlay.iter().any(|item| item.pid == Some(tid)) && slowest.verdict.contains(BUSY), "{slowest:?}");
    assert!(slowest.explained_share.is_some_and(|share| share > 0.5), "{slowest:?}");
}

#[test]
#[ignore = "runs in the VM"]
fn a_poller_that_is_left_alone_loses_ticks_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    end(&mut poller(&out, "10000"));
    let samples = verdicts(&capture_of(&out)).expect("the capture opens");
    let run = only_run(&out);
    assert_sums(&run, &samples);
    let interference = run.breakdown.expect("probes ran").interference;
    for source in &interference.sources {
        println!(
            "  {:<40} {:>6} times in {:>6} samples, {:>10} ns in all, at most {} ns",
            source.name, source.times, source.samples, source.total_ns, source.max_ns
        );
    }
    let of = |kind: &str| interference.sources.iter().filter(|it| it.kind == kind).map(|it| it.samples).sum::<u64>();
    assert!(of("tick") > 0, "no tick in {} samples", interference.samples);
    // Kernel threads want a CPU now and then; nothing else may come between.
    let others = of("preempted") + of("migrated") + of("blocked");
    assert!(others * 100 <= interference.samples, "{others} of {} samples lost the CPU to a thread", interference.samples);
    assert!(!interference.sources.iter().any(|it| it.kind == "migrated"), "a pinned thread does not migrate");
}
