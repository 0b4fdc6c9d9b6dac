//! GIDs of a port: value, type, network device, and a simple order of preference.
use super::root::Root;
use serde::Serialize;
use std::net::Ipv6Addr;

/// What a GID's packets look like on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum GidKind {
    /// InfiniBand.
    #[serde(rename = "IB")]
    Ib,
    /// RoCE v1: an Ethernet type of its own, cannot be routed.
    #[serde(rename = "RoCE v1")]
    RoceV1,
    /// RoCE v2: UDP, can be routed.
    #[serde(rename = "RoCE v2")]
    RoceV2,
    /// iWARP: TCP.
    #[serde(rename = "iWARP")]
    Iwarp,
    /// The kernel gave a word that is not known here, or none.
    #[serde(rename = "unknown")]
    Unknown,
}

impl GidKind {
    /// The usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ib => "IB",
            Self::RoceV1 => "RoCE v1",
            Self::RoceV2 => "RoCE v2",
            Self::Iwarp => "iWARP",
            Self::Unknown => "unknown",
        }
    }
}

/// One entry of a port's GID table that is in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gid {
    /// Index in the table, as `sgid_index` and `--gid-index` count.
    pub index: u32,
    /// The GID; it is written as an IPv6 address.
    pub value: Ipv6Addr,
    /// Its type.
    pub kind: GidKind,
    /// Network device that it belongs to.
    pub netdev: Option<String>,
}

impl Gid {
    /// The IPv4 address of an IPv4-mapped GID (`::ffff:a.b.c.d`).
    pub fn ipv4(&self) -> Option<std::net::Ipv4Addr> {
        self.value.to_ipv4_mapped()
    }

    /// Where the address is valid.
    pub fn scope(&self) -> &'static str {
        if self.ipv4().is_some() {
            "IPv4-mapped"
        } else if self.is_link_local() {
            "link-local"
        } else if self.value.is_loopback() {
            "loopback"
        } else {
            "global"
        }
    }

    /// `fe80::/10`.
    pub fn is_link_local(&self) -> bool {
        self.value.segments()[0] & 0xffc0 == 0xfe80
    }

    /// Preference, higher is better: RoCE v2 before v1 (only v2 is routed), then IPv4-mapped and global before link-local
    /// (a link-local GID needs both ends on one link, and its address may not be on the interface at all).
    pub fn score(&self) -> u32 {
        let kind = match self.kind {
            GidKind::RoceV2 => 100,
            GidKind::Ib | GidKind::Iwarp => 90,
            GidKind::RoceV1 => 20,
            GidKind::Unknown => 0,
        };
        let scope = match self.scope() {
            "IPv4-mapped" => 30,
            "global" => 25,
            "link-local" => 10,
            _ => 5,
        };
        kind + scope
    }
}

/// The GIDs in use of the port at `port_dir` (`/sys/class/infiniband/NAME/ports/N`), by index.
pub(super) fn read(root: &Root, port_dir: &str, link_layer: &str, iwarp: bool) -> Vec<Gid> {
    let indices = root.names(format!("{port_dir}/gids"));
    let gid = |name: &String| {
        let value: Ipv6Addr = root.text(format!("{port_dir}/gids/{name}"))?.parse().ok()?;
        if value.is_unspecified() {
            return None;
        }
        Some(Gid {
            index: name.parse().ok()?,
            value,
            kind: kind(root.text(format!("{port_dir}/gid_attrs/types/{name}")).as_deref(), link_layer, iwarp),
            netdev: root.text(format!("{port_dir}/gid_attrs/ndevs/{name}")),
        })
    };
    indices.iter().filter_map(gid).collect()
}

/// The kernel writes `IB/RoCE v1` for both; the link layer tells which.
fn kind(text: Option<&str>, link_layer: &str, iwarp: bool) -> GidKind {
    if iwarp {
        return GidKind::Iwarp;
    }
    match text {
        Some("RoCE v2") => GidKind::RoceV2,
        Some("IB/RoCE v1") if link_layer == "Ethernet" => GidKind::RoceV1,
        Some("IB/RoCE v1") => GidKind::Ib,
        _ if link_layer == "InfiniBand" => GidKind::Ib,
        _ => GidKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(value: &str, kind: GidKind) -> Gid {
        Gid { index: 0, value: value.parse().expect("an address"), kind, netdev: None }
    }

    #[test]
    fn order_of_preference() {
        let best_first = [
            gid("::ffff:10.0.0.2", GidKind::RoceV2),
            gid("2001:db8::1", GidKind::RoceV2),
            gid("fe80::1", GidKind::RoceV2),
            gid("::1", GidKind::RoceV2),
            gid("::ffff:10.0.0.2", GidKind::RoceV1),
            gid("fe80::1", GidKind::RoceV1),
        ];
        for pair in best_first.windows(2) {
            assert!(pair[0].score() > pair[1].score(), "{pair:?}");
        }
    }

    #[test]
    fn kinds() {
        assert_eq!(kind(Some("IB/RoCE v1"), "Ethernet", false), GidKind::RoceV1);
        assert_eq!(kind(Some("IB/RoCE v1"), "InfiniBand", false), GidKind::Ib);
        assert_eq!(kind(Some("RoCE v2"), "Ethernet", false), GidKind::RoceV2);
        assert_eq!(kind(Some("IB/RoCE v1"), "Ethernet", true), GidKind::Iwarp);
        assert_eq!(kind(Some("RoCE v9"), "Ethernet", false), GidKind::Unknown);
        assert_eq!(kind(None, "InfiniBand", false), GidKind::Ib);
    }
}
