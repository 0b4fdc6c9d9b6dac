//! Every hardware driver's hooks on a real kernel without its hardware: they attach, they stay silent, their offsets are right, and
//! an extract of the kernel gives the same plan. Runs inside the VM (`cargo xtask test`), as root, one thread.

use capture::Level;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::offsets_seen;
use crate::support::pingpong::Pingpong;
use rdmascope_core::probes::drivers::DRIVERS;
use rdmascope_core::probes::offsets::Source;
use rdmascope_core::probes::{Config, Plan, PlanView, Probes, extract};

const EXCHANGE_DEADLINE: Duration = Duration::from_secs(120);
const ITERATIONS: u32 = 200;
/// The layers and the software driver that the exchange itself uses.
const USED: [&str; 3] = ["kernel", "uverbs", "rxe"];

/// Loads every driver that this kernel has, and says which.
fn load_drivers() -> Vec<&'static str> {
    let modules: Vec<&str> = DRIVERS.iter().flat_map(|driver| driver.modules).copied().collect();
    let is_loaded = |module: &&str| Path::new("/sys/module").join(module).exists();
    for module in modules.iter().filter(|module| !is_loaded(module)) {
        // A kernel need not have every driver; which ones it has is printed.
        let _ = Command::new("modprobe").args(["-q", module]).status();
    }
    modules.into_iter().filter(is_loaded).collect()
}

fn plan(level: Level) -> Plan {
    Plan::for_kernel(Path::new("/"), level).expect("facts of the running kernel")
}

#[test]
#[ignore = "runs in the VM"]
fn every_hook_of_every_loaded_driver_attaches_and_stays_silent_without_a_card() {
    let loaded = load_drivers();
    println!("loaded: {}", loaded.join(" "));
    assert!(loaded.contains(&"mlx5_ib") && loaded.contains(&"mlx4_ib") && loaded.len() >= 4, "{loaded:?}");
    let plan = plan(Level::Full);
    println!("{}", PlanView::of(&plan));
    let missing: Vec<_> = plan.missing().map(|hook| (hook.hook, hook.reason.clone())).collect();
    assert!(missing.is_empty(), "this kernel ought to have: {missing:?}");
    for driver in DRIVERS.iter().filter(|driver| driver.modules.iter().any(|module| loaded.contains(module))) {
        assert!(plan.drivers.iter().any(|planned| planned.name == driver.name && planned.chain.is_some() || driver.chains.is_empty()));
        let there = plan.hooks.iter().filter(|hook| hook.driver == driver.name && hook.symbol.is_some()).count();
        println!("{:<8} {there} of {} hooks", driver.name, driver.hooks.len());
        assert!(there > 0, "{} is loaded and has no hook", driver.name);
    }
    let mut probes = Probes::load(&plan, &Config { trace_all_qps: true, ..Config::default() }).expect("the verifier takes every program");
    let begin = Instant::now();
    probes.attach().expect("attach");
    println!("attached in {:?}", begin.elapsed());
    exchange(&mut probes);
    let hooks = probes.hooks().expect("hooks");
    probes.detach();
    for (planned, state) in plan.hooks.iter().zip(&hooks) {
        assert_eq!(planned.symbol.is_some(), state.attached, "{}: {}", planned.hook, state.planned.reason);
        if state.attached {
            println!("{:>8} hits  {}", state.hits, planned.hook);
        }
        let is_foreign = !USED.contains(&planned.driver);
        assert!(!is_foreign || state.hits == 0, "{} fired {} times without a card", planned.hook, state.hits);
    }
    let handler = hooks.iter().find(|state| state.planned.hook == "K5 completion handler").expect("planned");
    assert!(handler.hits >= u64::from(ITERATIONS), "the control: {} completion handlers of the exchange", handler.hits);
    let silent = hooks.iter().find(|state| state.planned.hook == "mlx5_ib_poll_cq (kernel consumers)").expect("planned");
    assert!(silent.attached && silent.hits == 0 && silent.planned.silence.is_some());
}

fn exchange(probes: &mut Probes) {
    let mut pingpong = Pingpong::start(ITERATIONS);
    println!("exchange of {:?}", pingpong.pids());
    pingpong.go();
    let deadline = Instant::now() + EXCHANGE_DEADLINE;
    while !pingpong.is_done().unwrap_or_else(|why| panic!("{why}")) {
        assert!(Instant::now() < deadline, "the exchange did not end within {EXCHANGE_DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(20));
        probes.drain(|_| ());
    }
}

#[test]
#[ignore = "runs in the VM"]
fn interrupt_handlers_are_watched_at_std_where_they_are_threads() {
    load_drivers();
    let is_rt = std::fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1");
    let plan = plan(Level::Std);
    assert_eq!(plan.threaded_irqs, is_rt);
    let hook = plan.hook("K1b mlx5 interrupt handler");
    assert_eq!(hook.is_some_and(|hook| hook.symbol.is_some()), is_rt, "{hook:?}");
}

#[test]
#[ignore = "runs in the VM"]
fn offsets_are_the_ones_of_the_table() {
    load_drivers();
    let plan = plan(Level::Full);
    let has_module_btf = Path::new("/sys/kernel/btf/mlx5_core").exists();
    let expected = offsets_seen::of(&plan.release);
    assert!(!expected.is_empty());
    for (global, bytes) in expected {
        let offset = plan.offsets.get(global).expect("a wanted offset");
        println!("{global:<20} {:>5} {:?}", offset.bytes, offset.source);
        assert_eq!(offset.known(), Some(bytes), "{global}: {offset:?}");
        // Without module BTF some are in the kernel's own (5.10 describes `ib_cq`), and the rest comes from the table.
        assert!(!has_module_btf || offset.source == Source::Btf, "{global}: {offset:?}");
        if !has_module_btf && global == "OFF_MLX5_IRQN" {
            assert_eq!(offset.source, Source::Table);
        }
    }
}

#[test]
#[ignore = "runs in the VM"]
fn an_extract_gives_the_same_plan() {
    load_drivers();
    let to = Path::new("/out/extract");
    let bytes = extract(Path::new("/"), to).expect("an extract");
    println!("extract of {bytes} bytes");
    assert!(bytes < 100_000, "{bytes} bytes");
    for &level in Level::OF_RUNS {
        let (live, extracted) = (plan(level), Plan::for_kernel(to, level).expect("the extract is read"));
        assert_eq!(live.hooks, extracted.hooks, "level {level}");
        assert_eq!(live.drivers, extracted.drivers);
        assert_eq!((live.missed, live.switch_tells_state), (extracted.missed, extracted.switch_tells_state));
        assert_eq!((live.tasklets.len(), live.works.len()), (extracted.tasklets.len(), extracted.works.len()));
        for (name, offset) in live.offsets.iter() {
            assert_eq!(Some(offset), extracted.offsets.get(name), "{name}");
        }
    }
}
