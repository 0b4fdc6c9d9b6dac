//! What the kernel probes need of the kernel: lockdown, types, kprobes, tracefs, addresses, the compiler for BPF. A run without
//! them works and shows fewer stages. What this process may do is in `rights.rs`.
use super::context::Context;
use super::finding::Finding;
use crate::machine::command_line;
use crate::machine::rights::{CapabilitySet, effective_uid, has_capability};
use std::io::Read;

pub(super) const CHECKS: &[fn(&Context<'_>) -> Vec<Finding>] = &[lockdown, btf, kprobes, entry, tracefs, addresses, jit];

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
        "confidentiality" => Finding::warn("probes.lockdown", found)
            .effect(
                "the kernel refuses kprobes and reads of its memory, so no kernel stage; a mode in force cannot be lowered: boot with \
                 lockdown=integrity (Secure Boot may stay on), which allows both",
            )
            .command("grep -o 'lockdown=[a-z]*' /proc/cmdline /etc/default/grub  # what sets it; then update-grub and reboot"),
        "integrity" => Finding::ok("probes.lockdown", format!("{found}: kprobes and reads of kernel memory are allowed, nothing is lost")),
        _ => Finding::ok("probes.lockdown", found),
    }]
}

fn btf(context: &Context<'_>) -> Vec<Finding> {
    let dir = "/sys/kernel/btf";
    let mut findings = vec![if context.root.exists(format!("{dir}/vmlinux")) {
        Finding::ok("probes.btf", "types of the kernel (BTF vmlinux): there")
    } else {
        Finding::warn("probes.btf", "no types of the kernel (BTF vmlinux)")
            .effect("the scheduler's tracepoints cannot be read, so that wake-up and run-queue stages are absent, and other offsets come from a built-in table that fits the distributions' kernels only; boot a kernel with CONFIG_DEBUG_INFO_BTF (Debian, Ubuntu, RHEL and SUSE have it)")
            .command("grep CONFIG_DEBUG_INFO_BTF /boot/config-$(uname -r)")
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
            "offsets inside them come from a built-in table, and the plan says so: nothing to do where the plan has them. Kernels before 5.11 \
             have no types of modules; a vendor's module gets them when it is built with pahole and CONFIG_DEBUG_INFO_BTF_MODULES",
        ));
    } else if !there.is_empty() {
        findings.push(Finding::ok("probes.module_btf", format!("types of the modules {}: there", there.join(", "))));
    }
    findings
}

fn kprobes(context: &Context<'_>) -> Vec<Finding> {
    let absent = "the completion handler and the driver cannot be watched: only scheduler, interrupt and workqueue stages are left";
    if !context.root.exists("/sys/bus/event_source/devices/kprobe/type") {
        // debugfs has this folder from CONFIG_KPROBES alone; only root can look into it.
        let has_kprobes = context.root.exists("/sys/kernel/debug/kprobes/list");
        let found = if has_kprobes {
            "kprobes exist, but not as events (CONFIG_KPROBE_EVENTS is off): no program can be attached to one"
        } else {
            "this kernel offers no kprobes (CONFIG_KPROBES, CONFIG_KPROBE_EVENTS)"
        };
        return vec![
            Finding::warn("probes.kprobes", found)
                .effect(format!("{absent}; boot a kernel that has them (the distributions' kernels do)"))
                .command("grep -E 'CONFIG_KPROBES=|CONFIG_KPROBE_EVENTS=' /boot/config-$(uname -r)"),
        ];
    }
    if context.number("/sys/kernel/debug/kprobes/enabled") == Some(0) {
        return vec![
            Finding::warn("probes.kprobes", "kprobes are switched off (debugfs kprobes/enabled is 0)")
                .effect(format!("probes attach without an error and never fire: {absent}"))
                .command("echo 1 | sudo tee /sys/kernel/debug/kprobes/enabled"),
        ];
    }
    if context.number("/proc/sys/kernel/ftrace_enabled") == Some(0) {
        return vec![
            Finding::warn(
                "probes.kprobes",
                "function tracing is switched off (kernel.ftrace_enabled 0), and kprobes on function entries use it",
            )
            .effect(format!("such probes do not fire: {absent}"))
            .command("sudo sysctl -w kernel.ftrace_enabled=1"),
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

/// Indirect branch tracking: functions begin with ENDBR, and the kernel puts a probe behind it.
fn entry(context: &Context<'_>) -> Vec<Finding> {
    let cpuinfo = context.root.text("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    if command_line::has(context.root, "ibt=off") || !flags.split_whitespace().any(|flag| flag == "ibt") {
        return Vec::new();
    }
    vec![Finding::ok(
        "probes.ibt",
        "the CPU has indirect branch tracking (IBT): on a kernel that uses it a probe lands behind the ENDBR of its function, 4 bytes later; \
         harmless, nothing to do",
    )]
}

fn tracefs(context: &Context<'_>) -> Vec<Finding> {
    let dirs = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let mounted = dirs.into_iter().find(|dir| context.root.exists(format!("{dir}/events")));
    let filesystems = context.root.text("/proc/filesystems");
    let has_tracefs = filesystems.is_none_or(|list| list.split_whitespace().any(|name| name == "tracefs"));
    let lost = "the list of tracepoints cannot be read: the plan goes by the kernel's symbols; the probes themselves do not need it";
    vec![match mounted {
        Some(dir) => Finding::ok("probes.tracefs", format!("tracefs: {dir}")),
        None if !has_tracefs => Finding::warn("probes.tracefs", "this kernel has no tracefs (CONFIG_TRACING)")
            .effect("without it there are neither tracepoints nor kprobes, so no kernel stage; boot a kernel that has it")
            .command("grep -E 'CONFIG_TRACING=|CONFIG_FTRACE=' /boot/config-$(uname -r)"),
        // An ordinary user may not look into the folder: that says nothing about it.
        None if effective_uid(context.root) != Some(0) => {
            Finding::note("probes.tracefs", "tracefs cannot be looked into without root").effect(lost).command("sudo rdmascope doctor")
        }
        None => Finding::note("probes.tracefs", "tracefs is not mounted")
            .effect(lost)
            .command("sudo mount -t tracefs tracefs /sys/kernel/tracing"),
    }]
}

/// What the kernel shows of its addresses. The first symbols tell: where they are hidden, all are 0.
fn addresses(context: &Context<'_>) -> Vec<Finding> {
    let Some(level) = context.number("/proc/sys/kernel/kptr_restrict") else { return Vec::new() };
    let found = format!("kernel addresses: kptr_restrict {level}");
    let hidden = are_hidden(context).unwrap_or(level >= 2 || level == 1 && !has_capability(context.root, CapabilitySet::SYSLOG));
    if !hidden {
        return vec![Finding::ok("probes.kptr_restrict", found)];
    }
    let finding = Finding::note("probes.kptr_restrict", format!("{found}, hidden from this process")).effect(
        "probes attach by name and work; lost are the driver's work items (their queue and start are absent from the breakdown), and every \
         tasklet is recorded because the driver's cannot be told apart",
    );
    vec![finding.command(if level >= 2 {
        "sudo sysctl -w kernel.kptr_restrict=1  # and run as root, or with CAP_SYSLOG"
    } else {
        "sudo rdmascope doctor  # root sees them; another user needs CAP_SYSLOG"
    })]
}

fn are_hidden(context: &Context<'_>) -> Option<bool> {
    let file = std::fs::File::open(context.root.path("/proc/kallsyms")).ok()?;
    let mut head = Vec::new();
    // The whole list has megabytes; its first page is enough.
    file.take(4096).read_to_end(&mut head).ok()?;
    let text = String::from_utf8_lossy(&head);
    let mut addresses = text.lines().filter_map(|line| line.split(' ').next()).filter(|word| word.len() == 16).peekable();
    addresses.peek()?;
    // Symbols of the per-CPU area are small offsets on x86, the first of them 0: one that is not 0 says that addresses are shown.
    Some(addresses.all(|address| address.bytes().all(|digit| digit == b'0')))
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
