//! A PCI function: link, payload sizes, power states, error counters.
use super::root::Root;
use serde::Serialize;

/// What sysfs and the function's own configuration space tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PciFunction {
    /// `0000:03:00.0`.
    pub address: String,
    /// Vendor and device number, such as `15b3:1021`.
    pub id: Option<String>,
    /// Link speed in force, such as `16.0 GT/s PCIe`.
    pub speed: Option<String>,
    /// The highest speed that the function can do.
    pub max_speed: Option<String>,
    /// Lanes in force.
    pub width: Option<u32>,
    /// Lanes that the function has.
    pub max_width: Option<u32>,
    /// A virtual function of an SR-IOV card.
    pub is_virtual_function: bool,
    /// Whether the function has the PCI Express capability; a conventional PCI function has no link and none of what follows. `None`: its
    /// configuration space could not be read so far (that needs root).
    pub is_express: Option<bool>,
    /// Max payload size in bytes; configuration space beyond 64 bytes needs root.
    pub max_payload_bytes: Option<u32>,
    /// Max read request size in bytes.
    pub max_read_request_bytes: Option<u32>,
    /// ASPM states enabled on the link: bit 0 L0s, bit 1 L1.
    pub aspm: Option<u8>,
    /// Corrected errors since boot (`TOTAL_ERR_COR`).
    pub corrected_errors: Option<u64>,
    /// Uncorrected errors that were not fatal since boot.
    pub nonfatal_errors: Option<u64>,
    /// Fatal errors since boot.
    pub fatal_errors: Option<u64>,
}

/// What an ordinary user may read of a configuration space (drivers/pci/pci-sysfs.c).
const CONFIG_HEADER_BYTES: usize = 64;

impl PciFunction {
    /// The PCI function that `link` (a `device` link of sysfs) leads to; `None` when that is no PCI function.
    ///
    /// An auxiliary device (sub-function) is followed up to the PCI function that carries it.
    pub fn at(root: &Root, link: &str) -> Option<Self> {
        let real = root.real(link)?;
        let dir = real.ancestors().find(|dir| dir.file_name().is_some_and(|name| is_pci_address(&name.to_string_lossy())))?;
        let address = dir.file_name()?.to_string_lossy().into_owned();
        // A virtio device lies below its PCI function too, but is no part of an RDMA device.
        let below: Vec<_> = real.strip_prefix(dir).ok()?.components().collect();
        if below.len() > 1 || below.first().is_some_and(|name| name.as_os_str().to_string_lossy().starts_with("virtio")) {
            return None;
        }
        let text = |file: &str| root.text(dir.join(file));
        let number = |file: &str| text(file)?.parse().ok();
        let id = text("vendor").zip(text("device")).map(|(v, d)| format!("{}:{}", v.trim_start_matches("0x"), d.trim_start_matches("0x")));
        let config = root.bytes(dir.join("config"));
        let capability = config.as_deref().and_then(express);
        let is_whole = config.is_some_and(|config| config.len() > CONFIG_HEADER_BYTES);
        Some(Self {
            address,
            id,
            speed: text("current_link_speed"),
            max_speed: text("max_link_speed"),
            width: number("current_link_width"),
            max_width: number("max_link_width"),
            is_express: if capability.is_some() { Some(true) } else { is_whole.then_some(false) },
            is_virtual_function: root.exists(dir.join("physfn")),
            max_payload_bytes: capability.map(|c| c.max_payload_bytes),
            max_read_request_bytes: capability.map(|c| c.max_read_request_bytes),
            aspm: capability.map(|c| c.aspm),
            corrected_errors: text("aer_dev_correctable").and_then(|text| total(&text, "TOTAL_ERR_COR")),
            nonfatal_errors: text("aer_dev_nonfatal").and_then(|text| total(&text, "TOTAL_ERR_NONFATAL")),
            fatal_errors: text("aer_dev_fatal").and_then(|text| total(&text, "TOTAL_ERR_FATAL")),
        })
    }
}

/// `0000:03:00.0`: domain, bus, device, function.
fn is_pci_address(name: &str) -> bool {
    let parts: Vec<&str> = name.split([':', '.']).collect();
    parts.len() == 4
        && name.matches(':').count() == 2
        && parts.iter().zip([4, 2, 2, 1]).all(|(part, len)| part.len() >= len && part.chars().all(|c| c.is_ascii_hexdigit()))
}

fn total(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Express {
    max_payload_bytes: u32,
    max_read_request_bytes: u32,
    aspm: u8,
}

/// Walks the capability list to the PCI Express capability (id 0x10): Device Control at +8, Link Control at +0x10 (PCIe base specification, 7.5.3).
fn express(config: &[u8]) -> Option<Express> {
    let byte = |at: usize| config.get(at).copied();
    let word = |at: usize| Some(u16::from_le_bytes([byte(at)?, byte(at + 1)?]));
    // Status register, bit 4: there is a list.
    if word(0x06)? & 0x10 == 0 {
        return None;
    }
    let mut at = usize::from(byte(0x34)? & 0xfc);
    // 48 entries fit into 192 bytes: a list that is longer is a circle.
    for _ in 0..48 {
        if at < 0x40 {
            return None;
        }
        if byte(at)? == 0x10 {
            let control = word(at + 0x08)?;
            let size = |bits: u16| (bits < 6).then(|| 128_u32 << bits);
            return Some(Express {
                max_payload_bytes: size((control >> 5) & 7)?,
                max_read_request_bytes: size((control >> 12) & 7)?,
                aspm: u8::try_from(word(at + 0x10)? & 3).ok()?,
            });
        }
        at = usize::from(byte(at + 1)? & 0xfc);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::Tree;

    fn config() -> Vec<u8> {
        let mut config = vec![0_u8; 256];
        config[0x06] = 0x10;
        config[0x34] = 0x40;
        config[0x40..0x42].copy_from_slice(&[0x05, 0x60]);
        config[0x60..0x62].copy_from_slice(&[0x10, 0x00]);
        // MPS 256 (1), MRRS 512 (2), ASPM L1.
        config[0x68..0x6a].copy_from_slice(&0x2020_u16.to_le_bytes());
        config[0x70] = 0x02;
        config
    }

    #[test]
    fn sizes_from_configuration_space() {
        assert_eq!(express(&config()), Some(Express { max_payload_bytes: 256, max_read_request_bytes: 512, aspm: 2 }));
    }

    #[test]
    fn what_an_ordinary_user_may_read_has_no_capability() {
        assert_eq!(express(&config()[..64]), None);
        assert_eq!(express(&[]), None);
    }

    #[test]
    fn a_list_in_a_circle_ends() {
        let mut config = config();
        config[0x60] = 0x11;
        config[0x61] = 0x40;
        assert_eq!(express(&config), None);
    }

    #[test]
    fn link_and_counters() {
        let dir = "sys/devices/pci0000:00/0000:03:00.0";
        let tree = Tree::new()
            .file(&format!("{dir}/vendor"), "0x15b3\n")
            .file(&format!("{dir}/device"), "0x1021\n")
            .file(&format!("{dir}/current_link_speed"), "8.0 GT/s PCIe\n")
            .file(&format!("{dir}/max_link_speed"), "32.0 GT/s PCIe\n")
            .file(&format!("{dir}/current_link_width"), "8\n")
            .file(&format!("{dir}/max_link_width"), "16\n")
            .file(&format!("{dir}/aer_dev_correctable"), "RxErr 1\nBadTLP 2\nTOTAL_ERR_COR 3\n")
            .link("sys/class/infiniband/mlx5_0/device", "../../../devices/pci0000:00/0000:03:00.0");
        let pci = PciFunction::at(&tree.root(), "/sys/class/infiniband/mlx5_0/device").expect("a function");
        assert_eq!(pci.id.as_deref(), Some("15b3:1021"));
        assert_eq!((pci.width, pci.max_width), (Some(8), Some(16)));
        assert_eq!((pci.corrected_errors, pci.fatal_errors), (Some(3), None));
        assert_eq!(pci.max_payload_bytes, None);
    }

    #[test]
    fn a_sub_function_belongs_to_its_card_and_a_virtio_device_does_not() {
        let tree = Tree::new()
            .file("sys/devices/pci0000:00/0000:03:00.0/mlx5_core.sf.2/x", "")
            .file("sys/devices/pci0000:00/0000:00:02.0/virtio0/x", "")
            .link("sys/a", "devices/pci0000:00/0000:03:00.0/mlx5_core.sf.2")
            .link("sys/b", "devices/pci0000:00/0000:00:02.0/virtio0");
        assert_eq!(PciFunction::at(&tree.root(), "/sys/a").map(|pci| pci.address).as_deref(), Some("0000:03:00.0"));
        assert_eq!(PciFunction::at(&tree.root(), "/sys/b"), None);
    }
}
