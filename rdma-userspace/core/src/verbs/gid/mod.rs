//! The pair of GIDs that both sides of a run can use. What an entry is and how suitable is [`crate::machine::gid`]'s matter.
use super::device::Device;
use super::error::VerbsError;
use crate::machine::Root;
use crate::machine::gid::{self, GidEntry, GidType};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

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
    // A port that the device does not have is told as such.
    device.port(port)?;
    gid::table(&Root::live(), device.name(), port).map_err(|error| VerbsError::ReadGids {
        device: device.name().into(),
        port,
        path: error.path.display().to_string(),
        source: error.source,
    })
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
        None => Ok(table.iter().filter_map(|entry| entry.score().map(|score| (score.points, score.reason, entry))).collect()),
    }
}

fn unusable(why: &str, local: &[GidEntry], remote: &[GidEntry]) -> VerbsError {
    let show = |table: &[GidEntry]| {
        let rows = table.iter().map(|entry| {
            let score = entry.score().map_or_else(|| "not by itself".into(), |score| format!("score {}", score.points));
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
