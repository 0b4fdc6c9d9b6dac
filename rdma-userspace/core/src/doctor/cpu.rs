//! CPUs: number, load, frequency, idle states, threads of a core, isolation.
use super::context::Context;
use super::finding::Finding;
use crate::machine::command_line;
use crate::machine::proc_text::cpu_list;
use capture::text::units::counted;
use std::collections::BTreeSet;

pub(super) const CHECKS: &[fn(&Context<'_>) -> Vec<Finding>] = &[count, load, governor, turbo, idle_states, siblings, isolation];

const CPU_DIR: &str = "/sys/devices/system/cpu";

/// An idle state whose exit takes longer than this is worth a warning: it is a large part of a wake-up.
const LONG_EXIT_US: u64 = 10;

fn cpus(context: &Context<'_>) -> Vec<u32> {
    context.root.text(format!("{CPU_DIR}/online")).and_then(|list| cpu_list(&list)).unwrap_or_default()
}

fn count(context: &Context<'_>) -> Vec<Finding> {
    let cpus = context.host.cpus;
    let model = if context.host.cpu_model.is_empty() { "model not told" } else { &context.host.cpu_model };
    let found = format!("{} online, {model}", counted(cpus.into(), "CPU"));
    vec![match cpus {
        0 => Finding::note("cpu.count", "the number of CPUs is not told"),
        1 => Finding::warn("cpu.count", found).effect("with --loopback both ends, the kernel's workers and the reader of the probes share one CPU: poll against event cannot be judged"),
        2 | 3 => Finding::note("cpu.count", found)
            .effect("with --loopback two pollers leave no CPU for the kernel's workers: on rxe from 6.12 on, polling then looks slower than it is"),
        _ => Finding::ok("cpu.count", found),
    }]
}

fn load(context: &Context<'_>) -> Vec<Finding> {
    let text = context.root.text("/proc/loadavg").unwrap_or_default();
    let Some(load) = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok()) else { return Vec::new() };
    let found = format!("load of the last minute: {load:.2} on {}", counted(context.host.cpus.into(), "CPU"));
    // Half a CPU of foreign work is enough to meet the measured thread now and then.
    vec![if load < 0.5 {
        Finding::ok("cpu.load", found)
    } else {
        Finding::warn("cpu.load", found)
            .effect("other work takes CPUs away: slow samples, and runs that do not settle")
            .command("top -b -n 1 | head -20")
    }]
}

fn governor(context: &Context<'_>) -> Vec<Finding> {
    let each = |cpu: &u32| context.root.text(format!("{CPU_DIR}/cpu{cpu}/cpufreq/scaling_governor"));
    let governors: BTreeSet<String> = cpus(context).iter().filter_map(each).collect();
    let names = governors.iter().cloned().collect::<Vec<_>>().join(", ");
    vec![if governors.is_empty() {
        Finding::note("cpu.governor", "no frequency governor: the hypervisor or the firmware sets the frequency")
    } else if names == "performance" {
        Finding::ok("cpu.governor", "frequency governor: performance")
    } else {
        Finding::warn("cpu.governor", format!("frequency governor: {names}"))
            .effect(
                "in event mode the CPU clocks down while it waits and needs time to speed up: event mode looks slower than it has to be",
            )
            .command("echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
    }]
}

fn turbo(context: &Context<'_>) -> Vec<Finding> {
    let off = match (context.number(&format!("{CPU_DIR}/intel_pstate/no_turbo")), context.number(&format!("{CPU_DIR}/cpufreq/boost"))) {
        (Some(no_turbo), _) => no_turbo == 1,
        (None, Some(boost)) => boost == 0,
        (None, None) => return Vec::new(),
    };
    vec![if off {
        Finding::ok("cpu.turbo", "turbo is off: the frequency does not depend on the other cores")
    } else {
        Finding::note("cpu.turbo", "turbo is on")
            .effect("the frequency depends on temperature and on what other cores do: runs differ by some percent")
    }]
}

/// One idle state of one CPU.
struct Idle {
    name: String,
    latency_us: u64,
    disabled: bool,
}

fn idle_states(context: &Context<'_>) -> Vec<Finding> {
    if command_line::has(context.root, "idle=poll") {
        return vec![
            Finding::note("cpu.idle", "idle CPUs poll (idle=poll)")
                .effect("no idle exit in event mode: wake-ups are as fast as they get, at full power on every CPU"),
        ];
    }
    // CPUs of one machine may differ (big and little cores): the one with the longest exit counts.
    let per_cpu: Vec<(u32, Vec<Idle>)> =
        cpus(context).into_iter().map(|cpu| (cpu, states(context, cpu))).filter(|(_, states)| !states.is_empty()).collect();
    let longest = |states: &[Idle]| states.iter().filter(|state| !state.disabled).map(|state| state.latency_us).max().unwrap_or(0);
    let Some((cpu, states)) = per_cpu.iter().max_by_key(|(cpu, states)| (longest(states), std::cmp::Reverse(*cpu))) else {
        return vec![
            Finding::note("cpu.idle", "the kernel knows no idle states: the hypervisor decides what an idle CPU does")
                .effect("in event mode a wake-up may include an exit to the hypervisor, which no probe in this machine sees"),
        ];
    };
    let driver = context.root.text(format!("{CPU_DIR}/cpuidle/current_driver")).unwrap_or_else(|| "driver not told".to_owned());
    let list = states.iter().map(|state| {
        let off = if state.disabled { " (off)" } else { "" };
        format!("{} {} µs{off}", state.name, state.latency_us)
    });
    let limit = latency_limit_us(context);
    let limited = limit.map(|limit| format!("; cpu_dma_latency allows {limit} µs")).unwrap_or_default();
    let found = format!("idle states of CPU {cpu} ({driver}), exit latency: {}{limited}", list.collect::<Vec<_>>().join(", "));
    let allowed = |state: &&Idle| !state.disabled && limit.is_none_or(|limit| state.latency_us <= limit);
    let worst_us = states.iter().filter(allowed).map(|state| state.latency_us).max().unwrap_or(0);
    vec![if worst_us <= LONG_EXIT_US {
        Finding::ok("cpu.idle", found)
    } else {
        Finding::warn("cpu.idle", found)
            .effect(format!("in event mode a wake-up of an idle CPU takes up to {worst_us} µs longer, before any probe can see it"))
            .command(format!("sudo cpupower idle-set -D {LONG_EXIT_US}  # back: sudo cpupower idle-set -E"))
    }]
}

fn states(context: &Context<'_>, cpu: u32) -> Vec<Idle> {
    let dir = format!("{CPU_DIR}/cpu{cpu}/cpuidle");
    let each = |state: &String| {
        Some(Idle {
            name: context.root.text(format!("{dir}/{state}/name"))?,
            latency_us: context.root.number(format!("{dir}/{state}/latency"))?,
            disabled: context.root.number::<u32>(format!("{dir}/{state}/disable")) == Some(1),
        })
    };
    context.root.names(&dir).iter().filter_map(each).collect()
}

/// The longest exit latency that somebody allows through /dev/cpu_dma_latency; `None` without a limit or without the right to read.
fn latency_limit_us(context: &Context<'_>) -> Option<u64> {
    // The file is the limit itself, four bytes; 2000 s is: no limit.
    let bytes: [u8; 4] = context.root.bytes("/dev/cpu_dma_latency")?.try_into().ok()?;
    u64::try_from(i32::from_ne_bytes(bytes)).ok().filter(|&limit_us| limit_us < 2_000_000_000)
}

fn siblings(context: &Context<'_>) -> Vec<Finding> {
    vec![match context.number(&format!("{CPU_DIR}/smt/active")) {
        Some(1) => {
            let list = context.root.text(format!("{CPU_DIR}/cpu0/topology/thread_siblings_list"));
            let example = list.map(|list| format!(" (CPUs {list} are one core)")).unwrap_or_default();
            Finding::note("cpu.smt", format!("two threads per core are on{example}"))
                .effect(
                    "a busy sibling slows a poller down, and a poller slows its sibling: put the two ends on different cores with --cpu",
                )
                .command("lscpu -e=CPU,CORE,SOCKET,NODE")
        }
        Some(_) => Finding::ok("cpu.smt", "one thread per core"),
        None => return Vec::new(),
    }]
}

fn isolation(context: &Context<'_>) -> Vec<Finding> {
    let isolated = context.root.text(format!("{CPU_DIR}/isolated"));
    let tickless = context.root.text(format!("{CPU_DIR}/nohz_full")).filter(|list| list != "(null)");
    let words: Vec<String> = [("isolated", isolated), ("without timer tick", tickless)]
        .into_iter()
        .filter_map(|(what, list)| Some(format!("{what}: {}", list?)))
        .collect();
    vec![if words.is_empty() {
        Finding::note("cpu.isolation", "no CPU is kept free of other work (isolcpus, nohz_full)")
            .effect("timer ticks and other tasks take a polling thread's CPU now and then: they show in the tail")
    } else {
        Finding::ok("cpu.isolation", format!("CPUs {}", words.join("; ")))
    }]
}
