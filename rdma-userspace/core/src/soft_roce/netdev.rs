//! The network interfaces of this machine.
use crate::machine::Root;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Netdev {
    /// Its name.
    pub name: String,
    /// It is set up (`IFF_UP`).
    pub up: bool,
    /// It has a carrier; `None` when it does not tell (which it does not while it is down).
    pub carrier: Option<bool>,
}

/// The network interfaces, by name.
pub(super) fn netdevs(root: &Root) -> Vec<Netdev> {
    // `bonding_masters` in that folder is a file, not an interface: an interface has flags.
    root.names("/sys/class/net").iter().filter_map(|name| netdev(root, name)).collect()
}

/// One interface; `None` when there is none of that name.
pub(super) fn netdev(root: &Root, name: &str) -> Option<Netdev> {
    let plain = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
    let flags = if plain { root.text(format!("/sys/class/net/{name}/flags"))? } else { return None };
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()?;
    const IFF_UP: u32 = 1;
    let carrier = root.text(format!("/sys/class/net/{name}/carrier")).map(|text| text == "1");
    Some(Netdev { name: name.to_owned(), up: flags & IFF_UP != 0, carrier })
}
