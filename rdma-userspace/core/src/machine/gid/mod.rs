//! The GID table of a port: what each entry is, and how suitable it is for a run. `doctor` and `soft-roce` show by it what a run takes.
//!
//! The types come from sysfs, since rdma-sys has no call for them. A link-local address is never taken by accident: which interface it
//! belongs to cannot be told from the address, and the peer may reach another one.
use super::root::{RDMA_CLASS, Root};
use serde::{Deserialize, Serialize, Serializer};
use std::cmp::Reverse;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// A GID: 16 bytes that read as an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gid(pub [u8; 16]);

/// Kind of address in a GID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// An IPv4-mapped address (`::ffff:a.b.c.d`).
    Ipv4,
    /// Any other.
    Ipv6,
}

impl Gid {
    fn v6(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.0)
    }

    fn v4(&self) -> Option<Ipv4Addr> {
        self.v6().to_ipv4_mapped()
    }

    /// Its kind of address.
    pub fn family(&self) -> Family {
        if self.v4().is_some() { Family::Ipv4 } else { Family::Ipv6 }
    }

    /// Of `fe80::/10` or 169.254.0.0/16.
    pub fn is_link_local(&self) -> bool {
        self.v4().map_or_else(|| self.v6().is_unicast_link_local(), |v4| v4.is_link_local())
    }

    /// `::1` or 127.0.0.0/8: it names another machine everywhere.
    pub fn is_loopback(&self) -> bool {
        self.v4().map_or_else(|| self.v6().is_loopback(), |v4| v4.is_loopback())
    }

    /// No address: an entry that is not in use.
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 16]
    }

    /// Leading bits that two GIDs have in common.
    pub fn common_bits(&self, other: &Self) -> u32 {
        (u128::from_be_bytes(self.0) ^ u128::from_be_bytes(other.0)).leading_zeros()
    }
}

impl std::fmt::Display for Gid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.v6().fmt(f)
    }
}

/// Type of a GID: what its packets look like on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GidType {
    /// RoCE v2: UDP, can be routed.
    RoceV2,
    /// RoCE v1: an Ethernet type of its own, cannot be routed.
    RoceV1,
    /// InfiniBand.
    Infiniband,
    /// iWARP: TCP. Its connections are set up by rdma_cm only, which a run does not use.
    Iwarp,
    /// The kernel gave a word that this version does not know, or none.
    Unknown,
}

impl GidType {
    /// By what the kernel writes in `gid_attrs/types`: the same word for InfiniBand and RoCE v1 (the link layer tells which), and for iWARP
    /// (the type of the device tells).
    fn of(text: Option<&str>, link_layer: &str, iwarp: bool) -> Self {
        match text {
            _ if iwarp => Self::Iwarp,
            Some("RoCE v2") => Self::RoceV2,
            Some("IB/RoCE v1") if link_layer == "Ethernet" => Self::RoceV1,
            Some("IB/RoCE v1") => Self::Infiniband,
            None if link_layer != "Ethernet" => Self::Infiniband,
            _ => Self::Unknown,
        }
    }
}

impl std::fmt::Display for GidType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // With the width that the caller asks for.
        f.pad(match self {
            Self::RoceV2 => "RoCE v2",
            Self::RoceV1 => "RoCE v1",
            Self::Infiniband => "IB",
            Self::Iwarp => "iWARP",
            Self::Unknown => "unknown type",
        })
    }
}

/// An entry of a GID table that is in use. The derived form is that of the control protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GidEntry {
    /// Its index, as `sgid_index` and `--gid-index` count.
    pub index: u32,
    /// The GID.
    pub gid: Gid,
    /// Its type.
    pub kind: GidType,
    /// Network interface that it belongs to, where the kernel tells.
    pub netdev: Option<String>,
}

/// How suitable an entry is for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    /// Higher is better: RoCE v2 and InfiniBand before RoCE v1, IPv4 before IPv6, loopback last.
    pub points: u32,
    /// Type and address in words.
    pub reason: String,
}

impl GidEntry {
    /// How suitable the entry is; `None`: a run takes it by its index only.
    pub fn score(&self) -> Option<Score> {
        if self.gid.is_zero() || self.gid.is_link_local() && self.kind != GidType::Infiniband {
            return None;
        }
        let (kind, kind_text) = match self.kind {
            GidType::RoceV2 => (100, "RoCE v2"),
            GidType::RoceV1 => (40, "RoCE v1"),
            GidType::Infiniband => (100, "InfiniBand"),
            GidType::Iwarp | GidType::Unknown => return None,
        };
        let (address, address_text) = match self.gid.family() {
            _ if self.kind == GidType::Infiniband => (0, "port GID"),
            _ if self.gid.is_loopback() => (1, "loopback address"),
            Family::Ipv4 => (20, "IPv4 address"),
            Family::Ipv6 => (10, "global IPv6 address"),
        };
        Some(Score { points: kind + address, reason: format!("{kind_text}, {address_text}") })
    }

    /// Where the address is valid, in a word.
    pub fn scope(&self) -> &'static str {
        match self.gid.family() {
            _ if self.gid.is_link_local() => "link-local",
            _ if self.gid.is_loopback() => "loopback",
            Family::Ipv4 => "IPv4-mapped",
            Family::Ipv6 => "global",
        }
    }
}

/// The best entry of a table, by which a run begins; of equals the first. `None`: a run takes none by itself.
pub fn best(table: &[GidEntry]) -> Option<&GidEntry> {
    let scored = table.iter().filter_map(|entry| Some((entry.score()?.points, entry)));
    scored.max_by_key(|(points, entry)| (*points, Reverse(entry.index))).map(|(_, entry)| entry)
}

/// What could not be read of a GID table.
#[derive(Debug)]
pub struct UnreadableTable {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// The entries in use of the GID table of a port, by index.
///
/// # Errors
/// [`UnreadableTable`] when there is no such port, or an entry is not an address.
pub fn table(root: &Root, device: &str, port: u8) -> Result<Vec<GidEntry>, UnreadableTable> {
    let base = format!("{RDMA_CLASS}/{device}");
    let dir = format!("{base}/ports/{port}");
    let link_layer = root.text(format!("{dir}/link_layer")).unwrap_or_default();
    let iwarp = root.text(format!("{base}/node_type")).is_some_and(|text| text.ends_with("RNIC"));
    let failed = |path: &Path, source| UnreadableTable { path: path.to_owned(), source };
    let gids = root.path(format!("{dir}/gids"));
    let mut entries = Vec::new();
    for file in fs::read_dir(&gids).map_err(|source| failed(&gids, source))? {
        let path = file.map_err(|source| failed(&gids, source))?.path();
        let Some(index) = path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()) else { continue };
        let text = fs::read_to_string(&path).map_err(|source| failed(&path, source))?;
        let gid = text.trim().parse::<Ipv6Addr>().map_err(|error| failed(&path, io::Error::new(io::ErrorKind::InvalidData, error)))?;
        let gid = Gid(gid.octets());
        if gid.is_zero() {
            continue;
        }
        // The kernel answers EINVAL for the attributes of a slot that was emptied meanwhile: an absent attribute is not an error.
        let attribute = |name: &str| root.text(format!("{dir}/gid_attrs/{name}/{index}"));
        let kind = GidType::of(attribute("types").as_deref(), &link_layer, iwarp);
        entries.push(GidEntry { index, gid, kind, netdev: attribute("ndevs") });
    }
    entries.sort_by_key(|entry| entry.index);
    Ok(entries)
}

/// Writes a table for readers (`doctor --json`): addresses and types as text, with the score.
pub(super) fn serialize_for_readers<S: Serializer>(table: &[GidEntry], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Shown<'a> {
        index: u32,
        value: String,
        kind: String,
        score: Option<u32>,
        netdev: Option<&'a str>,
    }
    serializer.collect_seq(table.iter().map(|entry| Shown {
        index: entry.index,
        value: entry.gid.to_string(),
        kind: entry.kind.to_string(),
        score: entry.score().map(|score| score.points),
        netdev: entry.netdev.as_deref(),
    }))
}
