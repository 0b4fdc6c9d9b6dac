//! What all checks look at: the machine and its RDMA devices, read once.
use super::{Options, Severity};
use crate::machine::proc_text::chosen;
use crate::machine::{GidType, RdmaDevice, Root, device, host::host_at};
use capture::manifest::Host;

/// The machine, read once.
pub(super) struct Context<'a> {
    /// Where to read further facts.
    pub root: &'a Root,
    /// The device that was asked for.
    pub wanted: Option<&'a str>,
    /// The host.
    pub host: Host,
    /// All RDMA devices.
    pub devices: Vec<RdmaDevice>,
    /// The devices that this is about: the one that was asked for, or all.
    pub selected: Vec<RdmaDevice>,
}

impl<'a> Context<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        let root = &options.root;
        let devices = device::devices(root);
        let wanted = options.device.as_deref();
        let selected = devices.iter().filter(|device| wanted.is_none_or(|name| name == device.name)).cloned().collect();
        Self { root, wanted, host: host_at(root), devices, selected }
    }

    /// Severity of what makes one device unusable: a problem, unless another of the selected ones can be used.
    pub(super) fn blocking(&self) -> Severity {
        if self.selected.iter().any(|device| self.is_usable(device)) { Severity::Warn } else { Severity::Problem }
    }

    /// A device that a run can use: an active port that has a GID other than iWARP's (whose connections need rdma_cm), and a node in /dev.
    pub(super) fn is_usable(&self, device: &RdmaDevice) -> bool {
        self.node(device).is_some()
            && device.ports.iter().any(|port| port.is_active() && port.gids.iter().any(|gid| gid.kind != GidType::Iwarp))
    }

    /// `/dev/infiniband/uverbsN` of a device, when it is there.
    pub(super) fn node(&self, device: &RdmaDevice) -> Option<String> {
        let node = format!("/dev/infiniband/{}", device.uverbs.as_ref()?);
        self.root.exists(&node).then_some(node)
    }

    /// The network interfaces of the selected devices, each once.
    pub(super) fn netdevs(&self) -> Vec<String> {
        let of_gids =
            |device: &RdmaDevice| device.ports.iter().flat_map(|port| &port.gids).filter_map(|gid| gid.netdev.clone()).collect::<Vec<_>>();
        let mut names: Vec<String> =
            self.selected.iter().flat_map(|device| device.netdev.clone().into_iter().chain(of_gids(device))).collect();
        names.sort();
        names.dedup();
        names
    }

    /// An integer setting such as `/proc/sys/vm/swappiness`.
    pub(super) fn number(&self, path: &str) -> Option<i64> {
        self.root.number(path)
    }

    /// The word in brackets of a choice such as `always [madvise] never`.
    pub(super) fn choice(&self, path: &str) -> Option<String> {
        let text = self.root.text(path)?;
        chosen(&text).map(str::to_owned)
    }
}
