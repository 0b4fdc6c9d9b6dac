//! What polling costs, on real verbs: the figures are there, positive and of as many as were asked for, and rounds go on afterwards.
//!
//! Ignored by default: `cargo xtask test` runs them inside the guest. A missing device is a failure.

use crate::support::program::rdmascope;
use capture::manifest::costs::{PollCosts, Spread};
use capture::named::Named;
use capture::{Mode, Operation, Side};
use rdmascope_core::machine::faults;
use rdmascope_core::runner::{
    Endpoint, Params, PollCostSpec, RoundEnd, RoundOutcome, RoundResult, RoundSpec, Worker, WorkerConfig, poll_costs_need_server,
};
use rdmascope_core::verbs::{Device, choose_pair, gid_table};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const DEVICE: &str = "rxe0";
const BLOCKS: u64 = 1000;
const HITS: u64 = 200;
const WINDOWS: u64 = 500;
const ROUND: u64 = 300;

fn workers(op: Operation, mode: Mode) -> (Worker, Worker) {
    let device = Device::open(Some(DEVICE)).expect("the test VM has a soft-RoCE device");
    let table = gid_table(&device, 1).unwrap();
    let pair = choose_pair(&table, &table, true, None, None).unwrap();
    let params = Params { gid_index: pair.local.index, ..Params::new(op, mode, if op.is_atomic() { 8 } else { 64 }) };
    let mut client = Endpoint::create(&device, &params, Side::Client).unwrap();
    let mut server = Endpoint::create(&device, &params, Side::Server).unwrap();
    let (for_server, for_client) = (client.local(), server.local());
    server.connect(&for_server).unwrap();
    client.connect(&for_client).unwrap();
    let cpus = std::thread::available_parallelism().unwrap().get() as u32;
    let server = Worker::spawn(server, WorkerConfig { cpu: Some(0), priority: None }).unwrap();
    let client = Worker::spawn(client, WorkerConfig { cpu: Some(cpus - 1), priority: None }).unwrap();
    (client, server)
}

fn round(samples: u64, abort: &Arc<AtomicBool>) -> RoundSpec {
    RoundSpec {
        index: 0,
        samples,
        record: true,
        max_time: Duration::from_secs(300),
        no_progress: Duration::from_secs(60),
        abort: Arc::clone(abort),
    }
}

fn done(outcome: RoundOutcome) -> RoundResult {
    outcome.unwrap_or_else(|failure| panic!("{} after {} samples", failure.error, failure.samples.len()))
}

fn both(client: &Worker, server: &Worker) -> RoundResult {
    let abort = Arc::default();
    let theirs = server.round(round(ROUND, &abort));
    let ours = done(client.round(round(ROUND, &abort)).wait());
    done(theirs.wait());
    ours
}

fn spec(part_max: Duration) -> PollCostSpec {
    PollCostSpec {
        blocks: BLOCKS,
        hit_polls: HITS,
        hit_wait: Duration::from_millis(2),
        window_ops: WINDOWS,
        part_max,
        no_progress: Duration::from_secs(60),
        abort: Arc::default(),
    }
}

fn positive(name: &str, spread: &Spread) {
    assert!(spread.n > 0 && spread.min_ns > 0.0 && spread.max_ns >= spread.min_ns, "{name}: {spread:?}");
    for (quantile, least) in [(spread.p50_ns, 20), (spread.p90_ns, 100), (spread.p99_ns, 1000)] {
        assert_eq!(quantile.is_some(), spread.n >= least, "{name}: {spread:?}");
        assert!(quantile.is_none_or(|it| it >= spread.min_ns && it <= spread.max_ns), "{name}: {spread:?}");
    }
}

fn is_absent(costs: &PollCosts, what: &str) -> bool {
    costs.absent.iter().any(|it| it.what.contains(what) && !it.why.is_empty())
}

#[test]
#[ignore = "runs in the VM"]
fn the_figures_are_there_in_both_modes_and_rounds_go_on() {
    let device = Device::open(Some(DEVICE)).expect("the test VM has a soft-RoCE device");
    // Where the kernel does not survive atomics they are refused (vm_verbs sees to that).
    let ops: Vec<Operation> = Operation::MEASURED.iter().copied().filter(|op| Endpoint::supports(&device, *op).is_ok()).collect();
    assert!(ops.len() == Operation::MEASURED.len() || faults::atomics(Path::new("/"), &device.driver()).is_some(), "{ops:?}");
    for op in ops {
        for &mode in Mode::ALL {
            if (op, mode) == (Operation::WritePp, Mode::Event) {
                continue;
            }
            let name = format!("{op} {mode}");
            let (client, server) = workers(op, mode);
            both(&client, &server);
            let abort = Arc::default();
            let theirs = poll_costs_need_server(op, mode).then(|| server.round(round(WINDOWS, &abort)));
            let costs = client.poll_costs(spec(Duration::from_secs(60))).wait().unwrap_or_else(|error| panic!("{name}: {error}"));
            if let Some(theirs) = theirs {
                assert_eq!(done(theirs.wait()).stats.samples, WINDOWS);
            }
            println!("{name}: {costs:?}");
            let clock = costs.clock_read.expect("the clock is always there");
            positive(&name, &clock);
            assert_eq!((costs.calls_per_block, clock.n), (100, BLOCKS), "{name}");
            assert_eq!(costs.empty_poll.is_some(), op != Operation::WritePp, "{name}");
            assert_eq!(costs.hit_poll.is_some(), !op.server_answers(), "{name}");
            assert_eq!(costs.detection_window.is_some(), mode == Mode::Poll && op != Operation::WritePp, "{name}");
            for (what, there) in [
                ("empty_poll", costs.empty_poll.is_some()),
                ("hit_poll", costs.hit_poll.is_some()),
                ("detection_window", costs.detection_window.is_some()),
            ] {
                assert_eq!(is_absent(&costs, what), !there, "{name} {what}: {:?}", costs.absent);
            }
            if let Some(empty) = costs.empty_poll {
                positive(&name, &empty);
                assert_eq!(empty.n, BLOCKS, "{name}");
            }
            if let Some(hit) = costs.hit_poll {
                let poll = hit.poll.unwrap_or_else(|| panic!("{name}: every timed poll came back empty"));
                positive(&name, &poll);
                assert_eq!((hit.operations, hit.waited_ns), (HITS, 2_000_000), "{name}");
                assert_eq!(poll.n + hit.came_back_empty, HITS, "{name}");
            }
            if let Some(it) = costs.detection_window {
                assert_eq!(it.operations, WINDOWS, "{name}");
                assert_eq!(it.window.map_or(0, |window| window.n) + it.first_poll_hits, WINDOWS, "{name}");
                if let Some(window) = it.window {
                    positive(&name, &window);
                }
            }
            // An ordinary round afterwards is none the worse: as many samples as asked, and no event that was left behind.
            let after = both(&client, &server);
            assert_eq!((after.end, after.samples.len() as u64), (RoundEnd::Done, ROUND), "{name}");
            assert_eq!(
                after.stats.events - after.stats.empty_wakeups + after.stats.armed_poll_hits,
                if mode == Mode::Event { ROUND } else { 0 }
            );
            assert_eq!(after.samples[0].empty_wakeups, 0, "{name}: the first sample read an old event");
        }
    }
}

#[test]
#[ignore = "runs in the VM"]
fn time_and_abort_end_it_with_what_there_is() {
    let (client, _server) = workers(Operation::Read, Mode::Poll);
    let few = PollCostSpec { hit_polls: 1_000_000, window_ops: 1_000_000, ..spec(Duration::from_millis(300)) };
    let costs = client.poll_costs(few).wait().unwrap();
    let hit = costs.hit_poll.expect("reads have hit polls");
    assert!((1..1_000_000).contains(&hit.operations), "{hit:?}");
    let window = costs.detection_window.expect("mode poll has a window");
    assert!((1..1_000_000).contains(&window.operations), "{window:?}");
    let endless = PollCostSpec { hit_polls: 1_000_000, ..spec(Duration::from_secs(600)) };
    let abort = Arc::clone(&endless.abort);
    let running = client.poll_costs(endless);
    std::thread::sleep(Duration::from_millis(500));
    abort.store(true, Ordering::Relaxed);
    assert!(running.wait().is_ok());
}

/// The whole way: the program measures, the capture carries it, the report shows it.
#[test]
#[ignore = "runs in the VM"]
fn a_session_carries_the_costs_into_capture_and_report() {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().to_str().expect("a plain path");
    let mut program = rdmascope(&[
        "compare",
        "--loopback",
        "--device",
        DEVICE,
        "--out",
        out,
        "--no-report",
        "--quiet",
        "-n",
        "500",
        "--level",
        "none",
        "--op",
        "send,read",
    ]);
    let end = program.end_within(Duration::from_secs(240));
    assert_eq!(end.code, Some(0), "{}", end.text);
    let report = analysis::report::of_folder(dir.path()).expect("the captures open");
    assert_eq!(report.runs.len(), 4);
    for run in &report.runs {
        let what = &run.manifest.run;
        let name = format!("{} {}", what.op, what.mode);
        let costs = run.manifest.poll_costs.as_ref().unwrap_or_else(|| panic!("{name}: no costs"));
        let empty = costs.empty_poll.as_ref().expect("an empty poll");
        positive(&name, empty);
        // The empty polls that the ordinary rounds counted cannot have taken longer than those rounds.
        let rounds = || run.manifest.rounds.iter().filter(|round| !round.warmup);
        let polls: u64 = rounds().map(|round| round.empty_polls).sum();
        let elapsed_ns: u64 = rounds().map(|round| round.end_ns - round.begin_ns).sum();
        println!("{name}: {polls} empty polls in {elapsed_ns} ns of rounds, the cheapest {} ns", empty.min_ns);
        assert!(polls as f64 * empty.min_ns <= elapsed_ns as f64, "{name}");
        assert_eq!(
            (costs.hit_poll.is_some(), costs.detection_window.is_some()),
            (what.op == Operation::Read, what.mode == Mode::Poll),
            "{name}"
        );
        let post = run.post.as_ref().expect("untraced samples were posted");
        positive(&name, post);
        assert_eq!(Some(post.n), run.untraced.as_ref().map(|it| it.n), "{name}");
        assert_eq!(run.server_residency.is_some(), what.op == Operation::Send, "{name}");
        if let Some(it) = run.server_residency {
            println!("{name}: {it:?}");
            assert_eq!(it.n, post.n, "{name}: {it:?}");
            assert!(it.min_ns > 0.0 && it.max_ns >= it.min_ns && it.p50_ns.is_some_and(|(low, high)| low > 0.0 && low <= high), "{it:?}");
        }
    }
    let text = analysis::show::text::render(&report, true, false);
    println!("{text}");
    for words in ["empty poll", "hit poll", "detection window", "server residency", "not the latency of the hardware", "no TSC cycles"] {
        assert!(text.contains(words), "{words} is not in the text");
    }
}
