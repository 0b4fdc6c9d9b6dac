//! What the kernel probes need: rights, BTF, tracefs, the kprobe PMU; a run without them works and shows fewer stages.
use super::context::Context;
use super::finding::Finding;
use crate::system::process::{effective_capabilities, effective_uid};

pub(super) const CHECKS: &[fn(&Context<'_>) -> Vec<Finding>] = &[capabilities, lockdown, btf, kprobes, tracefs, symbols, jit];

/// Numbers of `linux/capability.h`.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

fn capabilities(context: &Context<'_>) -> Vec<Finding> {
    let Some(mask) = effective_capabilities(context.root) else { return Vec::new() };
    let has = |number: u32| mask >> number & 1 == 1;
    let user = match effective_uid(context.root) {
        Some(0) => "root".to_owned(),
        Some(uid) => format!("user {uid}"),
        None => "user not told".to_owned(),
    };
    let names = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON"), (CAP_SYS_ADMIN, "CAP_SYS_ADMIN")];
    let list = names.map(|(number, name)| format!("{name} {}", if has(number) { "yes" } else { "no" })).join(", ");
    let found = format!("{user}: {list}");
    vec![if has(CAP_SYS_ADMIN) || has(CAP_BPF) && has(CAP_PERFMON) {
        Finding::ok("probes.rights", found)
    } else {
        Finding::warn("probes.rights", format!("{found}: probes cannot be attached"))
            .effect("a run works, but shows no kernel stage; with sudo before the same command it does")
    }]
}

fn lockdown(context: &Context<'_>) -> Vec<Finding> {
    let Some(mode) = context.choice("/sys/kernel/security/lockdown") else {
        // A folder with other files in it: securityfs is there, and this kernel has no lockdown.
        return vec![if context.root.names("/sys/kernel/security").is_empty() {
            Finding::note("probes.lockdown", "kernel lockdown: not told (securityfs is not mounted)")
                .effect("if it is `confidentiality`, the kernel refuses kprobes")
                .command("sudo mount -t securityfs securityfs /sys/kernel/security")
        } else {
            Finding::ok("probes.lockdown", "kernel lockdown: this kernel has none")
        }];
    };
    let found = format!("kernel lockdown: {mode}");
    vec![match mode.as_str() {
        "confidentiality" => Finding::warn("probes.lockdown", found).effect(
            "the kernel refuses kprobes and reads of its memory, so no kernel stage; lockdown=integrity on its command line allows them",
        ),
        _ => Finding::ok("probes.lockdown", found),
    }]
}

fn btf(context: &Context<'_>) -> Vec<Finding> {
    let dir = "/sys/kernel/btf";
    let mut findings = vec![if context.root.exists(format!("{dir}/vmlinux")) {
        Finding::ok("probes.btf", "types of the kernel (BTF vmlinux): there")
    } else {
        Finding::warn("probes.btf", "no types of the kernel (BTF vmlinux)")
            .effect("offsets come from a built-in table that fits the distributions' kernels only; the plan says which. Kernels with CONFIG_DEBUG_INFO_BTF have them (Debian, Ubuntu)")
    }];
    let mut wanted: Vec<&str> = vec!["ib_core", "ib_uverbs"];
    wanted.extend(context.selected.iter().filter_map(|device| device.driver.as_deref()));
    wanted.sort_unstable();
    wanted.dedup();
    // A module that is built in has its types in vmlinux.
    let loaded: Vec<&str> = wanted.into_iter().filter(|module| context.root.exists(format!("/sys/module/{module}/initstate"))).collect();
    let (there, missing): (Vec<&str>, Vec<&str>) = loaded.into_iter().partition(|module| context.root.exists(format!("{dir}/{module}")));
    if !missing.is_empty() {
        findings.push(Finding::note("probes.module_btf", format!("no types (BTF) of the modules {}", missing.join(", "))).effect(
            "kernels before 5.11 and modules of a vendor's package have none: offsets come from a built-in table, and the plan says so",
        ));
    } else if !there.is_empty() {
        findings.push(Finding::ok("probes.module_btf", format!("types of the modules {}: there", there.join(", "))));
    }
    findings
}

fn kprobes(context: &Context<'_>) -> Vec<Finding> {
    if !context.root.exists("/sys/bus/event_source/devices/kprobe/type") {
        return vec![
            Finding::warn("probes.kprobes", "this kernel offers no kprobes (CONFIG_KPROBES, CONFIG_KPROBE_EVENTS)")
                .effect("the completion handler and the driver cannot be watched: only scheduler and interrupt stages are left; the distributions' kernels have them"),
        ];
    }
    vec![if context.number("/proc/sys/debug/kprobes-optimization") == Some(0) {
        Finding::note("probes.kprobes", "kprobes: there, not optimised")
            .effect("a probe that does not sit on a function's entry costs a trap of about 1 µs")
            .command("sudo sysctl -w debug.kprobes-optimization=1")
    } else {
        Finding::ok("probes.kprobes", "kprobes: there")
    }]
}

fn tracefs(context: &Context<'_>) -> Vec<Finding> {
    let dirs = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let mounted = dirs.into_iter().find(|dir| context.root.exists(format!("{dir}/events")));
    vec![match mounted {
        Some(dir) => Finding::ok("probes.tracefs", format!("tracefs: {dir}")),
        // An ordinary user may not look into the folder: that says nothing about it.
        None if effective_uid(context.root) != Some(0) => Finding::note("probes.tracefs", "tracefs cannot be looked into without root"),
        None => Finding::note("probes.tracefs", "tracefs is not mounted")
            .effect("the formats of tracepoints cannot be checked; the probes themselves do not need it")
            .command("sudo mount -t tracefs tracefs /sys/kernel/tracing"),
    }]
}

fn symbols(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(level) = context.number("/proc/sys/kernel/kptr_restrict") {
        let found = format!("kernel addresses: kptr_restrict {level}");
        findings.push(if level < 2 {
            Finding::ok("probes.kptr_restrict", found)
        } else {
            Finding::note("probes.kptr_restrict", found)
                .effect("addresses of symbols are hidden even from root: probes attach by name, stacks have no names")
                .command("sudo sysctl -w kernel.kptr_restrict=1")
        });
    }
    if let Some(level) = context.number("/proc/sys/kernel/perf_event_paranoid") {
        // It does not bind who has CAP_PERFMON.
        let mask = effective_capabilities(context.root).unwrap_or(0);
        let bound = mask >> CAP_PERFMON & 1 == 0 && mask >> CAP_SYS_ADMIN & 1 == 0;
        let found = format!("perf events: perf_event_paranoid {level}");
        findings.push(if bound && level > 1 {
            Finding::note("probes.perf_event_paranoid", found)
                .effect("no kprobes for this user; with sudo before the same command it does not matter")
        } else {
            Finding::ok("probes.perf_event_paranoid", found)
        });
    }
    findings
}

fn jit(context: &Context<'_>) -> Vec<Finding> {
    match context.number("/proc/sys/net/core/bpf_jit_enable") {
        Some(0) => vec![
            Finding::warn("probes.jit", "BPF programs are interpreted (bpf_jit_enable 0)")
                .effect("every probe costs several times as much")
                .command("sudo sysctl -w net.core.bpf_jit_enable=1"),
        ],
        _ => Vec::new(),
    }
}
