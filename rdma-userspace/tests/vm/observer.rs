//! What the probes do to what they watch, in a guest with soft-RoCE: nothing at all while a thread spins, nothing for strangers, and
//! every record that is lost is counted.
//!
//! Ignored by default: `cargo xtask test` runs them inside the guest.
use crate::support::pingpong::Pingpong;
use crate::support::program::rdmascope;
use capture::{Level, Mode, Operation, Side};
use ebpf_probes::{Kind, decode};
use rdmascope_core::probes::{Config, Plan, Probes};
use rdmascope_core::runner::{Endpoint, Params, RoundSpec, Worker, WorkerConfig};
use rdmascope_core::verbs::{Device, choose_pair, gid_table};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const DEVICE: &str = "rxe0";
const PATIENCE: Duration = Duration::from_secs(300);
/// The one request of the round is done with after this.
const SETTLE: Duration = Duration::from_millis(500);
const SPIN: Duration = Duration::from_secs(1);
/// Hooks that real interference hits on any CPU, whatever we do: begins of their names.
const INTERFERENCE: [&str; 15] = [
    "K0 ",
    "K1 ",
    "interrupt end",
    "K4 softirq",
    "softirq end",
    "K4 tasklet",
    "K4 work",
    "Rq work",
    "NAPI",
    "K6 ",
    "K7 ",
    "K8 ",
    "migration",
    "tick",
    "page fault",
];

fn loaded(config: &Config) -> Probes {
    let plan = Plan::for_kernel(Path::new("/"), Level::Std).expect("facts of the running kernel");
    Probes::load(&plan, config).expect("probes load")
}

/// A client that posted its message to a server that never answers, so that it spins on an empty CQ.
#[test]
#[ignore = "runs in the VM"]
fn no_probe_fires_while_a_thread_spins() {
    let device = Device::open(Some(DEVICE)).expect("the test VM has a soft-RoCE device");
    let table = gid_table(&device, 1).expect("a GID table");
    let pair = choose_pair(&table, &table, true, None, None).expect("a GID");
    let params = Params { gid_index: pair.local.index, ..Params::new(Operation::Send, Mode::Poll, 64) };
    let mut client = Endpoint::create(&device, &params, Side::Client).expect("a client");
    let mut server = Endpoint::create(&device, &params, Side::Server).expect("a server");
    let (for_server, for_client) = (client.local(), server.local());
    server.connect(&for_server).expect("connected");
    client.connect(&for_client).expect("connected");
    let qpn = client.qpn();
    let cpu = std::thread::available_parallelism().expect("CPUs").get() as u32 - 1;
    let client = Worker::spawn(client, WorkerConfig { cpu: Some(cpu), priority: None }).expect("a thread");

    let mut probes = loaded(&Config::default());
    probes.track_tgid(std::process::id()).expect("tracked");
    probes.track_poller(client.tid()).expect("tracked");
    probes.track_qpn(qpn).expect("tracked");
    probes.attach().expect("attach");
    let spec = RoundSpec { index: 0, samples: 1, record: true, max_time: PATIENCE, no_progress: PATIENCE, abort: Arc::default() };
    let abort = Arc::clone(&spec.abort);
    let round = client.round(spec);
    std::thread::sleep(SETTLE);
    let on_cpu = |probes: &Probes| -> BTreeMap<&'static str, u64> {
        let hits = probes.hits_by_cpu().expect("hits");
        hits.into_iter().map(|(hook, by_cpu)| (hook, by_cpu[cpu as usize])).collect()
    };
    let (before, begin) = (on_cpu(&probes), Instant::now());
    std::thread::sleep(SPIN);
    let (after, spun) = (on_cpu(&probes), begin.elapsed());
    abort.store(true, Ordering::Relaxed);
    let stats = match round.wait() {
        Ok(result) => result.stats,
        Err(failure) => failure.stats,
    };
    probes.detach();
    let hits: Vec<(&str, u64)> = after.iter().map(|(hook, hits)| (*hook, hits - before[hook])).filter(|(_, hits)| *hits > 0).collect();
    println!("{spun:?} of spinning on CPU {cpu}, {} empty polls in all; hits there: {hits:?}", stats.empty_polls);
    assert!(stats.empty_polls > 10_000, "it did not spin: {stats:?}");
    assert!(before.iter().any(|(hook, hits)| hook.starts_with("R1 ") && *hits > 0), "the post itself was not seen: {before:?}");
    for (hook, count) in &hits {
        assert!(INTERFERENCE.iter().any(|name| hook.starts_with(name)), "{hook}: {count} hits while nothing but polls happened");
    }
    let interference: u64 = hits.iter().map(|(_, count)| count).sum();
    assert!(interference * 10 < stats.empty_polls, "{interference} hits in {} polls", stats.empty_polls);
}

#[test]
#[ignore = "runs in the VM"]
fn strangers_and_their_interrupts_leave_no_record() {
    // No interrupt has this number, so that every one is a stranger's.
    let mut probes = loaded(&Config { irqs: vec![60_000], ..Config::default() });
    probes.track_tgid(std::process::id()).expect("tracked");
    probes.attach().expect("attach");
    let mut pingpong = Pingpong::start(200);
    pingpong.go();
    let deadline = Instant::now() + PATIENCE;
    while !pingpong.is_done().unwrap_or_else(|why| panic!("{why}")) {
        assert!(Instant::now() < deadline, "the exchange did not end");
        // The console is a device with interrupts.
        println!("waiting");
        std::thread::sleep(Duration::from_millis(20));
    }
    probes.detach();
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    probes.drain(|record| *kinds.entry(decode(record).expect("a known kind").body.kind().name()).or_default() += 1);
    let hits: BTreeMap<&str, u64> = probes.hits().expect("hits").into_iter().collect();
    println!("records {kinds:?}, hits {hits:?}");
    for hook in ["K5 completion handler", "R1 post enters the kernel", "R6 CQE posted", "K8 run"] {
        assert!(hits[hook] >= 200, "{hook} was not hit: {hits:?}");
    }
    let ours = [
        Kind::CompHandler,
        Kind::SchedWaking,
        Kind::SchedWakeup,
        Kind::SchedSwitch,
        Kind::SchedMigrate,
        Kind::RxePost,
        Kind::RxeXmit,
        Kind::RxeRcv,
        Kind::RxeTask,
        Kind::CqPost,
        Kind::IrqEntry,
        Kind::EventRead,
    ];
    for kind in ours {
        assert_eq!(kinds.get(kind.name()), None, "{} of a stranger", kind.name());
    }
}

#[test]
#[ignore = "runs in the VM"]
fn every_lost_record_is_counted_and_its_sample_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let end = rdmascope(&[
        "run",
        "--loopback",
        "--device",
        DEVICE,
        "--op",
        "send",
        "--mode",
        "event",
        "-n",
        "1000",
        "--ring-bytes",
        "4096",
        "--quiet",
        "--out",
        out.to_str().expect("a plain path"),
    ])
    .end_within(PATIENCE);
    assert_eq!(end.code, Some(3), "{}", end.text);
    let report = analysis::report::of_folder(&out).expect("the capture opens");
    let [run] = report.runs.as_slice() else { panic!("one run, but {}", report.runs.len()) };
    let losses = &run.manifest.losses;
    println!("{losses:?}");
    assert!(losses.iter().any(|row| row.lost > 0), "a ring of one page held everything");
    for row in losses {
        assert_eq!(row.attempted, row.delivered + row.lost, "{}", row.kind);
    }
    let breakdown = run.breakdown.as_ref().expect("a breakdown");
    println!("{} of {} samples LOST", breakdown.lost, breakdown.samples);
    // A page holds the records of a handful of samples per round: nearly all others miss some.
    assert!(breakdown.lost * 10 >= breakdown.samples * 9, "{} of {} samples LOST", breakdown.lost, breakdown.samples);
    assert!(end.text.contains("LOST") || end.text.contains("lost"), "{}", end.text);
}
