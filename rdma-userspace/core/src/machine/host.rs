//! The host as the manifest records it: kernel, CPU, memory, boot, clock source, virtualisation.
use super::proc_text::{cpu_list, field};
use super::root::Root;
use capture::manifest::Host;

/// Facts about this machine. What it does not tell stays empty or `None`.
pub fn host() -> Host {
    host_at(&Root::live())
}

/// Facts about the machine below `root`.
pub fn host_at(root: &Root) -> Host {
    let cpuinfo = root.text("/proc/cpuinfo").unwrap_or_default();
    let cpu_model = cpu_model(root, &cpuinfo);
    let hypervisor_name = if root.is_live() { cpuid_hypervisor() } else { None };
    Host {
        kernel: root.text("/proc/sys/kernel/osrelease").unwrap_or_default(),
        cpus: cpus_online(root, &cpuinfo),
        memory_bytes: meminfo_bytes(root, "MemTotal").unwrap_or(0),
        boot_id: boot_id(root).unwrap_or_default(),
        clocksource: root.text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        governor: root.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        emulated: is_emulated(&cpu_model, hypervisor_name.as_deref()),
        hypervisor: hypervisor(root, &cpuinfo, hypervisor_name),
        realtime: is_realtime(root),
        cpu_model,
        // Only a run needs them: its manifest asks for them itself.
        interrupts: Vec::new(),
    }
}

/// Name of this host, for the folder of its captures.
pub fn name() -> String {
    Root::live().text("/proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".to_owned())
}

/// Identity of this boot: equal for all processes of one kernel.
pub fn boot_id(root: &Root) -> Option<String> {
    root.text("/proc/sys/kernel/random/boot_id")
}

/// A line of /proc/meminfo in bytes (the file counts kB of 1024 bytes, or plain numbers for pages).
pub fn meminfo_bytes(root: &Root, key: &str) -> Option<u64> {
    let meminfo = root.text("/proc/meminfo")?;
    let value = field(&meminfo, key)?;
    let mut words = value.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    if words.next() == Some("kB") { number.checked_mul(1024) } else { Some(number) }
}

fn cpu_model(root: &Root, cpuinfo: &str) -> String {
    if let Some(model) = field(cpuinfo, "model name").filter(|model| !model.is_empty()) {
        return model.to_owned();
    }
    // arm64 gives numbers only; a device tree may name the board.
    if let (Some(implementer), Some(part)) = (field(cpuinfo, "CPU implementer"), field(cpuinfo, "CPU part")) {
        return format!("CPU implementer {implementer}, part {part}");
    }
    root.text("/proc/device-tree/model").unwrap_or_default()
}

fn cpus_online(root: &Root, cpuinfo: &str) -> u32 {
    let online = root.text("/sys/devices/system/cpu/online").and_then(|list| cpu_list(&list)).map_or(0, |cpus| cpus.len());
    let count = if online > 0 { online } else { cpuinfo.lines().filter(|line| line.starts_with("processor")).count() };
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Instructions are emulated when the CPU calls itself QEMU TCG (`-cpu max`), or CPUID names TCG as the hypervisor.
fn is_emulated(cpu_model: &str, hypervisor: Option<&str>) -> bool {
    cpu_model.contains("TCG") || hypervisor == Some("TCG")
}

fn is_realtime(root: &Root) -> bool {
    // The flag file came with the out-of-tree patches; mainline kernels say it in the version line.
    root.text("/sys/kernel/realtime").as_deref() == Some("1")
        || root.text("/proc/sys/kernel/version").is_some_and(|version| version.contains("PREEMPT_RT"))
}

/// The hypervisor as the machine tells it. An x86 CPU without the `hypervisor` flag is bare metal, whatever its maker calls it.
fn hypervisor(root: &Root, cpuinfo: &str, cpuid: Option<String>) -> Option<String> {
    if let Some(kind) = root.text("/sys/hypervisor/type") {
        return Some(kind);
    }
    match field(cpuinfo, "flags") {
        Some(flags) if !flags.split_whitespace().any(|flag| flag == "hypervisor") => None,
        Some(_) => Some(cpuid.map(|name| name.to_lowercase()).or_else(|| dmi_hypervisor(root)).unwrap_or_else(|| "not named".to_owned())),
        // No flags line (arm64): firmware tables are all there is.
        None => dmi_hypervisor(root),
    }
}

fn dmi_hypervisor(root: &Root) -> Option<String> {
    let vendor = root.text("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = root.text("/sys/class/dmi/id/product_name").unwrap_or_default();
    let text = format!("{vendor} {product}");
    let kvm_clock =
        root.text("/sys/devices/system/clocksource/clocksource0/available_clocksource").is_some_and(|list| list.contains("kvm-clock"));
    [
        ("VMware", "vmware"),
        ("VirtualBox", "virtualbox"),
        ("Virtual Machine", "hyperv"),
        ("Xen", "xen"),
        ("Parallels", "parallels"),
        ("KVM", "kvm"),
        ("Google Compute Engine", "kvm"),
        ("Amazon EC2", "kvm"),
        ("QEMU", if kvm_clock { "kvm" } else { "qemu" }),
    ]
    .into_iter()
    .find(|(word, _)| text.contains(word))
    .map(|(_, name)| name.to_owned())
    .or_else(|| kvm_clock.then(|| "kvm".to_owned()))
}

/// The hypervisor's own name from CPUID leaf 0x4000_0000, where the CPU says that there is one (leaf 1, ECX bit 31).
#[cfg(target_arch = "x86_64")]
fn cpuid_hypervisor() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    if __cpuid(1).ecx >> 31 == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let mut bytes = Vec::with_capacity(12);
    for register in [leaf.ebx, leaf.ecx, leaf.edx] {
        bytes.extend(register.to_le_bytes());
    }
    cpuid_name(&bytes)
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid_hypervisor() -> Option<String> {
    None
}

/// The usual word for a CPUID hypervisor signature; a signature that is not known is shown as it is.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
fn cpuid_name(signature: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(signature);
    let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    let name = match text {
        "" => return None,
        "TCGTCGTCGTCG" => "TCG",
        "KVMKVMKVM" => "kvm",
        "Microsoft Hv" => "hyperv",
        "VMwareVMware" => "vmware",
        "XenVMMXenVMM" => "xen",
        "VBoxVBoxVBox" => "virtualbox",
        other => return other.chars().all(|c| c.is_ascii_graphic() || c == ' ').then(|| other.to_owned()),
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::{Tree, base_machine};

    #[test]
    fn bare_metal() {
        let host = host_at(&base_machine().root());
        assert_eq!(host.kernel, "6.1.0-40-amd64");
        assert_eq!(host.cpu_model, "Some CPU @ 2.00GHz");
        assert_eq!((host.cpus, host.memory_bytes), (2, 2_048_000 * 1024));
        assert_eq!(host.clocksource.as_deref(), Some("tsc"));
        assert_eq!((host.hypervisor, host.governor), (None, None));
        assert!(!host.emulated && !host.realtime);
        assert!(host.boot_id.starts_with("0b0c1f5e"));
    }

    #[test]
    fn tcg_is_emulated_and_named() {
        let tree = base_machine()
            .file("proc/cpuinfo", "processor\t: 0\nmodel name\t: QEMU TCG CPU version 2.5+\nflags\t\t: fpu hypervisor\n")
            .file("sys/class/dmi/id/sys_vendor", "QEMU\n");
        let host = host_at(&tree.root());
        assert!(host.emulated);
        assert_eq!(host.hypervisor.as_deref(), Some("qemu"));
        // A QEMU CPU model under KVM runs its instructions on the real CPU.
        assert!(!is_emulated("QEMU Virtual CPU version 2.5+", Some("kvm")));
        assert!(is_emulated("Skylake", Some("TCG")));
    }

    #[test]
    fn a_cloud_vendor_without_the_flag_is_bare_metal() {
        let tree = base_machine().file("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        assert_eq!(host_at(&tree.root()).hypervisor, None);
        let tree = tree.file("proc/cpuinfo", "model name\t: x\nflags\t\t: fpu hypervisor\n");
        assert_eq!(host_at(&tree.root()).hypervisor.as_deref(), Some("kvm"));
    }

    #[test]
    fn an_unnamed_hypervisor_is_not_bare_metal() {
        let tree = Tree::new().file("proc/cpuinfo", "model name\t: x\nflags\t\t: hypervisor\n");
        assert_eq!(host_at(&tree.root()).hypervisor.as_deref(), Some("not named"));
    }

    #[test]
    fn realtime_by_version_or_flag() {
        let tree = base_machine().file("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 6.12\n");
        assert!(host_at(&tree.root()).realtime);
        let tree = base_machine().file("sys/kernel/realtime", "1\n");
        assert!(host_at(&tree.root()).realtime);
    }

    #[test]
    fn arm_has_numbers_and_no_files_is_no_panic() {
        let tree = Tree::new().file("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 1\n");
        let host = host_at(&tree.root());
        assert_eq!(host.cpu_model, "CPU implementer 0x41, part 0xd0c");
        assert_eq!(host.cpus, 2);
        assert_eq!(host_at(&Tree::new().root()), Host::default());
    }

    #[test]
    fn signatures() {
        assert_eq!(cpuid_name(b"KVMKVMKVM\0\0\0").as_deref(), Some("kvm"));
        assert_eq!(cpuid_name(b"bhyve bhyve ").as_deref(), Some("bhyve bhyve"));
        assert_eq!(cpuid_name(&[0; 12]), None);
        assert_eq!(cpuid_name(&[1, 2, 3]), None);
    }

    #[test]
    fn this_machine_tells_its_basics() {
        let host = host();
        assert!(!host.kernel.is_empty() && !host.boot_id.is_empty());
        assert!(host.cpus > 0 && host.memory_bytes > 0);
    }
}
