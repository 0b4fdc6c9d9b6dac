//! Interrupts: rows of /proc/interrupts, where they may run, and which one serves a completion vector.
use super::device::RdmaDevice;
use super::root::{Root, cpu_list};
use serde::Serialize;

/// A numbered row of /proc/interrupts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IrqRow {
    /// Linux interrupt number.
    pub irq: u32,
    /// Interrupts so far, per column of the file.
    pub counts: Vec<u64>,
    /// CPUs of the columns (CPUs that are offline have none).
    pub cpus: Vec<u32>,
    /// The handlers' names, the last part of the row.
    pub name: String,
}

impl IrqRow {
    /// Interrupts so far on all CPUs.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// Where an interrupt may run, and where it runs now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Affinity {
    /// `smp_affinity_list`: the CPUs that are allowed.
    pub allowed: Option<String>,
    /// `effective_affinity_list`: the CPUs that the interrupt controller was given.
    pub effective: Option<String>,
    /// NUMA node of the device behind it; -1 when the platform tells none.
    pub node: Option<i32>,
}

impl Affinity {
    /// The CPU that gets the interrupt when there is only one.
    pub fn single_cpu(&self) -> Option<u32> {
        let cpus = cpu_list(self.effective.as_deref().or(self.allowed.as_deref())?)?;
        if let [cpu] = cpus[..] { Some(cpu) } else { None }
    }
}

/// All numbered interrupts.
pub fn interrupts(root: &Root) -> Vec<IrqRow> {
    let Some(text) = root.text("/proc/interrupts") else { return Vec::new() };
    let mut lines = text.lines();
    let cpus: Vec<u32> =
        lines.next().unwrap_or_default().split_whitespace().filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    lines.filter_map(|line| row(line, &cpus)).collect()
}

fn row(line: &str, cpus: &[u32]) -> Option<IrqRow> {
    let (number, rest) = line.split_once(':')?;
    let irq = number.trim().parse().ok()?;
    let mut words = rest.split_whitespace();
    let counts: Vec<u64> = words.by_ref().take(cpus.len()).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    if counts.len() != cpus.len() {
        return None;
    }
    // Then: chip, hardware number with the trigger, handlers: `PCI-MSI 524288-edge mlx5_comp0@pci:…`, `GICv3 23 Level arch_timer`.
    let words: Vec<&str> = words.collect();
    let is_trigger = |word: &&str| match word.split_once('-') {
        Some((number, kind)) => number.parse::<u64>().is_ok() && kind.chars().all(|c| c.is_ascii_alphabetic()),
        None => matches!(*word, "Edge" | "Level"),
    };
    let trigger = words.iter().position(is_trigger);
    let name = words.get(trigger.map_or(0, |at| at + 1)..).unwrap_or_default().join(" ");
    Some(IrqRow { irq, counts, cpus: cpus.to_vec(), name })
}

/// Where the interrupt may run.
pub fn affinity(root: &Root, irq: u32) -> Affinity {
    Affinity {
        allowed: root.text(format!("/proc/irq/{irq}/smp_affinity_list")),
        effective: root.text(format!("/proc/irq/{irq}/effective_affinity_list")),
        node: root.number(format!("/proc/irq/{irq}/node")),
    }
}

/// The interrupts of the PCI function at a sysfs `device` link: those of its `msi_irqs` folder.
pub fn of_device(root: &Root, device_link: &str) -> Vec<IrqRow> {
    let mut numbers: Vec<u32> = root.names(format!("{device_link}/msi_irqs")).iter().filter_map(|name| name.parse().ok()).collect();
    if numbers.is_empty() {
        // A virtio network device lies one level below its PCI function.
        numbers = root.names(format!("{device_link}/../msi_irqs")).iter().filter_map(|name| name.parse().ok()).collect();
    }
    interrupts(root).into_iter().filter(|row| numbers.contains(&row.irq)).collect()
}

/// The interrupt that serves a completion vector of a device.
///
/// Known by the name that the driver gives it (mlx5: `mlx5_compN@pci:ADDRESS`, efa: `efa-compN@pci:ADDRESS`), so only for drivers whose
/// names carry the vector; `None` for all others, and for software devices, which have no interrupt.
pub fn of_vector(root: &Root, device: &RdmaDevice, comp_vector: u32) -> Option<IrqRow> {
    let address = &device.pci.as_ref()?.address;
    let name = match device.driver.as_deref()? {
        "mlx5_core" => format!("mlx5_comp{comp_vector}@pci:{address}"),
        "efa" => format!("efa-comp{comp_vector}@pci:{address}"),
        _ => return None,
    };
    interrupts(root).into_iter().find(|row| row.name.split(", ").any(|handler| handler == name))
}

/// Completion vector → interrupt → its CPUs → CPU of the waiter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VectorPlacement {
    /// The interrupt that serves the vector, where the device has one and its name tells which.
    pub irq: Option<u32>,
    /// CPUs that it may run on, as the kernel lists them.
    pub irq_cpus: Option<String>,
    /// One sentence for people.
    pub text: String,
}

/// Where completions of a vector arrive, and where the thread that waits for them runs (`None`: not pinned).
pub fn vector_placement(root: &Root, device: &RdmaDevice, comp_vector: u32, waiter_cpu: Option<u32>) -> VectorPlacement {
    let waiter = waiter_cpu.map_or("waiter not pinned".to_owned(), |cpu| format!("waiter on CPU {cpu}"));
    if let Some(row) = of_vector(root, device, comp_vector) {
        let cpus = affinity(root, row.irq);
        let cpus = cpus.effective.or(cpus.allowed);
        let where_to = cpus.as_deref().unwrap_or("not told");
        let text = format!("completion vector {comp_vector} → interrupt {} ({}) → CPU {where_to} → {waiter}", row.irq, row.name);
        return VectorPlacement { irq: Some(row.irq), irq_cpus: cpus, text };
    }
    let why = match (&device.netdev, device.is_software()) {
        (Some(netdev), true) => {
            let rows = of_device(root, &format!("/sys/class/net/{netdev}/device"));
            let cpus = |row: &IrqRow| affinity(root, row.irq).effective.unwrap_or_else(|| "not told".to_owned());
            let list: Vec<String> = rows.iter().map(|row| format!("{} ({}) → CPU {}", row.irq, row.name, cpus(row))).collect();
            match list.is_empty() {
                true => format!("no interrupt (software device on {netdev}, which has none)"),
                false => format!("no interrupt of its own (software device); {netdev}: {}", list.join(", ")),
            }
        }
        (None, true) => "no interrupt (software device)".to_owned(),
        _ => "its interrupt is not told".to_owned(),
    };
    VectorPlacement { irq: None, irq_cpus: None, text: format!("completion vector {comp_vector} → {why} → {waiter}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::device;
    use crate::system::fixture::{Tree, rxe_machine};

    const TABLE: &str = "           CPU0       CPU2
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 25:         10          5 PCI-MSIX-0000:03:00.0   1-edge      mlx5_comp0@pci:0000:03:00.0
126:          0         77 PCI-MSI 524289-edge      mlx5_comp1@pci:0000:03:00.0
 27:          1          1  GICv3  23 Level     arch_timer
  9:          0          0   IO-APIC   9-fasteoi   acpi
  3:          0          0   IO-APIC   3-edge
NMI:          0          0   Non-maskable interrupts
ERR:          0
";

    fn mlx5() -> Tree {
        Tree::new()
            .file("proc/interrupts", TABLE)
            .file("proc/irq/126/smp_affinity_list", "0-3\n")
            .file("proc/irq/126/effective_affinity_list", "2\n")
            .file("sys/devices/pci0000:00/0000:03:00.0/msi_irqs/126", "msix\n")
            .link("sys/devices/pci0000:00/0000:03:00.0/driver", "../../../bus/pci/drivers/mlx5_core")
            .file("sys/class/infiniband/mlx5_0/node_type", "1: CA\n")
            .link("sys/class/infiniband/mlx5_0/device", "../../../devices/pci0000:00/0000:03:00.0")
    }

    #[test]
    fn rows_keep_cpu_and_name_apart() {
        let rows = interrupts(&mlx5().root());
        assert_eq!(rows.iter().map(|row| row.irq).collect::<Vec<_>>(), [24, 25, 126, 27, 9, 3]);
        assert_eq!(rows[0].name, "ACPI:Ged");
        assert_eq!((rows[1].name.as_str(), rows[1].total()), ("mlx5_comp0@pci:0000:03:00.0", 15));
        assert_eq!((&rows[2].cpus[..], &rows[2].counts[..]), (&[0, 2][..], &[0, 77][..]));
        assert_eq!([&rows[3], &rows[4], &rows[5]].map(|row| row.name.as_str()), ["arch_timer", "acpi", ""]);
    }

    #[test]
    fn vector_to_interrupt_to_cpu() {
        let tree = mlx5();
        let root = tree.root();
        let device = device::device(&root, "mlx5_0").expect("mlx5_0");
        let row = of_vector(&root, &device, 1).expect("vector 1");
        assert_eq!(row.irq, 126);
        assert_eq!(affinity(&root, row.irq).single_cpu(), Some(2));
        assert_eq!(of_vector(&root, &device, 9), None);
        assert_eq!(of_device(&root, "/sys/class/infiniband/mlx5_0/device").len(), 1);
    }

    #[test]
    fn placement_in_a_sentence() {
        let tree = mlx5();
        let root = tree.root();
        let device = device::device(&root, "mlx5_0").expect("mlx5_0");
        let placement = vector_placement(&root, &device, 1, Some(3));
        assert_eq!((placement.irq, placement.irq_cpus.as_deref()), (Some(126), Some("2")));
        assert_eq!(placement.text, "completion vector 1 → interrupt 126 (mlx5_comp1@pci:0000:03:00.0) → CPU 2 → waiter on CPU 3");
        assert_eq!(vector_placement(&root, &device, 7, None).text, "completion vector 7 → its interrupt is not told → waiter not pinned");

        let tree = rxe_machine();
        let device = device::device(&tree.root(), "rxe0").expect("rxe0");
        let placement = vector_placement(&tree.root(), &device, 0, Some(1));
        assert_eq!(placement.irq, None);
        assert_eq!(placement.text, "completion vector 0 → no interrupt (software device on eth0, which has none) → waiter on CPU 1");
    }

    #[test]
    fn a_damaged_table_gives_no_rows() {
        for text in ["", "CPU0\n 5: x edge\n", "CPU0 CPU1\n 5: 1\n"] {
            assert!(interrupts(&Tree::new().file("proc/interrupts", text).root()).is_empty(), "{text:?}");
        }
        assert_eq!(affinity(&Tree::new().root(), 5), Affinity::default());
    }
}
