//! What this process may do: capabilities, user, limits.
use super::proc_text::field;
use super::root::Root;

pub use rustix::thread::CapabilitySet;

/// Is a capability effective in this process?
pub fn has_capability(root: &Root, capability: CapabilitySet) -> bool {
    effective_capabilities(root).is_some_and(|held| held.contains(capability))
}

/// The effective capabilities of this process; `None` when not told.
pub fn effective_capabilities(root: &Root) -> Option<CapabilitySet> {
    effective_in(&root.text("/proc/self/status")?)
}

/// The effective capabilities in the text of a `status` file; `None` when not told.
pub fn effective_in(status: &str) -> Option<CapabilitySet> {
    u64::from_str_radix(field(status, "CapEff")?, 16).ok().map(CapabilitySet::from_bits_retain)
}

/// Effective user id.
pub fn effective_uid(root: &Root) -> Option<u32> {
    let status = root.text("/proc/self/status")?;
    field(&status, "Uid")?.split_whitespace().nth(1)?.parse().ok()
}

/// A limit of /proc/self/limits: (soft, hard), with `u64::MAX` for `unlimited`.
pub fn limit(root: &Root, name: &str) -> Option<(u64, u64)> {
    let limits = root.text("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = line.split_whitespace();
    let mut value = || {
        let word = words.next()?;
        if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() }
    };
    Some((value()?, value()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::Tree;

    #[test]
    fn capabilities_user_and_limits() {
        let root = Tree::new()
            .file("proc/self/status", "Name:\tx\nUid:\t1000\t0\t1000\t1000\nCapEff:\t0000000000001000\n")
            .file("proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         8388608              unlimited            bytes\n");
        let (tree, root) = (&root, root.root());
        assert!(has_capability(&root, CapabilitySet::NET_ADMIN) && !has_capability(&root, CapabilitySet::NET_BROADCAST));
        let of_kernel = [CapabilitySet::NET_ADMIN, CapabilitySet::IPC_LOCK, CapabilitySet::SYS_ADMIN, CapabilitySet::SYSLOG];
        assert_eq!(of_kernel.map(|one| one.bits().trailing_zeros()), [12, 14, 21, 34], "numbers of linux/capability.h");
        let of_probes = [CapabilitySet::PERFMON, CapabilitySet::BPF];
        assert_eq!(of_probes.map(|one| one.bits().trailing_zeros()), [38, 39], "numbers of linux/capability.h");
        assert_eq!(effective_uid(&root), Some(0));
        assert_eq!(limit(&root, "Max locked memory"), Some((8_388_608, u64::MAX)));
        assert_eq!(limit(&root, "Max fun"), None);
        assert!(tree.path().exists());
    }

    #[test]
    fn nothing_told_is_no_right() {
        let root = Tree::new().root();
        assert!(!has_capability(&root, CapabilitySet::NET_ADMIN));
        assert_eq!((effective_uid(&root), limit(&root, "Max locked memory")), (None, None));
    }
}
