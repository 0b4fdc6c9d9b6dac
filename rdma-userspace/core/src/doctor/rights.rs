//! What this process may do: capabilities, namespaces and seccomp of a container, and the settings that bind ordinary users.
use super::context::Context;
use super::finding::Finding;
use crate::machine::proc_text::field;
use crate::machine::rights::{CapabilitySet, effective_capabilities, effective_uid};

pub(super) const CHECKS: &[fn(&Context<'_>) -> Vec<Finding>] =
    &[capabilities, process_namespace, user_namespace, seccomp, perf_events, unprivileged_bpf];

/// Inode numbers of the first namespaces (`include/linux/proc_ns.h`): those of the host itself.
const FIRST_PROCESS_NAMESPACE: &str = "pid:[4026531836]";
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";

/// May attach probes, as far as capabilities go; none are told: no.
fn may_probe(context: &Context<'_>) -> bool {
    let held = effective_capabilities(context.root).unwrap_or(CapabilitySet::empty());
    held.contains(CapabilitySet::SYS_ADMIN) || held.contains(CapabilitySet::BPF | CapabilitySet::PERFMON)
}

/// The process is not one of the host's own, as its process namespace tells.
fn is_contained(context: &Context<'_>) -> bool {
    context.root.link_name("/proc/self/ns/pid").is_some_and(|name| name != FIRST_PROCESS_NAMESPACE)
}

fn capabilities(context: &Context<'_>) -> Vec<Finding> {
    let Some(held) = effective_capabilities(context.root) else { return Vec::new() };
    let user = match effective_uid(context.root) {
        Some(0) => "root".to_owned(),
        Some(uid) => format!("user {uid}"),
        None => "user not told".to_owned(),
    };
    let names = [(CapabilitySet::BPF, "CAP_BPF"), (CapabilitySet::PERFMON, "CAP_PERFMON"), (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN")];
    let list = names.map(|(one, name)| format!("{name} {}", if held.contains(one) { "yes" } else { "no" })).join(", ");
    let found = format!("{user}: {list}");
    if may_probe(context) {
        return vec![Finding::ok("probes.rights", found)];
    }
    let lost = "a run works, but shows no kernel stage";
    let finding = Finding::warn("probes.rights", format!("{found}: probes cannot be attached"));
    vec![if is_contained(context) {
        finding
            .effect(format!("{lost}; a container gets them from its start: --cap-add BPF --cap-add PERFMON (or --privileged)"))
            .command("docker run --pid=host --cap-add BPF --cap-add PERFMON --device /dev/infiniband …")
    } else {
        finding.effect(format!("{lost}; with sudo before the same command it does")).command("sudo rdmascope doctor")
    }]
}

/// The kernel's records carry the host's process ids.
fn process_namespace(context: &Context<'_>) -> Vec<Finding> {
    if !is_contained(context) {
        return Vec::new();
    }
    vec![
        Finding::warn("probes.process_namespace", "a container: process ids in here are not those of the host")
            .effect(
                "the probes choose threads and CQ owners by the host's ids (tgid), which do not match those in here: what belongs to the run \
                 is taken for a stranger's. Run on the host, or give the container the host's process ids",
            )
            .command("docker run --pid=host …  # in a pod: hostPID: true"),
    ]
}

fn user_namespace(context: &Context<'_>) -> Vec<Finding> {
    if context.root.link_name("/proc/self/ns/user").is_none_or(|name| name == FIRST_USER_NAMESPACE) {
        return Vec::new();
    }
    vec![
        Finding::warn("probes.user_namespace", "a user namespace: root in here is an ordinary user of the host")
            .effect("its capabilities do not count for BPF and kprobes, so no kernel stage; run without the user namespace (not rootless)")
            .command("sudo rdmascope doctor  # on the host"),
    ]
}

fn seccomp(context: &Context<'_>) -> Vec<Finding> {
    let status = context.root.text("/proc/self/status").unwrap_or_default();
    if field(&status, "Seccomp").is_none_or(|mode| mode == "0") {
        return Vec::new();
    }
    vec![
        Finding::note("probes.seccomp", "a seccomp filter checks the system calls of this process")
            .effect(
                "it may refuse bpf() and perf_event_open() with EPERM whatever the capabilities are (the default filters of containers do \
                 without CAP_BPF and CAP_PERFMON, older ones always); then there is no kernel stage",
            )
            .command("docker run --security-opt seccomp=unconfined …"),
    ]
}

fn perf_events(context: &Context<'_>) -> Vec<Finding> {
    let Some(level) = context.number("/proc/sys/kernel/perf_event_paranoid") else { return Vec::new() };
    let found = format!("perf events: perf_event_paranoid {level}");
    // It does not bind who has CAP_PERFMON.
    let held = effective_capabilities(context.root).unwrap_or(CapabilitySet::empty());
    let bound = !held.intersects(CapabilitySet::PERFMON | CapabilitySet::SYS_ADMIN);
    vec![if bound && level > 1 {
        Finding::note("probes.perf_event_paranoid", found)
            .effect("no kprobes for this user; it does not bind root or who has CAP_PERFMON")
            .command("sudo rdmascope doctor")
    } else {
        Finding::ok("probes.perf_event_paranoid", found)
    }]
}

fn unprivileged_bpf(context: &Context<'_>) -> Vec<Finding> {
    let Some(level) = context.number("/proc/sys/kernel/unprivileged_bpf_disabled") else { return Vec::new() };
    let found = format!("BPF for ordinary users: unprivileged_bpf_disabled {level}");
    if may_probe(context) {
        return vec![Finding::ok("probes.unprivileged_bpf", format!("{found}; does not bind this process"))];
    }
    let effect = if level == 0 {
        "0 lets every user load programs, but none that watch the kernel: the probes need CAP_BPF and CAP_PERFMON all the same"
    } else {
        "this user can load no program at all; leave the setting as it is and run with CAP_BPF and CAP_PERFMON, or as root"
    };
    vec![Finding::note("probes.unprivileged_bpf", found).effect(effect).command("sudo rdmascope doctor")]
}
