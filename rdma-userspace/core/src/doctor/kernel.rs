//! Kernel, virtualisation and clock.
use super::context::Context;
use super::finding::Finding;

pub(super) const CHECKS: &[fn(&Context<'_>) -> Vec<Finding>] = &[kernel, machine, clocksource, time_namespace];

fn kernel(context: &Context<'_>) -> Vec<Finding> {
    let kernel = &context.host.kernel;
    vec![if kernel.is_empty() {
        Finding::note("kernel.version", "the kernel's version is not told")
    } else if context.host.realtime {
        Finding::note("kernel.version", format!("kernel {kernel}, PREEMPT_RT"))
            .effect("interrupts and softirqs run in threads and locks can sleep: more stages, other offsets; samples get the flag RT")
    } else {
        Finding::ok("kernel.version", format!("kernel {kernel}"))
    }]
}

fn machine(context: &Context<'_>) -> Vec<Finding> {
    let host = &context.host;
    vec![match &host.hypervisor {
        _ if host.emulated => Finding::warn("kernel.machine", format!("emulated machine ({})", host.cpu_model))
            .effect("durations are the emulator's, not a computer's: order, counts and shares hold"),
        Some(name) => Finding::note("kernel.machine", format!("virtual machine, hypervisor: {name}"))
            .effect("interrupts and idle exits pass the hypervisor, which no probe in here sees: samples get the flag GUEST"),
        None => Finding::ok("kernel.machine", "no hypervisor"),
    }]
}

fn clocksource(context: &Context<'_>) -> Vec<Finding> {
    let Some(current) = &context.host.clocksource else {
        return vec![Finding::note("kernel.clocksource", "the clock source is not told")];
    };
    // Those that user space reads without a system call (vDSO).
    const FAST: &[&str] = &["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
    if FAST.contains(&current.as_str()) {
        return vec![Finding::ok("kernel.clocksource", format!("clock source {current}: read without a system call"))];
    }
    let finding = Finding::warn("kernel.clocksource", format!("clock source {current}"))
        .effect("each time stamp is a system call or a slow device read: hundreds of ns to microseconds, and in a virtual machine an exit");
    let available = context.root.text("/sys/devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
    let better = FAST.iter().find(|name| available.split_whitespace().any(|word| word == **name));
    vec![match better {
        Some(name) => finding.command(format!("echo {name} | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource")),
        None => finding.command("sudo dmesg | grep -iE 'tsc|clocksource'  # why the kernel does not trust the TSC"),
    }]
}

/// A time namespace shifts CLOCK_MONOTONIC for processes, but not for the probes.
fn time_namespace(context: &Context<'_>) -> Vec<Finding> {
    let text = context.root.text("/proc/self/timens_offsets").unwrap_or_default();
    let shifted = text.lines().find(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("monotonic") && words.any(|word| word != "0")
    });
    let Some(line) = shifted else { return Vec::new() };
    vec![
        Finding::warn(
            "kernel.time_namespace",
            format!("a time namespace shifts the clock: {}", line.split_whitespace().collect::<Vec<_>>().join(" ")),
        )
        .effect(
            "the runner's stamps and the probes' stamps differ by that offset and cannot be joined as they are: run outside this container",
        ),
    ]
}
