//! Where completions of a vector arrive: completion vector → interrupt → its CPUs → CPU of the waiter.
use super::device::RdmaDevice;
use super::interrupts::{self, Interrupt};
use super::root::Root;

/// The interrupt that serves a completion vector of a device.
///
/// Known by the name that the driver gives it (mlx5: `mlx5_compN@pci:ADDRESS`, efa: `efa-compN@pci:ADDRESS`), so only for drivers whose
/// names carry the vector; `None` for all others, and for software devices, which have no interrupt.
pub fn interrupt_of(root: &Root, device: &RdmaDevice, comp_vector: u32) -> Option<Interrupt> {
    let address = &device.pci.as_ref()?.address;
    let name = match device.driver.as_deref()? {
        "mlx5_core" => format!("mlx5_comp{comp_vector}@pci:{address}"),
        "efa" => format!("efa-comp{comp_vector}@pci:{address}"),
        _ => return None,
    };
    interrupts::read(root).unwrap_or_default().into_iter().find(|row| row.handlers.split(", ").any(|handler| handler == name))
}

/// Completion vector → interrupt → its CPUs → CPU of the waiter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The interrupt that serves the vector, where the device has one and its name tells which.
    pub irq: Option<u32>,
    /// CPUs that it may run on, as the kernel lists them.
    pub irq_cpus: Option<String>,
    /// One sentence for people.
    pub text: String,
}

/// Where completions of a vector arrive, and where the thread that waits for them runs (`None`: not pinned).
pub fn placement(root: &Root, device: &RdmaDevice, comp_vector: u32, waiter_cpu: Option<u32>) -> Placement {
    let waiter = waiter_cpu.map_or("waiter not pinned".to_owned(), |cpu| format!("waiter on CPU {cpu}"));
    if let Some(row) = interrupt_of(root, device, comp_vector) {
        let cpus = interrupts::affinity(root, row.number);
        let cpus = cpus.effective.or(cpus.allowed);
        let where_to = cpus.as_deref().unwrap_or("not told");
        let text = format!("completion vector {comp_vector} → interrupt {} ({}) → CPU {where_to} → {waiter}", row.number, row.handlers);
        return Placement { irq: Some(row.number), irq_cpus: cpus, text };
    }
    let why = match (&device.netdev, device.is_software()) {
        (Some(netdev), true) => {
            let rows = interrupts::of_device(root, &format!("/sys/class/net/{netdev}/device"));
            let cpus = |row: &Interrupt| interrupts::affinity(root, row.number).effective.unwrap_or_else(|| "not told".to_owned());
            let list: Vec<String> = rows.iter().map(|row| format!("{} ({}) → CPU {}", row.number, row.handlers, cpus(row))).collect();
            match list.is_empty() {
                true => format!("no interrupt (software device on {netdev}, which has none)"),
                false => format!("no interrupt of its own (software device); {netdev}: {}", list.join(", ")),
            }
        }
        (None, true) => "no interrupt (software device)".to_owned(),
        _ => "its interrupt is not told".to_owned(),
    };
    Placement { irq: None, irq_cpus: None, text: format!("completion vector {comp_vector} → {why} → {waiter}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::device;
    use crate::machine::fixture::{Tree, rxe_machine};

    const TABLE: &str = "           CPU0       CPU2
 25:         10          5 PCI-MSIX-0000:03:00.0   1-edge      mlx5_comp0@pci:0000:03:00.0
126:          0         77 PCI-MSI 524289-edge      mlx5_comp1@pci:0000:03:00.0
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
    fn vector_to_interrupt_to_cpu() {
        let tree = mlx5();
        let root = tree.root();
        let device = device::device(&root, "mlx5_0").expect("mlx5_0");
        let row = interrupt_of(&root, &device, 1).expect("vector 1");
        assert_eq!(row.number, 126);
        assert_eq!(interrupts::affinity(&root, row.number).single_cpu(), Some(2));
        assert_eq!(interrupt_of(&root, &device, 9), None);
        assert_eq!(interrupts::of_device(&root, "/sys/class/infiniband/mlx5_0/device").len(), 1);
    }

    #[test]
    fn placement_in_a_sentence() {
        let tree = mlx5();
        let root = tree.root();
        let device = device::device(&root, "mlx5_0").expect("mlx5_0");
        let found = placement(&root, &device, 1, Some(3));
        assert_eq!((found.irq, found.irq_cpus.as_deref()), (Some(126), Some("2")));
        assert_eq!(found.text, "completion vector 1 → interrupt 126 (mlx5_comp1@pci:0000:03:00.0) → CPU 2 → waiter on CPU 3");
        assert_eq!(placement(&root, &device, 7, None).text, "completion vector 7 → its interrupt is not told → waiter not pinned");

        let tree = rxe_machine();
        let device = device::device(&tree.root(), "rxe0").expect("rxe0");
        let found = placement(&tree.root(), &device, 0, Some(1));
        assert_eq!(found.irq, None);
        assert_eq!(found.text, "completion vector 0 → no interrupt (software device on eth0, which has none) → waiter on CPU 1");
    }
}
