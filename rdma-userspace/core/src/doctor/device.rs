//! Devices and ports: is there one, does it carry traffic, can a program open it.
use super::context::Context;
use super::finding::Finding;
use super::{Severity, text};
use crate::machine::faults;
use crate::machine::rights::effective_uid;
use crate::machine::{RdmaDevice, RdmaPort};
use crate::soft_roce;
use std::os::unix::fs::PermissionsExt;

pub(super) const CHECKS: &[fn(&Context<'_>) -> Vec<Finding>] = &[present, what_it_is, atomics, ports, nodes, stack];

fn present(context: &Context<'_>) -> Vec<Finding> {
    if !context.selected.is_empty() {
        return Vec::new();
    }
    let make = soft_roce_command(context);
    if let Some(name) = context.wanted {
        let names: Vec<&str> = context.devices.iter().map(|device| device.name.as_str()).collect();
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return vec![
            Finding::new("device.present", Severity::Problem, format!("no RDMA device `{name}`; devices here: {there}"))
                .effect("nothing can be measured on it"),
        ];
    }
    let (without_card, command) = match soft_roce::module_missing(context.root) {
        None => ("a software device can be made".to_owned(), make),
        Some(advice) => {
            (format!("a software device needs the module rdma_rxe, which {} does not have: {advice}", context.host.kernel), None)
        }
    };
    let mut finding = Finding::new("device.present", Severity::Problem, "no RDMA device")
        .effect(format!("nothing can be measured; with a card, its driver is not loaded (lspci -nn, dmesg); without one, {without_card}"));
    finding.command = command;
    vec![finding]
}

/// The command that makes a software device on the first interface that could carry one.
fn soft_roce_command(context: &Context<'_>) -> Option<String> {
    let netdevs = soft_roce::status::status_at(context.root).netdevs;
    let usable = |netdev: &&soft_roce::Netdev| netdev.up && netdev.carrier != Some(false);
    let choice = netdevs.iter().filter(usable).find(|netdev| netdev.name != "lo").or_else(|| netdevs.iter().find(usable))?;
    Some(soft_roce::up_command(&choice.name, "rxe0"))
}

fn what_it_is(context: &Context<'_>) -> Vec<Finding> {
    let each = |device: &RdmaDevice| {
        let what = soft_roce::describe(device);
        if device.is_software() {
            return Finding::note("device.kind", format!("{}: {what}, made of software, no firmware", device.name))
                .effect("the CPU does the work of a card: order and shares of the stages are real, latencies are not those of hardware");
        }
        if device.is_emulated() {
            return Finding::note(
                "device.kind",
                format!("{}: {what}, an EMULATED DEVICE: its driver is real, the card is a program", device.name),
            )
            .effect("which hook fires and in which order is real; no time is that of hardware");
        }
        let firmware = device.firmware.as_deref().unwrap_or("not told");
        let node = device.numa_node.map_or("not told".to_owned(), |node| node.to_string());
        Finding::ok("device.kind", format!("{}: {what}, firmware {firmware}, NUMA node {node}", device.name))
    };
    context.selected.iter().map(each).collect()
}

fn atomics(context: &Context<'_>) -> Vec<Finding> {
    let fault_of = |device: &RdmaDevice| {
        let fault = faults::atomics(context.root, device.driver.as_deref()?)?;
        Some(Finding::warn("device.atomics", format!("{}: atomics are refused", device.name)).effect(fault))
    };
    context.selected.iter().filter_map(fault_of).collect()
}

fn ports(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for device in &context.selected {
        if device.ports.is_empty() {
            findings.push(
                Finding::new("device.port", context.blocking(), format!("{}: the kernel lists no port", device.name))
                    .effect("no traffic is possible on it"),
            );
        }
        findings.extend(device.ports.iter().map(|port| one_port(context, device, port)));
    }
    findings
}

fn one_port(context: &Context<'_>, device: &RdmaDevice, port: &RdmaPort) -> Finding {
    let name = format!("{} port {}", device.name, port.number);
    if port.is_active() {
        let rate = if port.rate.is_empty() { "rate not told" } else { &port.rate };
        return Finding::ok("device.port", format!("{name}: ACTIVE, {}, {}, {rate}", port.physical_state, port.link_layer));
    }
    let found = format!("{name}: {}, {}", port.state, port.physical_state);
    let mut finding = Finding::new("device.port", context.blocking(), found).effect("no traffic is possible on this port");
    finding.command = if port.link_layer == "InfiniBand" {
        finding.effect =
            Some("no traffic is possible on this port: check the cable, and that a subnet manager runs in the fabric".to_owned());
        Some(format!("ibstat {} {}", device.name, port.number))
    } else {
        let netdev = device.netdev.clone().or_else(|| port.gids.iter().find_map(|gid| gid.netdev.clone()));
        netdev.map(|netdev| format!("sudo ip link set dev {netdev} up"))
    };
    finding
}

fn nodes(context: &Context<'_>) -> Vec<Finding> {
    let uid = effective_uid(context.root);
    let each = |device: &RdmaDevice| {
        let Some(node) = context.node(device) else {
            let loaded = context.root.exists("/sys/module/ib_uverbs");
            let why = if loaded { "no node in /dev/infiniband" } else { "the module ib_uverbs is not loaded" };
            let command = if loaded { "sudo udevadm trigger --subsystem-match=infiniband_verbs" } else { "sudo modprobe ib_uverbs" };
            return Finding::new("device.node", context.blocking(), format!("{}: {why}", device.name))
                .effect("no program can open the device")
                .command(command);
        };
        let mode = std::fs::metadata(context.root.path(&node)).map(|meta| meta.permissions().mode() & 0o777).ok();
        match mode {
            Some(mode) if uid != Some(0) && mode & 0o006 != 0o006 => {
                Finding::warn("device.node", format!("{}: {node} has mode {mode:o}", device.name))
                    .effect("an ordinary user may not open the device, unless its group lets them")
                    .command(format!("sudo chmod 666 {node}"))
            }
            _ => Finding::ok("device.node", format!("{}: {node}", device.name)),
        }
    };
    context.selected.iter().map(each).collect()
}

/// Drivers of the kernel itself, or those of a vendor's package.
fn stack(context: &Context<'_>) -> Vec<Finding> {
    if context.selected.is_empty() {
        return Vec::new();
    }
    // The compatibility module exists in the vendor's package (MLNX_OFED, DOCA-OFED) only.
    if !context.root.exists("/sys/module/mlx_compat") {
        return vec![Finding::ok("device.stack", format!("drivers of the kernel itself (inbox), {}", context.host.kernel))];
    }
    let version = context.root.text("/sys/module/mlx5_core/version").map_or("version not told".to_owned(), |version| text::plain(&version));
    vec![
        Finding::note("device.stack", format!("drivers of a vendor's package (MLNX_OFED or DOCA-OFED), {version}"))
            .effect("its modules often carry no BTF: the probes then use a built-in table of offsets, and the plan says so"),
    ]
}
