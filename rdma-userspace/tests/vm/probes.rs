//! The probes against a real kernel with soft-RoCE. Runs inside the VM (`cargo xtask test`), as root, one thread.
//!
//! The traffic is `ibv_rc_pingpong -e`: a program that is not ours, so that the probes are judged by something else than the runner.

use capture::Level;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::pingpong::Pingpong;
use ebpf_probes::{Body, Event, Kind, decode};
use rdmascope_core::probes::offsets::Source;
use rdmascope_core::probes::{Config, Plan, Probes, monotonic_ns};

/// Longest wait for one exchange under emulation.
const EXCHANGE_DEADLINE: Duration = Duration::from_secs(120);
const ITERATIONS: u32 = 500;

fn plan(level: Level) -> Plan {
    Plan::for_kernel(Path::new("/"), level).expect("facts of the running kernel")
}

fn loaded(level: Level, config: &Config) -> Probes {
    Probes::load(&plan(level), config).expect("probes load")
}

fn everything() -> Config {
    Config { trace_all_qps: true, ..Config::default() }
}

/// Runs one event-mode exchange under the attached probes and returns what was recorded.
fn record_exchange(probes: &mut Probes, is_tracked: bool) -> (Vec<Event>, [u32; 2]) {
    let mut events = Vec::new();
    let mut pingpong = Pingpong::start(ITERATIONS);
    if is_tracked {
        for pid in pingpong.pids() {
            probes.track_process(pid).expect("tracked");
        }
    }
    pingpong.go();
    let deadline = Instant::now() + EXCHANGE_DEADLINE;
    let mut is_done = false;
    while !is_done {
        is_done = pingpong.is_done().unwrap_or_else(|why| panic!("{why}"));
        assert!(is_done || Instant::now() < deadline, "the exchange did not end within {EXCHANGE_DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(20));
        probes.drain(|record| events.push(decode(record).expect("a record of a known kind")));
    }
    probes.drain(|record| events.push(decode(record).expect("a record of a known kind")));
    (events, pingpong.pids())
}

fn count_by_kind(events: &[Event]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for event in events {
        *counts.entry(event.body.kind().name()).or_default() += 1;
    }
    counts
}

fn hits(probes: &Probes) -> Vec<(&'static str, u64)> {
    probes.hits().expect("hits")
}

fn assert_nothing_lost(probes: &Probes) {
    let losses = probes.losses().expect("losses");
    assert!(!losses.kinds.is_empty(), "nothing was recorded");
    for row in &losses.kinds {
        assert_eq!((row.lost, row.delivered), (0, row.attempted), "{row:?}");
    }
}

#[test]
#[ignore = "runs in the VM"]
fn every_planned_hook_attaches() {
    for level in [Level::Min, Level::Std, Level::Full] {
        let plan = plan(level);
        println!("{plan}");
        let missing: Vec<_> = plan.missing().map(|hook| (hook.hook, hook.reason.clone())).collect();
        assert!(missing.is_empty(), "this kernel ought to have: {missing:?}");
        let mut probes = Probes::load(&plan, &Config::default()).expect("probes load");
        let begin = Instant::now();
        probes.attach().expect("attach");
        let attached_after = begin.elapsed();
        for (planned, state) in plan.hooks.iter().zip(probes.hooks().expect("hooks")) {
            assert_eq!(planned.symbol.is_some(), state.attached, "{}: {}", planned.hook, state.planned.reason);
        }
        let begin = Instant::now();
        probes.detach();
        println!("level {level}: attached in {attached_after:?}, detached in {:?}", begin.elapsed());
    }
}

#[test]
#[ignore = "runs in the VM"]
fn offsets_come_from_btf() {
    let plan = plan(Level::Std);
    for (name, offset) in plan.offsets.iter() {
        println!("{name:<20} {:>5} {:?}", offset.bytes, offset.source);
    }
    let has_module_btf = Path::new("/sys/kernel/btf/rdma_rxe").exists();
    for name in ["OFF_TASK_PID", "OFF_TASK_TGID", "OFF_CQ_TASK", "OFF_CQ_UOBJECT", "OFF_RXE_QP_IBQP", "OFF_IB_QP_NUM", "OFF_PKT_WQE"] {
        let offset = plan.offsets.get(name).expect("a wanted offset");
        match offset.source {
            Source::Btf => {}
            Source::Table | Source::Constant => assert!(!has_module_btf, "{name} is {offset:?} although the module has BTF"),
            Source::Unknown(ref why) => panic!("{name}: {why}"),
        }
    }
}

#[test]
#[ignore = "runs in the VM"]
fn events_of_a_real_exchange_arrive() {
    let mut probes = loaded(Level::Full, &everything());
    let before_ns = monotonic_ns();
    probes.attach().expect("attach");
    let (events, pids) = record_exchange(&mut probes, true);
    let after_ns = monotonic_ns();
    probes.detach();
    let mut after = 0;
    probes.drain(|_| after += 1);
    println!("{:?}, and {after} after the end", count_by_kind(&events));
    println!("{:?}", hits(&probes));
    println!("{:?}", probes.losses().expect("losses"));
    assert_nothing_lost(&probes);
    assert!(events.iter().all(|event| (before_ns..=after_ns).contains(&event.header.ts_ns)), "a stamp outside the exchange");

    for pid in pids {
        let of_owner = |event: &&Event| matches!(event.body, Body::CompHandler(it) if it.owner_tgid == pid);
        let handlers: Vec<_> = events.iter().filter(of_owner).collect();
        assert!(handlers.len() >= ITERATIONS as usize, "{} handlers of process {pid}", handlers.len());
        let handles: HashSet<u64> = handlers.iter().filter_map(|event| comp_handler(event)).map(|it| it.user_handle).collect();
        assert!(handles.len() == 1 && !handles.contains(&0), "one CQ, but handles {handles:x?}");
        let switched_in = |event: &&Event| matches!(event.body, Body::SchedSwitch(it) if it.next_pid == pid);
        assert!(events.iter().filter(switched_in).count() > 0, "process {pid} never got a CPU");
        let woken = |event: &&Event| matches!(event.body, Body::SchedWaking(it) if it.target_pid == pid);
        let wakeups = |event: &&Event| matches!(event.body, Body::SchedWakeup(it) if it.target_pid == pid);
        let (woken, wakeups) = (events.iter().filter(woken).count(), events.iter().filter(wakeups).count());
        println!("process {pid}: {} handlers, {woken} wakings, {wakeups} wakeups", handlers.len());
        assert!(woken > 0 && wakeups > 0);
    }
    let posted: Vec<_> = events.iter().filter_map(|event| if let Body::CqPost(it) = event.body { Some(it) } else { None }).collect();
    assert!(posted.len() >= 4 * ITERATIONS as usize, "{} CQEs", posted.len());
    // ibv_rc_pingpong gives its receives wr_id 1 and its sends wr_id 2.
    assert!(posted.iter().all(|it| matches!(it.wr_id, 1 | 2) && it.status == 0), "foreign wr_id or a failed CQE");
    let qpns: HashSet<u32> = posted.iter().map(|it| it.qpn).collect();
    assert_eq!(qpns.len(), 2, "two queue pairs, but {qpns:?}");
    let mut sent = 0;
    for event in &events {
        match event.body {
            Body::RxePost(it) => assert!(qpns.contains(&it.qpn), "{it:?}"),
            Body::RxeRcv(it) => assert!(qpns.contains(&it.qpn), "{it:?}"),
            Body::RxeTask(it) => assert!(qpns.contains(&it.qpn), "{it:?}"),
            Body::RxeXmit(it) => {
                sent += 1;
                assert!(qpns.contains(&it.qpn) && it.wr_id == 2, "{it:?}");
            }
            _ => {}
        }
    }
    assert!(sent >= 2 * ITERATIONS as usize, "{sent} packets sent");
    for kind in [Kind::RxePost, Kind::RxeRcv, Kind::RxeTask] {
        assert!(count_by_kind(&events).get(kind.name()).is_some_and(|count| *count >= 2 * ITERATIONS as usize), "{kind:?}");
    }
}

fn comp_handler(event: &Event) -> Option<ebpf_probes::CompHandler> {
    if let Body::CompHandler(it) = event.body { Some(it) } else { None }
}

#[test]
#[ignore = "runs in the VM"]
fn the_event_read_names_the_handlers_channel() {
    let mut probes = loaded(Level::Full, &everything());
    probes.attach().expect("attach");
    let (events, pids) = record_exchange(&mut probes, true);
    println!("{:?}", count_by_kind(&events));
    for pid in pids {
        let channels: HashSet<u64> =
            events.iter().filter_map(comp_handler).filter(|it| it.owner_tgid == pid).map(|it| it.channel).collect();
        let of_process = events.iter().filter(|event| event.header.tgid == pid);
        let reads: Vec<_> = of_process.filter_map(|event| if let Body::EventRead(it) = event.body { Some(it) } else { None }).collect();
        assert!(reads.len() >= ITERATIONS as usize, "{} reads of process {pid}", reads.len());
        assert_eq!(channels.len(), 1, "one channel, but {channels:x?}");
        assert!(reads.iter().all(|it| it.result == 8 && channels.contains(&it.channel)), "a read of another channel, or a short one");
    }
}

#[test]
#[ignore = "runs in the VM"]
fn what_is_not_tracked_is_not_recorded() {
    let mut probes = loaded(Level::Std, &Config::default());
    probes.attach().expect("attach");
    let (events, _) = record_exchange(&mut probes, false);
    let counts = count_by_kind(&events);
    println!("{counts:?}");
    for kind in [Kind::CompHandler, Kind::SchedSwitch, Kind::SchedWaking, Kind::SchedWakeup, Kind::CqPost, Kind::RxePost, Kind::RxeXmit] {
        assert_eq!(counts.get(kind.name()), None, "{kind:?} of an untracked process");
    }
    let handler = hits(&probes).into_iter().find(|(hook, _)| *hook == "K5 completion handler").expect("planned");
    assert!(handler.1 >= u64::from(ITERATIONS), "the probe itself ran: {handler:?}");
}

#[test]
#[ignore = "runs in the VM"]
fn detaching_removes_every_probe() {
    let mut probes = loaded(Level::Std, &everything());
    for round in 0..3 {
        probes.attach().expect("attach");
        assert!(probed_list().is_none_or(|list| list.contains("rxe_cq_post")), "round {round}: not in the kernel's lists of probes");
        let before = hits(&probes);
        record_exchange(&mut probes, true);
        let after = hits(&probes);
        assert_ne!(before, after, "round {round}: attached, but no hits");
        probes.detach();
        if let Some(list) = probed_list() {
            assert!(!list.contains("rxe_cq_post") && !list.contains("ib_uverbs_comp_handler"), "round {round}: still there:\n{list}");
        }
        probes.drain(|_| ());
        let before = hits(&probes);
        let (events, _) = record_exchange(&mut probes, true);
        assert_eq!(before, hits(&probes), "round {round}: hits although detached");
        assert!(events.is_empty(), "round {round}: {} records although detached", events.len());
    }
    assert_nothing_lost(&probes);
}

/// The kernel's own lists of kprobes and of functions with trampolines, where debugfs and tracefs are mounted.
fn probed_list() -> Option<String> {
    let kprobes = std::fs::read_to_string("/sys/kernel/debug/kprobes/list").ok();
    let functions = std::fs::read_to_string("/sys/kernel/tracing/enabled_functions").ok();
    if kprobes.is_none() || functions.is_none() {
        println!("debugfs or tracefs is not mounted: the hit counts alone tell");
    }
    Some(kprobes? + &functions?)
}

#[test]
#[ignore = "runs in the VM"]
fn a_small_ring_loses_records_and_says_so() {
    let mut probes = loaded(Level::Std, &Config { ring_bytes: 4096, trace_all_qps: true, ..Config::default() });
    probes.attach().expect("attach");
    let mut pingpong = Pingpong::start(ITERATIONS);
    pingpong.go();
    let deadline = Instant::now() + EXCHANGE_DEADLINE;
    while !pingpong.is_done().unwrap_or_else(|why| panic!("{why}")) {
        assert!(Instant::now() < deadline, "the exchange did not end within {EXCHANGE_DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    probes.detach();
    probes.drain(|_| ());
    let losses = probes.losses().expect("losses");
    println!("{losses:?}");
    assert!(losses.lost() > 0, "a ring of one page held everything");
    for row in &losses.kinds {
        assert_eq!(row.attempted, row.delivered + row.lost, "{row:?}");
    }
}

#[test]
#[ignore = "runs in the VM"]
fn the_clocks_are_the_same() {
    let probes = loaded(Level::Min, &Config::default());
    let check = probes.clock_check();
    println!("{check:?}, width {} ns", check.width_ns());
    assert!(check.holds(), "{check:?}");
    assert!(check.width_ns() < 100_000_000, "a bracket that wide proves nothing");
}

#[test]
#[ignore = "runs in the VM"]
fn the_mlx5_poll_probe_attaches_and_stays_silent() {
    let _ = std::process::Command::new("modprobe").arg("mlx5_ib").status();
    let mut probes = loaded(Level::Std, &everything());
    probes.attach().expect("attach");
    record_exchange(&mut probes, true);
    let name = "mlx5_ib_poll_cq (kernel consumers)";
    let hook = probes.hooks().expect("hooks").into_iter().find(|hook| hook.planned.hook == name).expect("planned");
    assert!(hook.attached, "{}", hook.planned.reason);
    assert_eq!(hook.hits, 0);
    assert!(hook.planned.silence.is_some());
}
