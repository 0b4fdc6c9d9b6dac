//! The kernel threads that the completion path may run in: threads of interrupts, and those to which softirqs are put off.
//!
//! Only threads that exist are found, so a kernel that handles interrupts in the interrupt itself gets no interrupt stages of threads.
//! Each is there for a reason, and costs a few records whenever it gets or leaves its CPU:
//! - `irq/N-…` (PREEMPT_RT, `threadirqs`, drivers that ask for it): every completion passes it, so only those of the interrupts in the path, and none that tells of sent
//!   packets only;
//! - `ktimers/N`, `backlog_napi/N` (PREEMPT_RT): they may run the receive softirq that such a thread raised;
//! - `napi/DEVICE-N`: threaded NAPI of the network device below;
//! - `ksoftirqd/N`: on a kernel without threaded interrupts it runs only when a softirq was put off, and then its wake-up is what the
//!   sample waited for. Where nothing is put off it costs nothing.
//!
//! `ksoftirqd`, `ktimers` and `backlog_napi` are taken on the CPUs of these interrupts and of the measured threads; on all where none of
//! them is known.
use super::interrupts;
use super::proc_text::cpu_list;
use super::root::Root;
use super::{RdmaDevice, device};
use capture::manifest::KernelThread;
use std::collections::BTreeSet;

/// `PF_KTHREAD` (include/linux/sched.h), the same in every kernel from 3.0 on.
const PF_KTHREAD: u64 = 0x0020_0000;

/// The threads in the path of a device's completions on this machine. `pinned`: the CPUs of the measured threads that run here, `None` for
/// one that is not pinned.
pub fn in_path(device: &str, pinned: &[Option<u32>]) -> Vec<KernelThread> {
    let root = Root::live();
    device::device(&root, device).map(|device| in_path_at(&root, &device, pinned)).unwrap_or_default()
}

/// As [`in_path`], below a root.
pub fn in_path_at(root: &Root, device: &RdmaDevice, pinned: &[Option<u32>]) -> Vec<KernelThread> {
    let mut rows = interrupts::of_device(root, &format!("/sys/class/infiniband/{}/device", device.name));
    let netdev = device.netdev.as_deref();
    if let Some(netdev) = netdev {
        rows.extend(interrupts::of_device(root, &format!("/sys/class/net/{netdev}/device")));
    }
    let irqs: BTreeSet<u32> = rows.iter().filter(|row| !only_transmits(&row.handlers)).map(|row| row.number).collect();
    let mut near: BTreeSet<u32> = irqs
        .iter()
        .filter_map(|irq| {
            let affinity = interrupts::affinity(root, *irq);
            cpu_list(affinity.effective.as_deref().or(affinity.allowed.as_deref())?)
        })
        .flatten()
        .collect();
    // Without an interrupt in the path the softirqs run where the posts are made.
    let everywhere = irqs.is_empty() && pinned.iter().any(Option::is_none);
    near.extend(pinned.iter().flatten());
    find(root, |name| is_in_path(name, &irqs, (!everywhere).then_some(&near), netdev))
}

/// An interrupt that tells of sent packets only, by the name that its driver gave it (`virtio1-output.0`, `eth0-tx-0`): no completion comes
/// with it, and where interrupts run in threads its own would cost as many records as that of the received packets.
fn only_transmits(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    (name.contains("output") || name.contains("tx")) && !name.contains("rx")
}

/// `cpus`: `None` means every CPU.
fn is_in_path(name: &str, irqs: &BTreeSet<u32>, cpus: Option<&BTreeSet<u32>>, netdev: Option<&str>) -> bool {
    let Some((kind, rest)) = name.split_once('/') else { return false };
    match kind {
        "irq" => rest.split('-').next().and_then(|number| number.parse().ok()).is_some_and(|irq: u32| irqs.contains(&irq)),
        "ksoftirqd" | "ktimers" | "backlog_napi" => rest.parse().is_ok_and(|cpu: u32| cpus.is_none_or(|cpus| cpus.contains(&cpu))),
        // Old kernels cut the name after 15 characters: `napi/enp129s0f0`.
        "napi" => netdev.is_some_and(|netdev| rest.strip_prefix(netdev).is_some_and(|rest| rest.starts_with('-')) || is_cut(name, netdev)),
        _ => false,
    }
}

fn is_cut(name: &str, netdev: &str) -> bool {
    name.len() == 15 && format!("napi/{netdev}-").starts_with(name)
}

/// Kernel threads whose name is wanted. Programs may take any name; they are told apart.
fn find(root: &Root, is_wanted: impl Fn(&str) -> bool) -> Vec<KernelThread> {
    let pids = root.names("/proc").into_iter().filter_map(|name| name.parse().ok());
    pids.filter_map(|pid: u32| {
        let name = root.text(format!("/proc/{pid}/comm")).filter(|name| is_wanted(name))?;
        is_kernel_thread(root, pid).then_some(KernelThread { pid, name })
    })
    .collect()
}

fn is_kernel_thread(root: &Root, pid: u32) -> bool {
    // The name stands in parentheses and may hold any character; the flags are the seventh field after it.
    let flags = || root.text(format!("/proc/{pid}/stat"))?.rsplit_once(')')?.1.split_whitespace().nth(6)?.parse::<u64>().ok();
    flags().is_some_and(|flags| flags & PF_KTHREAD != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::{Tree, rxe_machine};

    const KTHREAD: u64 = 0x0020_8040;
    const NOT_PINNED: &[Option<u32>] = &[None];

    fn thread(tree: Tree, pid: u32, name: &str, flags: u64) -> Tree {
        tree.file(&format!("proc/{pid}/comm"), &format!("{name}\n"))
            .file(&format!("proc/{pid}/stat"), &format!("{pid} ({name}) S 2 0 0 0 -1 {flags} 0 0 0 0\n"))
    }

    fn found(tree: &Tree, pinned: &[Option<u32>]) -> Vec<String> {
        let root = tree.root();
        let device = device::device(&root, "rxe0").expect("rxe0");
        in_path_at(&root, &device, pinned).into_iter().map(|thread| thread.name).collect()
    }

    fn machine() -> Tree {
        let tree = rxe_machine()
            .file("proc/interrupts", "      CPU0 CPU1\n 28:  5  0  PCI-MSI 1-edge  virtio1-input.0\n 29:  5  0  PCI-MSI 2-edge  virtio1-output.0\n 40:  1  0  PCI-MSI 3-edge  nvme0q1\n")
            .file("sys/devices/pci/msi_irqs/28", "msix\n")
            .file("sys/devices/pci/msi_irqs/29", "msix\n")
            .link("sys/class/net/eth0/device", "../../../devices/pci")
            .file("proc/irq/28/effective_affinity_list", "1\n")
            .file("proc/irq/29/effective_affinity_list", "2\n");
        let tree = thread(tree, 15, "ksoftirqd/0", KTHREAD);
        let tree = thread(tree, 22, "ksoftirqd/1", KTHREAD);
        thread(tree, 23, "ksoftirqd/2", KTHREAD)
    }

    #[test]
    fn a_kernel_without_threaded_interrupts_has_only_the_softirq_threads_of_the_cpus_in_the_path() {
        let tree = machine();
        assert_eq!(found(&tree, &[Some(0)]), ["ksoftirqd/0", "ksoftirqd/1"]);
        assert_eq!(found(&tree, NOT_PINNED), ["ksoftirqd/1"]);
    }

    #[test]
    fn without_an_interrupt_and_without_pinning_every_cpu_counts() {
        let tree = machine();
        tree.remove("sys/devices/pci/msi_irqs");
        assert_eq!(found(&tree, NOT_PINNED).len(), 3);
    }

    #[test]
    fn threads_of_other_interrupts_and_programs_with_such_names_are_left_out() {
        let tree = thread(machine(), 180, "irq/28-virtio1-input.0", KTHREAD);
        let tree = thread(tree, 181, "irq/40-nvme0q1", KTHREAD);
        let tree = thread(tree, 182, "irq/29-virtio1-output.0", KTHREAD);
        let tree = thread(tree, 900, "irq/28-me", 0x40_0000);
        let tree = thread(tree, 30, "ktimers/1", KTHREAD);
        let tree = thread(tree, 31, "ktimers/0", KTHREAD);
        let tree = thread(tree, 32, "backlog_napi/1", KTHREAD);
        let tree = thread(tree, 190, "napi/eth0-8193", KTHREAD);
        let tree = thread(tree, 191, "napi/eth01-8194", KTHREAD);
        assert_eq!(found(&tree, NOT_PINNED), ["ksoftirqd/1", "ktimers/1", "backlog_napi/1", "irq/28-virtio1-input.0", "napi/eth0-8193"]);
    }

    #[test]
    fn interrupts_of_sent_packets_are_known_by_their_names() {
        for (name, only) in
            [("virtio1-output.0", true), ("eth0-tx-3", true), ("virtio1-input.0", false), ("eth0-TxRx-3", false), ("mlx5_comp0", false)]
        {
            assert_eq!(only_transmits(name), only, "{name}");
        }
    }

    #[test]
    fn a_name_that_an_old_kernel_cut_is_known() {
        let none = BTreeSet::new();
        assert!(is_in_path("napi/enp129s0f0", &none, None, Some("enp129s0f0np0")));
        assert!(!is_in_path("napi/enp129s0f0", &none, None, Some("enp3s0")));
    }
}
