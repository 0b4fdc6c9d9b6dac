//! `soft-roce up`: loads what is needed, makes the device, waits until it can be used, and says each step.
use super::commands::{down_command, own_program, up_command};
use super::error::SoftRoceError;
use super::netdev::{Netdev, netdev, netdevs};
use super::status::device_line;
use super::tools::{SystemTools, ToolOutput, Tools, delete_link};
use super::{describe, may_administrate};
use crate::machine::{GidEntry, RdmaDevice, Root, device};
use std::fmt;
use std::time::{Duration, Instant};

/// How long the device may take to become usable: duplicate address detection of IPv6 alone takes two seconds.
const DEADLINE: Duration = Duration::from_secs(10);

/// A device was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Up {
    /// What was done, in order.
    pub steps: Vec<String>,
    /// The device as it is now.
    pub device: RdmaDevice,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl fmt::Display for Up {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))?;
        writeln!(f, "{}", device_line(&self.device))?;
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))?;
        let (program, name) = (own_program(), &self.device.name);
        let by_index =
            only_by_index(&self.device).map(|entry| format!(" --gid-index {0} --server-gid-index {0}", entry.index)).unwrap_or_default();
        writeln!(f, "Next, both ends on this machine: {program} run --loopback --device {name}{by_index} --op send --mode event")?;
        writeln!(f, "Remove it again: sudo {}", down_command(name))
    }
}

/// Makes the soft-RoCE device `name` on the interface `netdev` of this machine.
///
/// # Errors
/// See [`SoftRoceError`]. After an error there is no device of that name that was not there before.
pub fn up(netdev: &str, name: &str) -> Result<Up, SoftRoceError> {
    up_with(&Root::live(), &mut SystemTools, netdev, name, DEADLINE)
}

/// [`up`] on the machine below `root`, by `tools`, waiting at most `deadline`.
///
/// # Errors
/// As [`up`].
pub fn up_with(root: &Root, tools: &mut dyn Tools, netdev: &str, name: &str, deadline: Duration) -> Result<Up, SoftRoceError> {
    check(root, netdev, name)?;
    if !may_administrate(root) {
        return Err(SoftRoceError::NotPermitted { command: up_command(netdev, name) });
    }
    if !tools.has("rdma") {
        return Err(SoftRoceError::NoTool { tool: "rdma", package: "iproute2" });
    }
    let mut steps = Vec::new();
    // rxe computes its checksums by the kernel's crypto layer (6.1, 6.12): without this module adding a device fails with no reason given.
    // Kernels that need none do not have it, so a failure says nothing.
    if !root.exists("/sys/module/crc32_generic") && tools.has("modprobe") && modprobe(tools, "crc32_generic")?.ok {
        steps.push("Loaded crc32_generic (checksums of rxe).".to_owned());
    }
    // From 7.x on rdma_rxe no longer pulls ib_uverbs in, and without it no program can open the device.
    for module in ["ib_uverbs", "rdma_rxe"] {
        load(root, tools, module, &mut steps)?;
    }
    add(root, tools, netdev, name, &mut steps)?;
    let device = wait(root, tools, netdev, name, deadline)?;
    let notes = notes(root, &device);
    Ok(Up { steps, device, notes })
}

/// Everything that can be said before anything is changed.
fn check(root: &Root, name_of_netdev: &str, name: &str) -> Result<(), SoftRoceError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 63 || name.starts_with('-') || !name.chars().all(legal) {
        return Err(SoftRoceError::BadName { name: name.to_owned() });
    }
    let Some(Netdev { up, carrier, .. }) = netdev(root, name_of_netdev) else {
        let available = netdevs(root).into_iter().map(|netdev| netdev.name).collect();
        return Err(SoftRoceError::NoNetdev { netdev: name_of_netdev.to_owned(), available });
    };
    for existing in device::devices(root) {
        if existing.name == name {
            return Err(SoftRoceError::NameTaken { name: name.to_owned(), what: describe(&existing) });
        }
        if existing.netdev.as_deref() == Some(name_of_netdev) {
            let command = format!("sudo {}", down_command(&existing.name));
            return Err(SoftRoceError::NetdevTaken { netdev: name_of_netdev.to_owned(), name: existing.name, command });
        }
    }
    let down = |what, advice| Err(SoftRoceError::NetdevDown { netdev: name_of_netdev.to_owned(), what, advice });
    if !up {
        return down("down", format!("set it up first: sudo ip link set dev {name_of_netdev} up"));
    }
    if carrier == Some(false) {
        return down("up but has no carrier", "connect it, or use another interface (lo works for both ends on one machine)".to_owned());
    }
    Ok(())
}

fn modprobe(tools: &mut dyn Tools, module: &str) -> Result<ToolOutput, SoftRoceError> {
    tools.run("modprobe", &[module]).map_err(|source| SoftRoceError::ToolFailed { command: format!("modprobe {module}"), source })
}

fn load(root: &Root, tools: &mut dyn Tools, module: &'static str, steps: &mut Vec<String>) -> Result<(), SoftRoceError> {
    if root.exists(format!("/sys/module/{module}")) {
        return Ok(());
    }
    if !tools.has("modprobe") {
        return Err(SoftRoceError::NoTool { tool: "modprobe", package: "kmod" });
    }
    let output = modprobe(tools, module)?;
    if output.ok {
        steps.push(format!("Loaded {module}."));
        return Ok(());
    }
    let kernel = root.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let advice = module_advice(root, &kernel, &output.text);
    Err(SoftRoceError::NoModule { module, kernel, said: output.text, advice })
}

/// Where to get the module from, when the running kernel's list of modules is there and does not name it; else nothing is known to be wrong.
pub(crate) fn module_missing(root: &Root) -> Option<String> {
    let kernel = root.text("/proc/sys/kernel/osrelease")?;
    let lists = ["modules.dep", "modules.builtin"].map(|list| root.text(format!("/lib/modules/{kernel}/{list}")));
    let is_there = root.exists("/sys/module/rdma_rxe") || lists.iter().flatten().any(|list| list.contains("/rdma_rxe.ko"));
    (lists[0].is_some() && !is_there).then(|| module_advice(root, &kernel, ""))
}

/// Where a distribution keeps the module.
fn module_advice(root: &Root, kernel: &str, said: &str) -> String {
    if said.contains("not permitted") || said.contains("Permission denied") {
        return "loading a module needs root on the host itself, a container cannot do it: run `sudo modprobe rdma_rxe` on the host"
            .to_owned();
    }
    if kernel.contains("-cloud-") {
        return "Debian's cloud kernels are built without RDMA: sudo apt-get install linux-image-amd64, then boot that kernel".to_owned();
    }
    let distribution = root.text("/etc/os-release").unwrap_or_default();
    if distribution.lines().any(|line| line == "ID=ubuntu" || line.starts_with("ID_LIKE=") && line.contains("ubuntu")) {
        return format!("Ubuntu keeps it in a package of its own: sudo apt-get install linux-modules-extra-{kernel}");
    }
    if !root.exists(format!("/lib/modules/{kernel}")) {
        return format!(
            "there is no /lib/modules/{kernel}: the running kernel's modules are not installed (after an update, a reboot helps)"
        );
    }
    "this kernel was built without it (CONFIG_RDMA_RXE); use a kernel of the distribution that has it".to_owned()
}

fn add(root: &Root, tools: &mut dyn Tools, netdev: &str, name: &str, steps: &mut Vec<String>) -> Result<(), SoftRoceError> {
    let command = format!("rdma link add {name} type rxe netdev {netdev}");
    let output = tools
        .run("rdma", &["link", "add", name, "type", "rxe", "netdev", netdev])
        .map_err(|source| SoftRoceError::ToolFailed { command: command.clone(), source })?;
    if output.ok {
        steps.push(format!("Made {name} on {netdev}: {command}"));
        return Ok(());
    }
    let advice = if root.exists(format!("/proc/net/vlan/{netdev}")) {
        "; rxe sits on a real interface only: use the one below this VLAN"
    } else {
        "; the kernel's own words: sudo dmesg | grep -i rxe | tail"
    };
    Err(SoftRoceError::LinkFailed { command, said: output.text, advice: advice.to_owned() })
}

/// Waits for the device, an active port, a GID and the character device; takes the device away again when they do not come.
fn wait(root: &Root, tools: &mut dyn Tools, netdev: &str, name: &str, deadline: Duration) -> Result<RdmaDevice, SoftRoceError> {
    let end = Instant::now() + deadline;
    loop {
        let found = device::device(root, name);
        let missing = match &found {
            None => "the kernel does not list it".to_owned(),
            Some(device) => missing(root, device, netdev),
        };
        match found {
            Some(device) if missing.is_empty() => return Ok(device),
            _ if Instant::now() >= end => {
                let cleanup = match delete_link(tools, name) {
                    Ok(()) => "it was removed again".to_owned(),
                    Err(error) => format!("removing it failed too: {error}"),
                };
                return Err(SoftRoceError::NotReady { name: name.to_owned(), seconds: deadline.as_secs(), missing, cleanup });
            }
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// What keeps the device from being used; empty when nothing does.
fn missing(root: &Root, device: &RdmaDevice, netdev: &str) -> String {
    let mut missing = Vec::new();
    let active = device.ports.iter().find(|port| port.is_active());
    match active {
        None => missing.push(format!("no active port (state {})", device.ports.first().map_or("unknown", |port| port.state.as_str()))),
        Some(port) if port.gids.is_empty() => {
            missing.push(format!("no GID: {netdev} has no address; give it one: sudo ip address add 192.0.2.1/24 dev {netdev}"));
        }
        Some(_) => {}
    }
    match &device.uverbs {
        None => missing.push("no uverbs node for it".to_owned()),
        Some(node) if !root.exists(format!("/dev/infiniband/{node}")) => {
            missing.push(format!("no /dev/infiniband/{node} (is udev running?)"))
        }
        Some(_) => {}
    }
    missing.join("; ")
}

/// The GID that has to be named, where a run takes none by itself.
fn only_by_index(device: &RdmaDevice) -> Option<&GidEntry> {
    let has_best = device.ports.iter().any(|port| port.best_gid().is_some());
    device.ports.iter().find_map(|port| port.gids.first()).filter(|_| !has_best)
}

fn notes(root: &Root, device: &RdmaDevice) -> Vec<String> {
    let mut notes = vec!["a software device: the CPU does the work of the card, so its latencies are not those of hardware".to_owned()];
    let netdev = device.netdev.as_deref().unwrap_or("the interface");
    if let Some(only) = only_by_index(device) {
        notes.push(format!(
            "{netdev} has only the {} GID {}: it reaches peers on the same link, and a run takes it by --gid-index and --server-gid-index only; \
             an IPv4 address on {netdev} adds one that it takes by itself",
            only.scope(),
            only.gid
        ));
    }
    if device.ports.iter().any(|port| port.best_gid().is_some_and(|best| best.gid.is_loopback())) {
        notes.push(format!("{netdev} has only loopback addresses: a run takes them for both ends on this machine only"));
    }
    if crate::machine::provider::provider(root, "rxe").is_none() {
        notes.push("no user-space provider for rxe was found; on Debian and Ubuntu: sudo apt-get install ibverbs-providers".to_owned());
    }
    notes
}
