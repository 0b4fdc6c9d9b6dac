//! RDMA devices and their ports, from /sys/class/infiniband.
use super::gid::{self, GidEntry};
use super::pcie::PciFunction;
use super::root::{RDMA_CLASS, Root};
use serde::Serialize;

/// An RDMA device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RdmaDevice {
    /// Name, such as `mlx5_0` or `rxe0`.
    pub name: String,
    /// Kernel driver; see [`driver`].
    pub driver: Option<String>,
    /// `node_type` without its number, such as `CA` or `RNIC`.
    pub node_type: Option<String>,
    /// Free text of the driver or of the administrator.
    pub description: Option<String>,
    /// Firmware version; software devices have none.
    pub firmware: Option<String>,
    /// Board id; see [`board`].
    pub board: Option<String>,
    /// Node GUID.
    pub node_guid: Option<String>,
    /// Network device under a software device.
    pub netdev: Option<String>,
    /// Character device of the verbs (`uverbs0`).
    pub uverbs: Option<String>,
    /// The PCI function, where it is one.
    pub pci: Option<PciFunction>,
    /// NUMA node; `None` when the platform tells none.
    pub numa_node: Option<u32>,
    /// Ports, by number.
    pub ports: Vec<RdmaPort>,
}

/// A port of an RDMA device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RdmaPort {
    /// Number, from 1.
    pub number: u8,
    /// `ACTIVE`, `DOWN`, …
    pub state: String,
    /// `LinkUp`, `Disabled`, …
    pub physical_state: String,
    /// `Ethernet` or `InfiniBand`.
    pub link_layer: String,
    /// Rate as the kernel words it, such as `100 Gb/sec (4X EDR)`.
    pub rate: String,
    /// Rate in Gb/s.
    pub rate_gbps: Option<f64>,
    /// GIDs in use.
    #[serde(serialize_with = "gid::serialize_for_readers")]
    pub gids: Vec<GidEntry>,
}

impl RdmaDevice {
    /// A device made of software: it has no interrupt and no firmware of its own.
    pub fn is_software(&self) -> bool {
        matches!(self.driver.as_deref(), Some("rdma_rxe" | "siw"))
    }

    /// A card that is emulated by rdmascope's own program, under a real driver.
    pub fn is_emulated(&self) -> bool {
        self.board.as_deref().is_some_and(capture::manifest::is_emulated_board)
    }
}

impl RdmaPort {
    /// The port carries traffic.
    pub fn is_active(&self) -> bool {
        self.state == "ACTIVE"
    }

    /// The GID that a run takes by itself, as far as this side decides; see [`gid::best`].
    pub fn best_gid(&self) -> Option<&GidEntry> {
        gid::best(&self.gids)
    }
}

/// All RDMA devices, by name.
pub fn devices(root: &Root) -> Vec<RdmaDevice> {
    root.names(RDMA_CLASS).into_iter().map(|name| read(root, name)).collect()
}

/// The kernel driver of a device of this machine; see [`driver`].
pub fn kernel_driver(name: &str) -> Option<String> {
    driver(&Root::live(), name)
}

/// The kernel driver of a device: `rdma_rxe` and `siw` for software devices, else the driver of the bus function; `None` when not told.
///
/// Software devices first: a `device` link of theirs, where a kernel makes one, leads to the network card below them.
pub fn driver(root: &Root, name: &str) -> Option<String> {
    let base = format!("{RDMA_CLASS}/{name}");
    // Only rxe has a `parent` file (rdma_rxe/rxe_verbs.c); siw says what it is in its description (siw/siw_main.c).
    if root.exists(format!("{base}/parent")) {
        return Some("rdma_rxe".to_owned());
    }
    if root.text(format!("{base}/node_desc")).is_some_and(|text| text.to_lowercase().contains("software iwarp")) {
        return Some("siw".to_owned());
    }
    root.link_name(format!("{base}/device/driver"))
}

/// Firmware version of a device as its driver tells it; software devices have none.
pub fn firmware(root: &Root, name: &str) -> Option<String> {
    root.text(format!("{RDMA_CLASS}/{name}/fw_ver"))
}

/// Board id of a device as its driver tells it; software devices have none.
pub fn board(root: &Root, name: &str) -> Option<String> {
    root.text(format!("{RDMA_CLASS}/{name}/board_id")).filter(|board| !board.is_empty())
}

/// Rate of a port in Gb/s; `None` where the kernel does not tell.
pub fn rate_gbps(root: &Root, name: &str, port: u8) -> Option<f64> {
    gbps(&root.text(format!("{RDMA_CLASS}/{name}/ports/{port}/rate"))?)
}

/// The number in front of "Gb/sec", as in `2.5 Gb/sec (1X SDR)`.
fn gbps(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    unit.starts_with("Gb/sec").then(|| number.parse().ok())?
}

/// One device; `None` when the kernel does not list it.
pub fn device(root: &Root, name: &str) -> Option<RdmaDevice> {
    // A name is one path component; anything else names no device.
    let plain = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
    (plain && root.exists(format!("{RDMA_CLASS}/{name}"))).then(|| read(root, name.to_owned()))
}

fn read(root: &Root, name: String) -> RdmaDevice {
    let base = format!("{RDMA_CLASS}/{name}");
    let node_type = root.text(format!("{base}/node_type")).map(|text| after_colon(&text));
    let ports = root.names(format!("{base}/ports")).iter().filter_map(|number| Some(port(root, &name, number.parse().ok()?))).collect();
    RdmaDevice {
        driver: driver(root, &name),
        description: root.text(format!("{base}/node_desc")),
        firmware: firmware(root, &name),
        board: board(root, &name),
        node_guid: root.text(format!("{base}/node_guid")),
        netdev: root.text(format!("{base}/parent")),
        uverbs: verbs_files(root).into_iter().find_map(|(device, file)| (device == name).then_some(file)),
        pci: PciFunction::at(root, &format!("{base}/device")),
        numa_node: root.number(format!("{base}/device/numa_node")),
        node_type,
        ports,
        name,
    }
}

/// Every device with the name of its file below `/dev/infiniband`, through which verbs reach it.
pub fn verbs_files(root: &Root) -> Vec<(String, String)> {
    let class = "/sys/class/infiniband_verbs";
    root.names(class).into_iter().filter_map(|file| Some((root.text(format!("{class}/{file}/ibdev"))?, file))).collect()
}

fn port(root: &Root, device: &str, number: u8) -> RdmaPort {
    let dir = format!("{RDMA_CLASS}/{device}/ports/{number}");
    let text = |file: &str| root.text(format!("{dir}/{file}")).unwrap_or_default();
    RdmaPort {
        number,
        state: after_colon(&text("state")),
        physical_state: after_colon(&text("phys_state")),
        rate_gbps: rate_gbps(root, device, number),
        rate: text("rate"),
        // A table that a run cannot read has no GID for it.
        gids: gid::table(root, device, number).unwrap_or_default(),
        link_layer: text("link_layer"),
    }
}

/// `4: ACTIVE` gives `ACTIVE`.
fn after_colon(text: &str) -> String {
    text.split_once(':').map_or(text, |(_, rest)| rest).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::{Tree, rxe_machine};
    use crate::machine::gid::GidType;

    #[test]
    fn rxe_by_its_parent_file() {
        let tree = rxe_machine()
            .file("sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n")
            .file("sys/devices/virtio0/x", "")
            .link("sys/devices/virtio0/driver", "../../bus/virtio/drivers/virtio_net")
            .link("sys/class/infiniband/rxe0/device", "../../../devices/virtio0");
        let device = device(&tree.root(), "rxe0").expect("rxe0");
        assert_eq!(device.driver.as_deref(), Some("rdma_rxe"));
        assert!(device.is_software());
        assert_eq!(device.netdev.as_deref(), Some("eth0"));
        assert_eq!(device.uverbs.as_deref(), Some("uverbs0"));
        assert_eq!((device.firmware.as_deref(), &device.pci), (None, &None));
        let port = &device.ports[0];
        assert!(port.is_active());
        assert_eq!((port.number, port.rate_gbps), (1, Some(2.5)));
        assert_eq!(port.gids.len(), 2, "the empty entry is not in use");
        let best = port.best_gid().expect("a GID");
        assert_eq!((best.index, best.kind), (1, GidType::RoceV2));
        assert_eq!(best.gid.to_string(), "::ffff:10.0.0.2");
        assert_eq!(best.netdev.as_deref(), Some("eth0"));
    }

    #[test]
    fn hardware_by_its_bus_driver() {
        let tree = Tree::new()
            .file("sys/class/infiniband/mlx5_0/node_desc", "host-1 HCA\n")
            .file("sys/class/infiniband/mlx5_0/fw_ver", "28.41.1000\n")
            .file("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n")
            .file("sys/devices/pci0000:00/0000:03:00.0/numa_node", "-1\n")
            .link("sys/devices/pci0000:00/0000:03:00.0/driver", "../../../bus/pci/drivers/mlx5_core")
            .link("sys/devices/pci0000:00/0000:03:00.0/subsystem", "../../../bus/pci")
            .link("sys/class/infiniband/mlx5_0/device", "../../../devices/pci0000:00/0000:03:00.0");
        let device = device(&tree.root(), "mlx5_0").expect("mlx5_0");
        assert_eq!(device.driver.as_deref(), Some("mlx5_core"));
        assert_eq!(device.firmware.as_deref(), Some("28.41.1000"));
        assert_eq!(device.numa_node, None, "-1 is: not told");
        assert_eq!(device.pci.as_ref().map(|pci| pci.address.as_str()), Some("0000:03:00.0"));
        assert!(!device.ports[0].is_active() && device.ports[0].best_gid().is_none());
    }

    #[test]
    fn siw_by_its_description_and_iwarp_gids() {
        let tree = Tree::new()
            .file("sys/class/infiniband/siw0/node_desc", "Software iWARP stack\n")
            .file("sys/class/infiniband/siw0/node_type", "4: RNIC\n")
            .file("sys/class/infiniband/siw0/ports/1/gids/0", "0200:0000:0000:0000:0000:0000:0000:0000\n");
        let device = device(&tree.root(), "siw0").expect("siw0");
        assert_eq!(device.driver.as_deref(), Some("siw"));
        assert_eq!(device.ports[0].gids[0].kind, GidType::Iwarp);
    }

    #[test]
    fn rates_have_a_unit() {
        assert_eq!([gbps("2.5 Gb/sec (1X SDR)"), gbps("100 Gb/sec (4X EDR)")], [Some(2.5), Some(100.0)]);
        assert_eq!([gbps("unknown"), gbps("2.5 of something")], [None, None]);
    }

    #[test]
    fn a_name_that_is_a_path_names_no_device() {
        let root = rxe_machine().root();
        for name in ["", ".", "..", "rxe0/ports", "rxe1"] {
            assert_eq!(device(&root, name), None, "{name:?}");
        }
    }
}
