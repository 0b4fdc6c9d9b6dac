//! Every operation in every mode on real verbs: both ends in one process, on the device `rxe0` of the test VM.
//!
//! Ignored by default: `cargo xtask test` runs them inside the guest. A missing device is a failure.
use capture::Sample;
use capture::named::Named;
use capture::{Mode, Operation, Side};
use rdmascope_core::machine::faults;
use rdmascope_core::runner::{Endpoint, Params, RoundEnd, RoundOutcome, RoundResult, RoundSpec, RunnerError, Worker, WorkerConfig};
use rdmascope_core::verbs::{Device, choose_pair, gid_table};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DEVICE: &str = "rxe0";
const OPERATIONS: u64 = 2000;

fn device() -> Device {
    Device::open(Some(DEVICE)).expect("the test VM has a soft-RoCE device")
}

fn params(op: Operation, mode: Mode, size_bytes: u32) -> Params {
    let table = gid_table(&device(), 1).unwrap();
    let pair = choose_pair(&table, &table, true, None, None).unwrap();
    Params { gid_index: pair.local.index, ..Params::new(op, mode, size_bytes) }
}

/// Both ends, connected to each other.
fn ends(params: &Params) -> (Endpoint, Endpoint) {
    let device = device();
    let mut client = Endpoint::create(&device, params, Side::Client).unwrap();
    let mut server = Endpoint::create(&device, params, Side::Server).unwrap();
    let (for_server, for_client) = (client.local(), server.local());
    server.connect(&for_server).unwrap();
    client.connect(&for_client).unwrap();
    (client, server)
}

fn spec(index: u32, samples: u64) -> RoundSpec {
    RoundSpec {
        index,
        samples,
        record: true,
        max_time: Duration::from_secs(300),
        no_progress: Duration::from_secs(60),
        abort: Arc::new(AtomicBool::new(false)),
    }
}

/// Server on the first CPU, client on the last.
fn workers(client: Endpoint, server: Endpoint) -> (Worker, Worker) {
    let cpus = std::thread::available_parallelism().unwrap().get() as u32;
    let server = Worker::spawn(server, WorkerConfig { cpu: Some(0), priority: None }).unwrap();
    let client = Worker::spawn(client, WorkerConfig { cpu: Some(cpus - 1), priority: None }).unwrap();
    assert_ne!(client.tid(), server.tid());
    (client, server)
}

fn both(client: &Worker, server: &Worker, index: u32, samples: u64) -> (RoundResult, RoundResult) {
    let server = server.round(spec(index, samples));
    let client = client.round(spec(index, samples));
    let client = done(client.wait());
    (client, done(server.wait()))
}

fn done(outcome: RoundOutcome) -> RoundResult {
    outcome.unwrap_or_else(|failure| panic!("{} after {} samples", failure.error, failure.samples.len()))
}

/// Two rounds on the same queue pairs, everything about their samples, and the memory afterwards.
fn run(op: Operation, mode: Mode, size_bytes: u32, operations: u64) {
    let params = params(op, mode, size_bytes);
    if op.is_atomic() && faults::atomics(Path::new("/"), "rdma_rxe").is_some() {
        let refused = Endpoint::create(&device(), &params, Side::Client).err().map(|error| error.to_string());
        assert!(refused.as_ref().is_some_and(|why| why.contains("can crash this kernel")), "{refused:?}");
        return;
    }
    let (client, server) = ends(&params);
    assert_ne!(client.cq_handle(), 0);
    assert_ne!(client.qpn(), server.qpn());
    let qpn = client.qpn();
    let (client, server) = workers(client, server);
    let mut wr_ids = HashSet::new();
    for index in 0..2 {
        let (ours, theirs) = both(&client, &server, index, operations);
        assert_eq!((ours.end, theirs.end), (RoundEnd::Done, RoundEnd::Done));
        assert_eq!(ours.stats.samples, operations);
        assert_eq!(ours.samples.len() as u64, operations);
        check_samples(&ours, op, mode, qpn, index);
        for sample in &ours.samples {
            assert!(wr_ids.insert(sample.begin_wr_id), "wr_id {:#x} twice", sample.begin_wr_id);
            if sample.end_wr_id != sample.begin_wr_id && op != Operation::WritePp {
                assert!(wr_ids.insert(sample.end_wr_id), "wr_id {:#x} twice", sample.end_wr_id);
            }
        }
        if op.server_answers() {
            assert_eq!(theirs.samples.len() as u64, operations);
            for sample in &theirs.samples {
                assert!(wr_ids.insert(sample.begin_wr_id));
                assert!(sample.end_wr_id == 0 || wr_ids.insert(sample.end_wr_id));
                assert!(sample.done_ns <= sample.post_begin_ns && sample.post_begin_ns <= sample.post_end_ns);
            }
        } else {
            assert_eq!((theirs.stats.samples, theirs.samples.len()), (0, 0));
        }
        show("client", &ours, op, mode, size_bytes);
        if op.server_answers() {
            show("server", &theirs, op, mode, size_bytes);
        }
    }
    let (client, server) = (client.stop().unwrap(), server.stop().unwrap());
    assert_eq!(client.posted(), 2 * operations);
    client.verify(2 * operations).unwrap();
    server.verify(2 * operations).unwrap();
    // The check must be able to fail.
    let checks_here = matches!(op, Operation::Send | Operation::WritePp | Operation::FetchAdd | Operation::CmpSwap);
    assert_eq!(client.verify(2 * operations + 1).is_err(), checks_here);
    assert_eq!(server.verify(2 * operations - 1).is_err(), op != Operation::Read);
}

/// The client's median is the latency, the server's its residency.
fn show(side: &str, round: &RoundResult, op: Operation, mode: Mode, size_bytes: u32) {
    let span = |sample: &Sample| sample.latency_ns().unwrap_or_else(|| sample.post_begin_ns - sample.done_ns);
    let mut latencies: Vec<_> = round.samples.iter().map(span).collect();
    latencies.sort_unstable();
    let waited = round.samples.iter().filter(|sample| sample.wait_begin_ns != 0).count();
    let s = round.stats;
    println!(
        "{op} {mode} {size_bytes} B {side}: n {} median {} ns, cpu {} ns/op, switches {}/{}, waited {waited}, events {}, spurious {}, drained {}, armed hits {}, empty polls {}",
        s.samples,
        latencies[latencies.len() / 2],
        s.thread_cpu_ns / s.samples,
        s.voluntary_switches,
        s.involuntary_switches,
        s.events,
        s.empty_wakeups,
        s.drained_events,
        s.armed_poll_hits,
        s.empty_polls
    );
}

fn check_samples(round: &RoundResult, op: Operation, mode: Mode, qpn: u32, index: u32) {
    let stats = &round.stats;
    let mut before_ns = stats.begin_ns;
    let (mut waits, mut empty, mut without_wait) = (0, 0, 0);
    for sample in &round.samples {
        assert_eq!((sample.qpn, sample.round, sample.worker, sample.status), (qpn, index, 0, 0));
        assert!(sample.post_begin_ns >= before_ns && sample.post_end_ns >= sample.post_begin_ns, "{sample:?}");
        assert!(sample.done_ns >= sample.post_end_ns, "{sample:?}");
        before_ns = sample.done_ns;
        match mode {
            Mode::Poll => assert_eq!((sample.arm_ns, sample.wait_begin_ns, sample.wait_end_ns, sample.waits), (0, 0, 0, 0)),
            Mode::Event => {
                assert!(sample.arm_ns >= sample.post_end_ns && sample.done_ns >= sample.arm_ns, "{sample:?}");
                if sample.wait_begin_ns == 0 {
                    without_wait += 1;
                    assert_eq!(sample.wait_end_ns, 0);
                    assert_eq!(sample.waits, sample.empty_wakeups, "{sample:?}");
                } else {
                    assert!(sample.wait_begin_ns >= sample.arm_ns && sample.wait_end_ns >= sample.wait_begin_ns, "{sample:?}");
                    assert!(sample.done_ns >= sample.wait_end_ns && sample.waits == sample.empty_wakeups + 1, "{sample:?}");
                }
            }
        }
        waits += u64::from(sample.waits);
        empty += u64::from(sample.empty_wakeups);
    }
    assert!(before_ns <= stats.end_ns && stats.thread_cpu_ns > 0 && stats.thread_cpu_ns <= (stats.end_ns - stats.begin_ns) * 11 / 10);
    assert_eq!((stats.failed, stats.events, stats.empty_wakeups), (0, waits, empty));
    if mode == Mode::Event {
        assert_eq!(stats.armed_poll_hits, without_wait);
        assert_eq!(stats.events - stats.empty_wakeups + stats.armed_poll_hits, stats.samples);
        assert_eq!(stats.empty_polls, 0);
        // At most one event is left behind per completion found by the poll after arming, and none piles up.
        assert!(stats.drained_events <= stats.armed_poll_hits, "{stats:?}");
    } else {
        assert_eq!((stats.events, stats.drained_events, stats.armed_poll_hits), (0, 0, 0));
    }
    assert!(round.samples.iter().all(|sample| (sample.end_wr_id == 0) == (op == Operation::WritePp)));
}

macro_rules! every_operation {
    ($($name:ident: $op:ident $mode:ident $size:literal;)*) => {$(
        #[test]
        #[ignore = "runs in the VM"]
        fn $name() {
            run(Operation::$op, Mode::$mode, $size, OPERATIONS);
        }
    )*};
}

every_operation! {
    send_poll: Send Poll 64;
    send_event: Send Event 64;
    write_poll: Write Poll 64;
    write_event: Write Event 64;
    write_pp_poll: WritePp Poll 64;
    read_poll: Read Poll 64;
    read_event: Read Event 64;
    fetch_add_poll: FetchAdd Poll 8;
    fetch_add_event: FetchAdd Event 8;
    cmp_swap_poll: CmpSwap Poll 8;
    cmp_swap_event: CmpSwap Event 8;
    send_one_byte: Send Event 1;
}

#[test]
#[ignore = "runs in the VM"]
fn long_and_odd_sizes() {
    for op in [Operation::Send, Operation::Write, Operation::WritePp, Operation::Read] {
        for size_bytes in [13, 4096, 65_536, 1 << 20] {
            run(op, Mode::Poll, size_bytes, 20);
        }
    }
}

#[test]
#[ignore = "runs in the VM"]
fn modes_of_both_ends_are_independent() {
    for (mode, server_mode) in [(Mode::Poll, Mode::Event), (Mode::Event, Mode::Poll)] {
        let params = Params { server_mode, ..params(Operation::Send, mode, 64) };
        let (client, server) = ends(&params);
        let (client, server) = workers(client, server);
        let (ours, theirs) = both(&client, &server, 0, 500);
        assert_eq!(ours.stats.events > 0, mode == Mode::Event);
        assert_eq!(theirs.stats.events > 0, server_mode == Mode::Event);
    }
}

#[test]
#[ignore = "runs in the VM"]
fn refused_by_name() {
    let device = device();
    let refused = |params: &Params| match Endpoint::create(&device, params, Side::Client) {
        Ok(_) => panic!("{params:?} was not refused"),
        Err(error) => error.to_string(),
    };
    let text = refused(&Params::new(Operation::WritePp, Mode::Event, 64));
    assert!(text.contains("write-pp in mode event"), "{text}");
    let text = refused(&Params { gid_index: 200, ..params(Operation::Send, Mode::Poll, 64) });
    assert!(text.contains("The GID index") && text.contains("200"), "{text}");
    let text = refused(&Params { comp_vector: 4711, ..params(Operation::Send, Mode::Poll, 64) });
    assert!(text.contains("Completion vector is 4711"), "{text}");
    let error = match Device::open(Some("nosuchdevice")) {
        Ok(_) => panic!("a device that does not exist was opened"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains("nosuchdevice") && error.contains(DEVICE), "{error}");
}

#[test]
#[ignore = "runs in the VM"]
fn a_cpu_that_is_not_there_is_named() {
    let (client, _server) = ends(&params(Operation::Send, Mode::Poll, 64));
    let error = match Worker::spawn(client, WorkerConfig { cpu: Some(999), priority: None }) {
        Ok(_) => panic!("CPU 999 exists"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains("CPU 999") && error.contains("CPUs 0"), "{error}");
}

/// A server that never answers: the round ends by its own deadline, in both modes, and says what it waited for.
#[test]
#[ignore = "runs in the VM"]
fn a_silent_server_ends_the_round() {
    for &mode in Mode::ALL {
        let (client, server) = ends(&params(Operation::Send, mode, 64));
        let (client, server) = workers(client, server);
        // No round is started on the server.
        let begin = Instant::now();
        let outcome = client.round(RoundSpec { no_progress: Duration::from_secs(2), ..spec(0, 10) }).wait();
        let took = begin.elapsed();
        let failure = outcome.expect_err("nobody answered");
        let text = failure.error.to_string();
        assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(10), "{took:?}");
        assert!(matches!(failure.error, RunnerError::NoProgress { .. }), "{text}");
        for part in ["No completion for 2000 ms", "the answer of the peer", "RTS", "ACTIVE", "CQ of "] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
        assert!(failure.samples.is_empty());
        // The endpoint says that it cannot measure again.
        let again = client.round(spec(1, 10)).wait().expect_err("a dirty endpoint");
        assert!(matches!(again.error, RunnerError::Dirty));
        drop((client, server));
    }
}

/// A peer that is gone: its queue pair does not answer any more. What the client had so far is kept.
#[test]
#[ignore = "runs in the VM"]
fn a_dead_peer_is_an_error_with_its_cause() {
    for (op, mode) in
        [(Operation::Send, Mode::Event), (Operation::Send, Mode::Poll), (Operation::Read, Mode::Event), (Operation::Write, Mode::Poll)]
    {
        let (client, server) = ends(&params(op, mode, 64));
        let (client, server) = workers(client, server);
        let (first, _) = both(&client, &server, 0, 50);
        assert_eq!(first.samples.len(), 50);
        drop(server.stop().unwrap());
        let dead = RoundSpec { no_progress: Duration::from_secs(30), ..spec(1, 50) };
        let failure = client.round(dead).wait().expect_err("the peer is gone");
        let text = failure.error.to_string();
        assert!(text.contains("RETRY_EXC_ERR") && text.contains("the peer is gone"), "{op} {mode}: {text}");
        assert_eq!(failure.stats.failed, 1);
    }
}

/// An abort ends either end wherever it waits; a server that was aborted between messages goes on with the next round.
#[test]
#[ignore = "runs in the VM"]
fn an_abort_ends_a_waiting_round() {
    for &mode in Mode::ALL {
        let (client, server) = ends(&params(Operation::Send, mode, 64));
        let (client, server) = workers(client, server);
        let waiting = spec(0, 1000);
        let abort = Arc::clone(&waiting.abort);
        let theirs = server.round(waiting);
        let ours = done(client.round(spec(0, 10)).wait());
        assert_eq!(ours.stats.samples, 10);
        let begin = Instant::now();
        abort.store(true, Ordering::Relaxed);
        let theirs = done(theirs.wait());
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert_eq!((theirs.end, theirs.stats.samples, theirs.samples.len()), (RoundEnd::Aborted, 10, 10));
        let (ours, theirs) = both(&client, &server, 1, 100);
        assert_eq!((ours.end, theirs.end), (RoundEnd::Done, RoundEnd::Done));
        let (client, server) = (client.stop().unwrap(), server.stop().unwrap());
        client.verify(110).unwrap();
        server.verify(110).unwrap();
    }
}

/// The client's time limit ends a round after a whole operation, so that the next round finds both ends in step.
#[test]
#[ignore = "runs in the VM"]
fn the_time_limit_ends_a_round_cleanly() {
    let (client, server) = ends(&params(Operation::Send, Mode::Poll, 64));
    let (client, server) = workers(client, server);
    let waiting = spec(0, 1_000_000);
    let abort = Arc::clone(&waiting.abort);
    let theirs = server.round(waiting);
    let ours = done(client.round(RoundSpec { max_time: Duration::from_millis(200), ..spec(0, 1_000_000) }).wait());
    assert_eq!(ours.end, RoundEnd::TimeUp);
    abort.store(true, Ordering::Relaxed);
    assert_eq!(done(theirs.wait()).stats.samples, ours.stats.samples);
    let (again, _) = both(&client, &server, 1, 100);
    assert_eq!(again.samples.len(), 100);
    let total = ours.stats.samples + 100;
    client.stop().unwrap().verify(total).unwrap();
    server.stop().unwrap().verify(total).unwrap();
}

#[test]
#[ignore = "runs in the VM"]
fn a_round_that_records_nothing_keeps_nothing() {
    let (client, server) = ends(&params(Operation::Write, Mode::Poll, 8));
    let (client, server) = workers(client, server);
    let ours = done(client.round(RoundSpec { record: false, ..spec(0, 300) }).wait());
    assert_eq!((ours.stats.samples, ours.samples), (300, Vec::<Sample>::new()));
    client.stop().unwrap().verify(300).unwrap();
    server.stop().unwrap().verify(300).unwrap();
}

/// An ordinary user's limit of locked memory: refused with a sentence when it is too small, and enough when it is enough.
#[test]
#[ignore = "runs in the VM"]
fn the_limit_of_locked_memory_is_checked_first() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let before = getrlimit(Resource::Memlock);
    // Capabilities belong to the thread; the limit belongs to the process and is put back.
    let results = std::thread::spawn(move || {
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::IPC_LOCK);
        set_capabilities(None, sets).unwrap();
        setrlimit(Resource::Memlock, Rlimit { current: Some(256 << 10), maximum: before.maximum }).unwrap();
        let device = device();
        let big =
            Endpoint::create(&device, &params(Operation::Write, Mode::Poll, 1 << 20), Side::Client).err().map(|error| error.to_string());
        let small = Endpoint::create(&device, &params(Operation::Write, Mode::Poll, 64), Side::Client).err().map(|error| error.to_string());
        (big, small)
    })
    .join();
    setrlimit(Resource::Memlock, before).unwrap();
    let (big, small) = results.unwrap();
    let big = big.expect("2 MiB do not fit into 256 KiB");
    assert!(big.contains("2097152") && big.contains("262144") && big.contains("ulimit -l"), "{big}");
    assert_eq!(small, None);
}

/// Inline data where the device has it; a device that has not enough is used without.
#[test]
#[ignore = "runs in the VM"]
fn inline_messages() {
    let inline = |inline_bytes| {
        let params = Params { inline_bytes, ..params(Operation::Send, Mode::Poll, 64) };
        let (client, server) = ends(&params);
        let sends_inline = client.sends_inline();
        let (client, server) = workers(client, server);
        both(&client, &server, 0, 200);
        client.stop().unwrap().verify(200).unwrap();
        server.stop().unwrap().verify(200).unwrap();
        sends_inline
    };
    assert!(!inline(0));
    assert!(inline(64));
    assert!(!inline(1 << 20));
}
