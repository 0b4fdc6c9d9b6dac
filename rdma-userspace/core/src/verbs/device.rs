//! Devices: list, open, limits, ports, and what sysfs adds to them (driver, firmware, rate), by the readers that doctor uses, too.
use super::error::VerbsError;
use super::ffi::{RawContext, sys};
use crate::machine::{Root, device as facts};
use std::sync::Arc;

/// Limits and vendor of a device, as `ibv_query_device` gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceLimits {
    /// PCI vendor.
    pub vendor_id: u32,
    /// WRs per queue of a QP.
    pub max_qp_wr: u32,
    /// Entries of a CQ.
    pub max_cqe: u32,
    /// SGEs per WR.
    pub max_sge: u32,
    /// Protection domains.
    pub max_pd: u32,
    /// Size of a memory region in bytes.
    pub max_mr_bytes: u64,
    /// Outstanding READs and atomics that a QP takes as responder.
    pub max_responder_reads: u32,
    /// Outstanding READs and atomics that a QP may start.
    pub max_initiator_reads: u32,
    /// Has atomics.
    pub atomics: bool,
    /// Completion vectors.
    pub comp_vectors: u32,
    /// Ports.
    pub ports: u8,
}

/// Logical state of a port (`enum ibv_port_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// Carries traffic.
    Active,
    /// Any other state, by its number in `ibv_port_state`.
    Other(u32),
}

impl std::fmt::Display for PortState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Active => "ACTIVE",
            Self::Other(1) => "DOWN",
            Self::Other(2) => "INIT",
            Self::Other(3) => "ARMED",
            Self::Other(5) => "ACTIVE_DEFER",
            Self::Other(_) => "NOP or unknown",
        })
    }
}

/// What is under a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    /// RoCE (and iWARP).
    Ethernet,
    /// InfiniBand: addressed by LID.
    Infiniband,
}

/// A port.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Its number, from 1.
    pub number: u8,
    /// Its state.
    pub state: PortState,
    /// MTU in use, bytes.
    pub active_mtu_bytes: u32,
    /// Longest message, bytes.
    pub max_message_bytes: u32,
    /// Local identifier (InfiniBand).
    pub lid: u16,
    /// What is under it.
    pub link_layer: LinkLayer,
    /// Rate in Gb/s as sysfs gives it; `None` where it does not.
    pub rate_gbps: Option<f64>,
}

/// An open device; a clone is the same device.
#[derive(Clone)]
pub struct Device {
    raw: Arc<RawContext>,
    name: Arc<str>,
    limits: Arc<DeviceLimits>,
}

impl Device {
    /// Names of all devices.
    pub fn list() -> Result<Vec<String>, VerbsError> {
        RawContext::names().map_err(VerbsError::ListDevices)
    }

    /// Opens a device by name; without a name the only one there is.
    pub fn open(name: Option<&str>) -> Result<Self, VerbsError> {
        let names = Self::list()?;
        let found = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let missing = |hint| VerbsError::NoDevice { wanted: name.unwrap_or("to choose by itself").to_owned(), found: found.clone(), hint };
        let name = match name {
            Some(name) => name,
            None if names.len() == 1 => &names[0],
            None if names.is_empty() => return Err(missing("`rdmascope soft-roce up` makes a software device on a network interface")),
            None => return Err(missing("Choose one with --device")),
        };
        let opened = RawContext::open(name).map_err(|source| VerbsError::OpenDevice {
            device: name.to_owned(),
            cause: match source.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => "no permission on /dev/infiniband/uverbs*",
                _ => "the device or its module is going away",
            },
            source,
        })?;
        let raw = opened.ok_or_else(|| missing("Its provider library (ibverbs-providers) may be missing"))?;
        let attr = raw.query_device().map_err(|source| VerbsError::Query { what: "attributes".into(), device: name.to_owned(), source })?;
        let limits = limits(&attr, raw.comp_vectors());
        Ok(Self { raw: Arc::new(raw), name: name.into(), limits: Arc::new(limits) })
    }

    /// Its name, such as `rxe0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its limits.
    pub fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    /// State and properties of a port.
    pub fn port(&self, number: u8) -> Result<Port, VerbsError> {
        let attr = self.raw.query_port(number).map_err(|source| VerbsError::Query {
            what: format!("port {number}"),
            device: self.name.to_string(),
            source,
        })?;
        Ok(Port {
            number,
            state: if attr.state == 4 { PortState::Active } else { PortState::Other(attr.state) },
            active_mtu_bytes: mtu_bytes_from_code(attr.active_mtu),
            max_message_bytes: attr.max_msg_sz,
            lid: attr.lid,
            // IBV_LINK_LAYER_INFINIBAND is 1, ETHERNET 2, UNSPECIFIED 0 (which old InfiniBand drivers give).
            link_layer: if attr.link_layer == 2 { LinkLayer::Ethernet } else { LinkLayer::Infiniband },
            rate_gbps: facts::rate_gbps(&Root::live(), &self.name, number),
        })
    }

    /// Kernel driver of the device; `unknown` where sysfs does not tell.
    pub fn driver(&self) -> String {
        driver_name(&Root::live(), &self.name)
    }

    /// Firmware version as the kernel tells it; empty where the device has none.
    pub fn firmware(&self) -> String {
        facts::firmware(&Root::live(), &self.name).unwrap_or_default()
    }

    /// Board id as the kernel tells it; `None` where the device has none.
    pub fn board(&self) -> Option<String> {
        facts::board(&Root::live(), &self.name)
    }

    pub(super) fn raw(&self) -> &Arc<RawContext> {
        &self.raw
    }

    pub(super) fn over_limit(&self, what: &'static str, requested: u64, limit_name: &'static str, limit: u64) -> VerbsError {
        VerbsError::OverLimit { what, requested, limit_name, device: self.name.to_string(), limit }
    }
}

fn limits(attr: &sys::ibv_device_attr, comp_vectors: u32) -> DeviceLimits {
    let count = |value: i32| u32::try_from(value).unwrap_or(0);
    DeviceLimits {
        vendor_id: attr.vendor_id,
        max_qp_wr: count(attr.max_qp_wr),
        max_cqe: count(attr.max_cqe),
        max_sge: count(attr.max_sge),
        max_pd: count(attr.max_pd),
        max_mr_bytes: attr.max_mr_size,
        max_responder_reads: count(attr.max_qp_rd_atom),
        max_initiator_reads: count(attr.max_qp_init_rd_atom),
        atomics: attr.atomic_cap != sys::ibv_atomic_cap::IBV_ATOMIC_NONE,
        comp_vectors,
        ports: attr.phys_port_cnt,
    }
}

/// Bytes of an `ibv_mtu` code; 0 for a code that does not exist.
pub fn mtu_bytes_from_code(code: u32) -> u32 {
    if (1..=5).contains(&code) { 128 << code } else { 0 }
}

/// The `ibv_mtu` code of a size in bytes; `None` where it is not one of 256, 512, 1024, 2048, 4096.
pub fn mtu_code_from_bytes(bytes: u32) -> Option<u32> {
    (1..=5).find(|&code| mtu_bytes_from_code(code) == bytes)
}

fn driver_name(root: &Root, device: &str) -> String {
    facts::driver(root, device).unwrap_or_else(|| "unknown".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::rxe_machine;

    #[test]
    fn codes_and_rates() {
        assert_eq!([0, 1, 3, 5, 6].map(mtu_bytes_from_code), [0, 256, 1024, 4096, 0]);
        assert_eq!((mtu_code_from_bytes(2048), mtu_code_from_bytes(1500)), (Some(4), None));
    }

    #[test]
    fn the_driver_comes_from_sysfs() {
        let tree = rxe_machine()
            .file("sys/devices/card/x", "")
            .link("sys/devices/card/driver", "../../bus/pci/drivers/mlx5_core")
            .link("sys/class/infiniband/rxe0/device", "../../../devices/card")
            .link("sys/class/infiniband/mlx5_0/device", "../../../devices/card")
            .file("sys/class/infiniband/siw0/node_desc", "Software iWARP stack\n")
            .link("sys/class/infiniband/siw0/device", "../../../devices/card");
        let root = tree.root();
        for (device, driver) in [("mlx5_0", "mlx5_core"), ("rxe0", "rdma_rxe"), ("siw0", "siw")] {
            assert_eq!(driver_name(&root, device), driver);
            let shown = facts::device(&root, device).and_then(|device| device.driver);
            assert_eq!(shown.as_deref(), Some(driver), "doctor shows another one");
        }
        assert_eq!(driver_name(&root, "nothing"), "unknown");
    }
}
