//! What a manifest says about the machine, the device and the placement of a run.
use super::peer::Peer;
use super::placement::Cpus;
use super::{Options, SessionError, Target};
use crate::runner::Endpoint;
use crate::system::{Root, device, irq};
use crate::verbs::{Device, GidPair, PortState, VerbsError};
use analysis::capture::manifest::{self as format, InterruptName, Manifest, Outcome, Placement, SCHEMA_VERSION};
use std::time::{SystemTime, UNIX_EPOCH};

/// The identities by which the kernel's events are joined with a run.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Thread id of the measured thread.
    pub tid: u32,
    /// Address of the `struct ibv_cq` that ends the samples.
    pub cq_handle: u64,
    /// Queue pair number here.
    pub qpn: u32,
    /// Queue pair number there.
    pub peer_qpn: u32,
}

/// Opens the device that was asked for, or the only one with an active port.
///
/// # Errors
/// [`SessionError::NoDevice`] with what is there and what to do.
pub fn open_device(name: Option<&str>, port: u8) -> Result<Device, SessionError> {
    let names = Device::list().or_else(none_without_the_module)?;
    let chosen = match (name, names.as_slice()) {
        (_, []) => {
            return Err(SessionError::NoDevice(
                "this host has no RDMA device. `rdmascope soft-roce up INTERFACE` makes a software one; `rdmascope doctor` tells more"
                    .to_owned(),
            ));
        }
        (Some(name), names) if names.iter().any(|it| it == name) => name.to_owned(),
        (Some(name), names) => {
            return Err(SessionError::NoDevice(format!("there is no RDMA device {name}; this host has {}", names.join(", "))));
        }
        (None, [only]) => only.clone(),
        (None, names) => {
            let is_active = |name: &&String| {
                Device::open(Some(name)).and_then(|device| device.port(port)).is_ok_and(|port| port.state == PortState::Active)
            };
            let active: Vec<&String> = names.iter().filter(is_active).collect();
            match active.as_slice() {
                [only] => (*only).clone(),
                [] => {
                    return Err(SessionError::NoDevice(format!(
                        "port {port} is active on none of {}; see `rdmascope doctor`",
                        names.join(", ")
                    )));
                }
                several => {
                    let several: Vec<&str> = several.iter().map(|it| it.as_str()).collect();
                    return Err(SessionError::NoDevice(format!(
                        "several RDMA devices are active: choose one with --device ({})",
                        several.join(", ")
                    )));
                }
            }
        }
    };
    Ok(Device::open(Some(&chosen))?)
}

/// A kernel without ib_uverbs has no list of devices: that is a machine without a device, not a failure of the call.
fn none_without_the_module(error: VerbsError) -> Result<Vec<String>, SessionError> {
    match error {
        VerbsError::ListDevices(source) if matches!(source.raw_os_error(), Some(libc::ENOSYS | libc::ENOENT)) => Ok(Vec::new()),
        other => Err(other.into()),
    }
}

/// The first manifest of a run.
pub fn manifest(options: &Options, device: &Device, gids: &GidPair, endpoint: &Endpoint, index: u32, peer: &Peer) -> Manifest {
    let interrupts = irq::interrupts(&Root::live()).into_iter().map(|row| InterruptName { irq: row.irq, name: row.name }).collect();
    let host = format::Host { interrupts, ..crate::system::host::host() };
    let (params, port) = (endpoint.params(), endpoint.port());
    let same_kernel = host.boot_id == peer.facts.boot_id;
    let loopback = matches!(options.target, Target::Loopback);
    Manifest {
        schema_version: SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        tool_revision: option_env!("RDMASCOPE_REVISION").map(str::to_owned),
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs()),
        side: format::Side::Client,
        server_side: format::ServerSide::Unknown,
        host,
        device: format::Device {
            name: device.name().to_owned(),
            driver: device.driver(),
            firmware: device.limits().firmware.clone(),
            port: port.number,
            netdev: gids.local.netdev.clone(),
            gid_index: gids.local.index,
            gid: gids.local.gid.to_string(),
            gid_type: gids.local.kind.to_string(),
            gid_reason: gids.reason.clone(),
            mtu_bytes: endpoint.mtu_bytes(),
            rate_gbps: port.rate_gbps,
        },
        run: format::Run {
            index,
            op: params.op.to_string(),
            mode: params.mode.to_string(),
            server_mode: params.server_mode.to_string(),
            transport: "RC".to_owned(),
            size_bytes: params.size_bytes,
            samples: options.samples,
            metric: params.op.metric(),
            depth: params.depth,
            inline_bytes: params.inline_bytes,
            cq_depth: endpoint.cq_depth(),
            level: options.level.to_string(),
            same_kernel,
        },
        placement: Placement::default(),
        rounds: Vec::new(),
        kernel_threads: Vec::new(),
        plan: Vec::new(),
        losses: Vec::new(),
        missed_probes: None,
        clock_check: None,
        poll_costs: None,
        syscalls: None,
        sealed: None,
        trace: None,
        notes: loopback.then(|| "loopback: both ends ran on this host, as two processes".to_owned()).into_iter().collect(),
        outcome: Outcome::Recording,
    }
}

/// Where a run runs: vector → interrupt CPU → waiter CPU, and the identities of its thread, CQ and queue pairs.
pub fn placement(device: &Device, options: &Options, cpus: &Cpus, identity: Identity) -> Placement {
    let root = Root::live();
    let vector = device::device(&root, device.name())
        .map(|device| irq::vector_placement(&root, &device, options.comp_vector, cpus.client))
        .unwrap_or_default();
    Placement {
        tgid: std::process::id(),
        tid: identity.tid,
        cq_handle: identity.cq_handle,
        qpn: identity.qpn,
        peer_qpn: identity.peer_qpn,
        cpu: cpus.client,
        server_cpu: cpus.server,
        comp_vector: options.comp_vector,
        irq: vector.irq,
        irq_cpus: vector.irq_cpus,
        text: vector.text,
    }
}

/// Name of this host, for the folder of its captures.
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "unknown".to_owned(), |it| it.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_the_module_has_no_device_and_other_errors_are_told() {
        let list = |code| none_without_the_module(VerbsError::ListDevices(std::io::Error::from_raw_os_error(code)));
        assert_eq!(list(libc::ENOSYS).ok(), Some(Vec::new()));
        let denied = list(libc::EACCES).expect_err("told");
        assert!(matches!(denied, SessionError::Verbs(VerbsError::ListDevices(_))), "{denied}");
    }
}
