//! The sentences on what the probes need and may do, each on a tree of files in which exactly that is so.
use super::tests::{doctor, find, good};
use super::{Finding, Findings, Severity};
use crate::machine::fixture::Tree;

#[test]
fn an_ordinary_user_is_told_what_is_missing() {
    let tree = good()
        .file("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n")
        .file("proc/self/limits", "Max locked memory         65536                65536                bytes\n")
        .file("proc/sys/kernel/perf_event_paranoid", "3\n");
    let findings = doctor(&tree, None);
    assert_eq!(find(&findings, "probes.rights").severity, Severity::Warn);
    assert_eq!(find(&findings, "limits.memlock").severity, Severity::Warn);
    assert!(find(&findings, "limits.memlock").found.contains("64 kiB"));
    assert_eq!(find(&findings, "probes.perf_event_paranoid").severity, Severity::Note);
    assert_eq!(findings.exit_code(), 0);
}

/// The findings of one id; an area may say nothing about it.
fn said<'f>(findings: &'f Findings, id: &str) -> Option<&'f Finding> {
    findings.findings.iter().find(|finding| finding.id == id)
}

/// Found, its effect and command hold these words; every such finding tells what to do.
fn assert_said(tree: &Tree, id: &str, severity: Severity, words: [&str; 3]) {
    let findings = doctor(tree, None);
    let finding = find(&findings, id);
    assert_eq!(finding.severity, severity, "{finding:?}");
    let [found, effect, command] = words;
    assert!(finding.found.contains(found), "{finding:?}");
    assert!(finding.effect.as_deref().unwrap_or_default().contains(effect), "{finding:?}");
    assert!(finding.command.as_deref().unwrap_or_default().contains(command), "{finding:?}");
    assert_eq!(findings.exit_code(), 0, "{id} takes stages away, and does not make a measurement impossible");
}

#[test]
fn lockdown_modes() {
    let with = |modes: &str| good().file("sys/kernel/security/lockdown", modes);
    let ok = Severity::Ok;
    assert_said(&with("[none] integrity confidentiality\n"), "probes.lockdown", ok, ["none", "", ""]);
    assert_said(
        &with("none [integrity] confidentiality\n"),
        "probes.lockdown",
        ok,
        ["integrity: kprobes and reads of kernel memory are allowed", "", ""],
    );
    let words = ["confidentiality", "boot with lockdown=integrity", "/proc/cmdline"];
    assert_said(&with("none integrity [confidentiality]\n"), "probes.lockdown", Severity::Warn, words);
}

#[test]
fn types_that_are_missing() {
    let tree = good().file("sys/module/ib_uverbs/initstate", "live\n");
    assert_said(&tree, "probes.module_btf", Severity::Note, ["modules ib_uverbs", "built-in table", ""]);
    tree.remove("sys/kernel/btf");
    assert_said(&tree, "probes.btf", Severity::Warn, ["no types of the kernel", "run-queue stages are absent", "CONFIG_DEBUG_INFO_BTF"]);
}

#[test]
fn kprobes_that_are_not_there_or_off() {
    let tree = good();
    tree.remove("sys/bus/event_source/devices/kprobe");
    let words = ["offers no kprobes", "only scheduler, interrupt and workqueue stages", "CONFIG_KPROBES="];
    assert_said(&tree, "probes.kprobes", Severity::Warn, words);
    let words = ["not as events", "boot a kernel", "CONFIG_KPROBE_EVENTS="];
    assert_said(&tree.file("sys/kernel/debug/kprobes/list", ""), "probes.kprobes", Severity::Warn, words);
    let off = good().file("sys/kernel/debug/kprobes/enabled", "0\n");
    assert_said(&off, "probes.kprobes", Severity::Warn, ["switched off", "never fire", "kprobes/enabled"]);
    let off = good().file("proc/sys/kernel/ftrace_enabled", "0\n");
    assert_said(&off, "probes.kprobes", Severity::Warn, ["kernel.ftrace_enabled 0", "do not fire", "kernel.ftrace_enabled=1"]);
    let on = good().file("proc/sys/kernel/ftrace_enabled", "1\n").file("sys/kernel/debug/kprobes/enabled", "1\n");
    assert_said(&on, "probes.kprobes", Severity::Ok, ["there", "", ""]);
}

#[test]
fn tracefs_that_is_not_there_or_not_mounted() {
    assert_said(&good(), "probes.tracefs", Severity::Note, ["not mounted", "do not need it", "mount -t tracefs"]);
    let none = good().file("proc/filesystems", "nodev\tsysfs\nnodev\tdebugfs\n");
    assert_said(&none, "probes.tracefs", Severity::Warn, ["no tracefs (CONFIG_TRACING)", "no kernel stage", "CONFIG_TRACING="]);
    let there = good().file("proc/filesystems", "nodev\ttracefs\n").file("sys/kernel/tracing/events/enable", "0\n");
    assert_said(&there, "probes.tracefs", Severity::Ok, ["/sys/kernel/tracing", "", ""]);
}

#[test]
fn a_probe_behind_an_endbr_is_harmless_and_said() {
    let cpuinfo = "model name\t: Some CPU\nflags\t\t: fpu ibt user_shstk\n";
    let tree = good().file("proc/cpuinfo", cpuinfo);
    assert_said(&tree, "probes.ibt", Severity::Ok, ["ENDBR", "", ""]);
    assert!(said(&doctor(&tree.file("proc/cmdline", "quiet ibt=off\n"), None), "probes.ibt").is_none());
    assert!(said(&doctor(&good(), None), "probes.ibt").is_none());
}

#[test]
fn hidden_addresses_say_what_is_lost() {
    const HIDDEN: &str = "0000000000000000 A fixed_percpu_data\n0000000000000000 T _stext\n";
    const SHOWN: &str = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n";
    let with = |level: &str, symbols: &str| good().file("proc/sys/kernel/kptr_restrict", level).file("proc/kallsyms", symbols);
    let lost = "queue and start are absent";
    assert_said(&with("2\n", HIDDEN), "probes.kptr_restrict", Severity::Note, ["kptr_restrict 2, hidden", lost, "kernel.kptr_restrict=1"]);
    assert_said(&with("1\n", HIDDEN), "probes.kptr_restrict", Severity::Note, ["kptr_restrict 1, hidden", lost, "sudo"]);
    assert_said(&with("1\n", SHOWN), "probes.kptr_restrict", Severity::Ok, ["kptr_restrict 1", "", ""]);
    // Symbols that cannot be read at all: the setting alone tells.
    let unread = good().file("proc/sys/kernel/kptr_restrict", "2\n");
    assert_said(&unread, "probes.kptr_restrict", Severity::Note, ["hidden", lost, "sysctl"]);
}

#[test]
fn a_container_is_told_what_does_not_match() {
    let host = || good().link("proc/self/ns/pid", "pid:[4026531836]").link("proc/self/ns/user", "user:[4026531837]");
    let findings = doctor(&host(), None);
    assert!(said(&findings, "probes.process_namespace").is_none() && said(&findings, "probes.user_namespace").is_none());
    let contained = || good().link("proc/self/ns/pid", "pid:[4026532201]").link("proc/self/ns/user", "user:[4026532199]");
    let tree = contained();
    assert_said(&tree, "probes.process_namespace", Severity::Warn, ["not those of the host", "do not match", "--pid=host"]);
    assert_said(&tree, "probes.user_namespace", Severity::Warn, ["user namespace", "do not count", "on the host"]);

    let few = "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\nSeccomp:\t2\nSeccomp_filters:\t1\n";
    let tree = tree.file("proc/self/status", few);
    assert_said(&tree, "probes.rights", Severity::Warn, ["CAP_BPF no", "--cap-add PERFMON", "--cap-add BPF"]);
    assert_said(&tree, "probes.seccomp", Severity::Note, ["seccomp", "EPERM", "seccomp=unconfined"]);
    assert!(said(&doctor(&good(), None), "probes.seccomp").is_none());
}

#[test]
fn settings_that_bind_users_only() {
    let user = || good().file("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n");
    let path = "proc/sys/kernel/unprivileged_bpf_disabled";
    let id = "probes.unprivileged_bpf";
    assert_said(&user().file(path, "2\n"), id, Severity::Note, ["disabled 2", "no program at all", "sudo"]);
    assert_said(&user().file(path, "0\n"), id, Severity::Note, ["disabled 0", "all the same", "sudo"]);
    assert_said(&good().file(path, "2\n"), id, Severity::Ok, ["does not bind", "", ""]);
    let path = "proc/sys/kernel/perf_event_paranoid";
    assert_said(&user().file(path, "2\n"), "probes.perf_event_paranoid", Severity::Note, ["paranoid 2", "no kprobes", "sudo"]);
    assert_said(&good().file(path, "4\n"), "probes.perf_event_paranoid", Severity::Ok, ["paranoid 4", "", ""]);
    // The two capabilities alone are enough, without root.
    let capable = good().file("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t000000c000000000\n");
    assert_said(&capable, "probes.rights", Severity::Ok, ["user 1000: CAP_BPF yes, CAP_PERFMON yes", "", ""]);
}
