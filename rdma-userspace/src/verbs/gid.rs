//! GIDs: the table of a port, a score for each entry, and the pair that both sides can use.
//!
//! The types come from sysfs, since rdma-sys has no call for them. A link-local address is never chosen by accident: which interface it
//! belongs to cannot be told from the address, and the peer may reach another one.
use super::device::{Device, LinkLayer, SYSFS};
use super::error::VerbsError;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// A GID: 16 bytes that read as an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gid(pub [u8; 16]);

/// Kind of address in a GID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Ipv4,
    Ipv6,
}

impl Gid {
    fn v6(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.0)
    }

    fn v4(&self) -> Option<Ipv4Addr> {
        self.v6().to_ipv4_mapped()
    }

    fn family(&self) -> Family {
        if self.v4().is_some() { Family::Ipv4 } else { Family::Ipv6 }
    }

    fn is_link_local(&self) -> bool {
        self.v4().map_or_else(|| self.v6().is_unicast_link_local(), |v4| v4.is_link_local())
    }

    fn is_loopback(&self) -> bool {
        self.v4().map_or_else(|| self.v6().is_loopback(), |v4| v4.is_loopback())
    }

    fn is_zero(&self) -> bool {
        self.0 == [0; 16]
    }

    /// Leading bits that two GIDs have in common.
    fn common_bits(&self, other: &Self) -> u32 {
        (u128::from_be_bytes(self.0) ^ u128::from_be_bytes(other.0)).leading_zeros()
    }
}

impl std::fmt::Display for Gid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.v6().fmt(f)
    }
}

/// Type of a GID, as the kernel names it in `gid_attrs/types`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GidType {
    /// `RoCE v2`: UDP, routable.
    RoceV2,
    /// `IB/RoCE v1` on Ethernet.
    RoceV1,
    /// `IB/RoCE v1` on InfiniBand.
    Infiniband,
    /// A name that this version does not know.
    Unknown,
}

impl std::fmt::Display for GidType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::RoceV2 => "RoCE v2",
            Self::RoceV1 => "RoCE v1",
            Self::Infiniband => "IB",
            Self::Unknown => "unknown type",
        })
    }
}

/// An entry of the GID table of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GidEntry {
    /// Its index.
    pub index: u32,
    /// The GID.
    pub gid: Gid,
    /// Its type.
    pub kind: GidType,
    /// Network interface that it belongs to, where the kernel tells.
    pub netdev: Option<String>,
}

impl GidEntry {
    /// How suitable the entry is, with the reason; `None`: only by override.
    pub fn score(&self) -> Option<(u32, String)> {
        if self.gid.is_zero() || self.gid.is_link_local() && self.kind != GidType::Infiniband {
            return None;
        }
        let (kind, kind_text) = match self.kind {
            GidType::RoceV2 => (100, "RoCE v2"),
            GidType::RoceV1 => (40, "RoCE v1"),
            GidType::Infiniband => (100, "InfiniBand"),
            GidType::Unknown => return None,
        };
        let (address, address_text) = match self.gid.family() {
            _ if self.kind == GidType::Infiniband => (0, "port GID"),
            _ if self.gid.is_loopback() => (1, "loopback address"),
            Family::Ipv4 => (20, "IPv4 address"),
            Family::Ipv6 => (10, "global IPv6 address"),
        };
        Some((kind + address, format!("{kind_text}, {address_text}")))
    }
}

/// The GID that one side uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GidChoice {
    /// The entry.
    pub entry: GidEntry,
    /// Why it was chosen.
    pub reason: String,
}

/// The GIDs that both sides use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GidPair {
    /// Ours.
    pub local: GidEntry,
    /// The peer's.
    pub remote: GidEntry,
    /// Why these two.
    pub reason: String,
}

/// Reads the GID table of a port; empty slots are left out.
pub fn gid_table(device: &Device, port: u8) -> Result<Vec<GidEntry>, VerbsError> {
    let link_layer = device.port(port)?.link_layer;
    table_at(Path::new(SYSFS), device.name(), port, link_layer)
}

fn table_at(root: &Path, device: &str, port: u8, link_layer: LinkLayer) -> Result<Vec<GidEntry>, VerbsError> {
    let port_dir = root.join(device).join(format!("ports/{port}"));
    let failed = |path: &Path, source| VerbsError::ReadGids { device: device.into(), port, path: path.display().to_string(), source };
    let gids = port_dir.join("gids");
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
        let attribute = |name: &str| fs::read_to_string(port_dir.join("gid_attrs").join(name).join(index.to_string())).ok();
        let kind = match attribute("types").as_deref().map(str::trim) {
            Some("RoCE v2") => GidType::RoceV2,
            Some("IB/RoCE v1") if link_layer == LinkLayer::Ethernet => GidType::RoceV1,
            Some("IB/RoCE v1") | None if link_layer == LinkLayer::Infiniband => GidType::Infiniband,
            _ => GidType::Unknown,
        };
        let netdev = attribute("ndevs").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        entries.push(GidEntry { index, gid, kind, netdev });
    }
    entries.sort_by_key(|entry| entry.index);
    Ok(entries)
}

/// The best GID of one table, as `doctor` shows it.
pub fn choose_local(table: &[GidEntry]) -> Result<GidChoice, VerbsError> {
    let scored = table.iter().filter_map(|entry| entry.score().map(|(score, reason)| (score, reason, entry)));
    // Of equal ones the first of the table.
    let best = scored.max_by_key(|(score, _, entry)| (*score, std::cmp::Reverse(entry.index)));
    let (_, reason, entry) = best.ok_or_else(|| unusable("the table has nothing but link-local or unknown entries", table, &[]))?;
    Ok(GidChoice { entry: entry.clone(), reason })
}

/// Chooses one GID of each table so that both sides agree: one type, one family, the nearest network.
///
/// `same_kernel` allows loopback addresses, which name a different machine everywhere. `local_index` and `remote_index` override the choice
/// of their side, even to a link-local address.
pub fn choose_pair(
    local: &[GidEntry],
    remote: &[GidEntry],
    same_kernel: bool,
    local_index: Option<u32>,
    remote_index: Option<u32>,
) -> Result<GidPair, VerbsError> {
    let local_side = candidates(local, local_index, "local", remote)?;
    let remote_side = candidates(remote, remote_index, "peer's", local)?;
    let mut best: Option<(u32, GidPair)> = None;
    for (local_score, local_reason, ours) in &local_side {
        for (remote_score, _, theirs) in &remote_side {
            let forced = local_index.is_some() && remote_index.is_some();
            let fits = ours.kind == theirs.kind
                && (ours.gid.family() == theirs.gid.family() || ours.kind == GidType::Infiniband)
                && (ours.gid.is_link_local() == theirs.gid.is_link_local() || ours.kind == GidType::Infiniband)
                && ours.gid.is_loopback() == theirs.gid.is_loopback()
                && (same_kernel || !ours.gid.is_loopback());
            if !fits && !forced {
                continue;
            }
            let near = ours.gid.common_bits(&theirs.gid);
            // The score decides first; the network only among equals.
            let score = (local_score + remote_score) * 256 + near;
            if best.as_ref().is_none_or(|(known, _)| score > *known) {
                let chosen = if local_index.is_some() || remote_index.is_some() { "chosen by index" } else { local_reason };
                let reason = format!("{chosen} on both sides, {near} leading bits in common");
                best = Some((score, GidPair { local: (*ours).clone(), remote: (*theirs).clone(), reason }));
            }
        }
    }
    let why = "no two entries share type and address family (loopback addresses only serve one machine)";
    best.map(|(_, pair)| pair).ok_or_else(|| unusable(why, local, remote))
}

fn candidates<'a>(
    table: &'a [GidEntry],
    index: Option<u32>,
    side: &str,
    other: &[GidEntry],
) -> Result<Vec<(u32, String, &'a GidEntry)>, VerbsError> {
    match index {
        Some(index) => match table.iter().find(|entry| entry.index == index) {
            Some(entry) => Ok(vec![(0, "by index".into(), entry)]),
            None => Err(unusable(&format!("the {side} table has no entry {index}"), table, other)),
        },
        None => Ok(table.iter().filter_map(|entry| entry.score().map(|(score, reason)| (score, reason, entry))).collect()),
    }
}

fn unusable(why: &str, local: &[GidEntry], remote: &[GidEntry]) -> VerbsError {
    let show = |table: &[GidEntry]| {
        let rows = table.iter().map(|entry| {
            let score = entry.score().map_or_else(|| "not by itself".into(), |(score, _)| format!("score {score}"));
            format!("{}: {} ({}, {score})", entry.index, entry.gid, entry.kind)
        });
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() { "empty".to_owned() } else { rows.join("; ") }
    };
    let mut tables = format!("Table here: {}", show(local));
    if !remote.is_empty() {
        tables.push_str(&format!(". Other table: {}", show(remote)));
    }
    VerbsError::NoUsableGid { why: why.into(), tables }
}

#[cfg(test)]
#[path = "gid_tests.rs"]
mod tests;
