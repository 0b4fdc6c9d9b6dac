//! Interrupts of the devices: where they are placed, and who moves them.
use super::context::Context;
use super::finding::Finding;
use crate::machine::RdmaDevice;
use crate::machine::command_line::{self, THREADED_IRQS};
use crate::machine::interrupts::{self, Interrupt};
use crate::machine::proc_text::cpu_list;
use std::collections::BTreeSet;

pub(super) const CHECKS: &[fn(&Context<'_>) -> Vec<Finding>] = &[placement, balancer, threaded];

/// Rows of a device that are shown one by one; more are summed up.
const SHOWN: usize = 8;

fn placement(context: &Context<'_>) -> Vec<Finding> {
    context.selected.iter().flat_map(|device| of_device(context, device)).collect()
}

fn of_device(context: &Context<'_>, device: &RdmaDevice) -> Vec<Finding> {
    let (link, whose) = match (&device.netdev, device.is_software()) {
        (Some(netdev), true) => (format!("/sys/class/net/{netdev}/device"), format!("interface {netdev}")),
        (None, true) => {
            return vec![Finding::note("irq.vectors", format!("{}: a software device has no interrupt of its own", device.name))];
        }
        _ => (format!("/sys/class/infiniband/{}/device", device.name), device.name.clone()),
    };
    let rows = interrupts::of_device(context.root, &link);
    if rows.is_empty() {
        let found = if device.is_software() {
            format!("{}: no interrupt below it ({whose} is made of software)", device.name)
        } else {
            format!("{}: its interrupts are not told", device.name)
        };
        return vec![
            Finding::note("irq.vectors", found)
                .effect("there is no interrupt stage in the breakdown; samples get the flag NOT_IRQ or LOOPBACK"),
        ];
    }
    let list: Vec<String> = rows.iter().take(SHOWN).map(|row| describe(context, row)).collect();
    let more = if rows.len() > SHOWN { format!(" and {} more", rows.len() - SHOWN) } else { String::new() };
    let found = format!("{whose}, interrupts: {}{more}", list.join("; "));
    let cpus: BTreeSet<u32> = rows.iter().filter_map(|row| cpu_of(context, row)).collect();
    let mut findings = Vec::new();
    if cpus.len() == 1 && rows.len() > 2 && context.host.cpus > 1 {
        let cpu = cpus.first().copied().unwrap_or(0);
        let numbers = numbers(&rows);
        findings.push(
            Finding::warn("irq.vectors", format!("{found}: all on CPU {cpu}"))
                .effect("every completion vector ends on the same CPU: --comp-vector changes nothing, and that CPU is the bottleneck")
                .command(format!(
                    "c=0; for n in {numbers}; do echo $c | sudo tee /proc/irq/$n/smp_affinity_list; c=$(((c+1)%{})); done",
                    context.host.cpus
                )),
        );
    } else {
        findings.push(Finding::ok("irq.vectors", found));
    }
    findings.extend(remote(context, device, rows));
    findings
}

fn cpu_of(context: &Context<'_>, row: &Interrupt) -> Option<u32> {
    interrupts::affinity(context.root, row.number).single_cpu()
}

fn numbers(rows: &[Interrupt]) -> String {
    rows.iter().map(|row| row.number.to_string()).collect::<Vec<_>>().join(" ")
}

fn describe(context: &Context<'_>, row: &Interrupt) -> String {
    let affinity = interrupts::affinity(context.root, row.number);
    let cpus = affinity.effective.or(affinity.allowed).unwrap_or_else(|| "not told".to_owned());
    format!("{} {} → CPU {cpus}", row.number, row.handlers)
}

/// Interrupts on another NUMA node than the card.
fn remote(context: &Context<'_>, device: &RdmaDevice, rows: Vec<Interrupt>) -> Option<Finding> {
    let node = device.numa_node?;
    let list = context.root.text(format!("/sys/devices/system/node/node{node}/cpulist"))?;
    let local = cpu_list(&list)?;
    let is_remote = |row: &Interrupt| cpu_of(context, row).is_some_and(|cpu| !local.contains(&cpu));
    let remote: Vec<Interrupt> = rows.into_iter().filter(is_remote).collect();
    if remote.is_empty() {
        return None;
    }
    let numbers = numbers(&remote);
    Some(
        Finding::warn(
            "irq.numa",
            format!("{}: interrupts {numbers} run on CPUs that are not on its NUMA node {node} (CPUs {list})", device.name),
        )
        .effect("each of their wake-ups crosses the sockets; pin the measured thread to the card's node, too")
        .command(format!("for n in {numbers}; do echo {list} | sudo tee /proc/irq/$n/smp_affinity_list; done")),
    )
}

fn balancer(context: &Context<'_>) -> Vec<Finding> {
    let root = context.root;
    let is_number = |name: &&String| name.chars().all(|c| c.is_ascii_digit());
    let running =
        root.names("/proc").iter().filter(is_number).any(|pid| root.text(format!("/proc/{pid}/comm")).as_deref() == Some("irqbalance"));
    vec![if running {
        Finding::warn("irq.irqbalance", "irqbalance is running")
            .effect("it can move a completion vector to another CPU in the middle of a run")
            .command("sudo systemctl stop irqbalance")
    } else {
        Finding::ok("irq.irqbalance", "irqbalance is not running: interrupts stay where they are")
    }]
}

fn threaded(context: &Context<'_>) -> Vec<Finding> {
    if !context.host.realtime && !command_line::has(context.root, THREADED_IRQS) {
        return Vec::new();
    }
    vec![
        Finding::note("irq.threaded", "interrupt handlers run in threads (PREEMPT_RT or threadirqs)")
            .effect("each interrupt wakes a thread first: one more run-queue stage before the completion handler"),
    ]
}
