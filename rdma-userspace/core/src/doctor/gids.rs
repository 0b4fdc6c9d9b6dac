//! GIDs, RoCE mode, MTU and flow control.
use super::context::Context;
use super::finding::Finding;
use crate::machine::{GidType, RdmaDevice, RdmaPort};

pub(super) const CHECKS: &[fn(&Context<'_>) -> Vec<Finding>] = &[tables, mode_of_rdma_cm, mtu, packet_delays, flow_control];

fn tables(context: &Context<'_>) -> Vec<Finding> {
    let ports = context.selected.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    ports.filter(|(_, port)| port.is_active()).map(|(device, port)| one(context, device, port)).collect()
}

fn one(context: &Context<'_>, device: &RdmaDevice, port: &RdmaPort) -> Finding {
    let name = format!("{} port {}", device.name, port.number);
    let netdev = |entry: Option<&str>| entry.or(device.netdev.as_deref()).unwrap_or("NETDEV").to_owned();
    let add_address = |netdev: String| format!("sudo ip address add 192.0.2.1/24 dev {netdev}");
    let Some(first) = port.gids.first() else {
        return Finding::new("gid.table", context.blocking(), format!("{name}: no GID"))
            .effect("no address for a connection: its interface has no address")
            .command(add_address(netdev(None)));
    };
    let Some(best) = port.best_gid() else {
        let found = format!(
            "{name}: no GID that a run takes by itself; index {} is {} ({}, {})",
            first.index,
            first.gid,
            first.kind,
            first.scope()
        );
        return match first.kind {
            GidType::Iwarp => Finding::new("gid.table", context.blocking(), found)
                .effect("iWARP connections are set up by rdma_cm only, which a run does not use; `rdmascope trace` watches programs that do"),
            GidType::Unknown if !first.gid.is_link_local() => Finding::warn("gid.table", found)
                .effect("the kernel does not tell its type: a run takes it by --gid-index only, and a peer may not accept it"),
            _ => Finding::warn("gid.table", found)
                .effect(
                    "link-local: it reaches peers on the same link only, and only while the interface has that very address; a run takes it by \
                     --gid-index and --server-gid-index only",
                )
                .command(add_address(netdev(first.netdev.as_deref()))),
        };
    };
    let score = best.score().map_or(0, |score| score.points);
    let found = format!("{name}: best GID is index {}, {} ({}, {}), score {score}", best.index, best.gid, best.kind, best.scope());
    match best.kind {
        GidType::RoceV1 => Finding::warn("gid.table", found)
            .effect("RoCE v1 is not routed, and both ends must use it; an old card or RoCE v2 switched off"),
        _ if best.gid.is_loopback() => Finding::warn("gid.table", found)
            .effect("loopback: a run takes it for both ends on this machine only")
            .command(add_address(netdev(best.netdev.as_deref()))),
        _ => Finding::ok("gid.table", found),
    }
}

/// What connections set up by rdma_cm use; shown where the administrator made the folder (making it would be a change).
fn mode_of_rdma_cm(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for device in context.selected.iter() {
        for port in device.ports.iter().filter(|port| port.link_layer == "Ethernet") {
            let dir = format!("/sys/kernel/config/rdma_cm/{}/ports/{}", device.name, port.number);
            let name = format!("{} port {}", device.name, port.number);
            let Some(mode) = context.root.text(format!("{dir}/default_roce_mode")) else { continue };
            let tos =
                context.root.text(format!("{dir}/default_roce_tos")).map(|tos| format!(", type of service {tos}")).unwrap_or_default();
            let found = format!("{name}: rdma_cm uses {mode}{tos}");
            findings.push(if mode == "RoCE v2" {
                Finding::ok("gid.roce_mode", found)
            } else {
                Finding::warn("gid.roce_mode", found)
                    .effect("connections by rdma_cm are not routed")
                    .command(format!("echo 'RoCE v2' | sudo tee {dir}/default_roce_mode"))
            });
        }
    }
    findings
}

/// RoCE packets must fit into the interface's MTU together with their headers; path MTUs are powers of two.
fn mtu(context: &Context<'_>) -> Vec<Finding> {
    let each = |netdev: &String| {
        let mtu: u32 = context.root.number(format!("/sys/class/net/{netdev}/mtu"))?;
        // The largest headers that are taken off: 80 bytes in rxe (RXE_MAX_HDR_LENGTH), 96 in the kernel's `iboe_get_mtu`.
        let software = context.selected.iter().any(|device| device.is_software() && device.netdev.as_ref() == Some(netdev));
        let headers = if software { 80 } else { 96 };
        let path = [4096, 2048, 1024, 512, 256].into_iter().find(|size| size + headers <= mtu).unwrap_or(0);
        let found = format!("{netdev}: MTU {mtu} bytes, which gives a path MTU of {path} bytes");
        Some(if path == 4096 {
            Finding::ok("net.mtu", found)
        } else {
            Finding::note("net.mtu", found)
                .effect("messages that are larger travel as several packets; small ones are not affected")
                .command(format!("sudo ip link set dev {netdev} mtu 4200  # switch and peer need it too"))
        })
    };
    context.netdevs().iter().filter_map(each).collect()
}

/// Settings of the interface that hold packets back; they matter to software devices, whose traffic passes the network stack.
fn packet_delays(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for netdev in context.selected.iter().filter(|device| device.is_software()).filter_map(|device| device.netdev.as_ref()) {
        let base = format!("/sys/class/net/{netdev}");
        let timeout: u64 = context.root.number(format!("{base}/gro_flush_timeout")).unwrap_or(0);
        let defer: u64 = context.root.number(format!("{base}/napi_defer_hard_irqs")).unwrap_or(0);
        if timeout > 0 && defer > 0 {
            findings.push(
                Finding::warn("net.deferred", format!("{netdev}: interrupts deferred {defer} times by {timeout} ns each"))
                    .effect("packets wait for a timer instead of an interrupt: samples get the flag NAPI_POLLED")
                    .command(format!("echo 0 | sudo tee {base}/napi_defer_hard_irqs")),
            );
        }
        let queues = context.root.names(format!("{base}/queues"));
        let spread = |queue: &&String| {
            let mask = context.root.text(format!("{base}/queues/{queue}/rps_cpus")).unwrap_or_default();
            mask.chars().any(|c| c.is_ascii_hexdigit() && c != '0')
        };
        if let Some(queue) = queues.iter().filter(|queue| queue.starts_with("rx-")).find(spread) {
            findings.push(
                Finding::note("net.rps", format!("{netdev}: receive packet steering is on ({queue})"))
                    .effect("packets change the CPU between interrupt and rxe: one more wake-up in the receive stage")
                    .command(format!("echo 0 | sudo tee {base}/queues/{queue}/rps_cpus")),
            );
        }
    }
    findings
}

/// PFC, ECN and DSCP are told over netlink or by the vendor's tools, not by files: said, with the commands that show them.
fn flow_control(context: &Context<'_>) -> Vec<Finding> {
    let hardware = context.selected.iter().filter(|device| !device.is_software());
    let ports = hardware.flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    let each = |(device, port): (&RdmaDevice, &RdmaPort)| {
        if port.link_layer != "Ethernet" {
            return None;
        }
        let netdev = port.gids.iter().find_map(|gid| gid.netdev.as_deref())?;
        let class = context.root.text(format!("/sys/class/infiniband/{}/tc/{}/traffic_class", device.name, port.number));
        let class = class.map(|class| format!("; {}", class.replace('\n', ", "))).unwrap_or_default();
        Some(
            Finding::note("net.flow_control", format!("{netdev}: PFC, ECN and DSCP are not told by files, so not looked at{class}"))
                .effect("without them packets are lost under load, and each loss shows as a retransmission of milliseconds")
                .command(format!("dcb pfc show dev {netdev}; dcb app show dev {netdev}; ethtool -S {netdev} | grep -iE 'pause|ecn|cnp'")),
        )
    };
    ports.filter_map(each).collect()
}
