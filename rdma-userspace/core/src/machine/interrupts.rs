//! Interrupts: the table of /proc/interrupts, which of them belong to a device, and where they may run.
use super::proc_text::cpu_list;
use super::root::Root;

/// A row of the table that has a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    /// Linux interrupt number.
    pub number: u32,
    /// Times handled, by column of the table.
    pub counts: Vec<u64>,
    /// CPUs of the columns (CPUs that are offline have none).
    pub cpus: Vec<u32>,
    /// What follows the counts: chip, hardware number with the trigger, names of the handlers.
    pub description: String,
    /// The handlers' names: the last part of the description.
    pub handlers: String,
}

/// Where an interrupt may run, and where it runs now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// Reads the table; rows without a number (`NMI`, `LOC`) are left out.
///
/// # Errors
/// What the system said when the file could not be read.
pub fn read(root: impl Into<Root>) -> std::io::Result<Vec<Interrupt>> {
    Ok(parse(&std::fs::read_to_string(root.into().path("proc/interrupts"))?))
}

/// Parses the table.
fn parse(text: &str) -> Vec<Interrupt> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let cpus: Vec<u32> = head.split_whitespace().filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    lines.filter_map(|line| row(line, &cpus)).collect()
}

fn row(line: &str, cpus: &[u32]) -> Option<Interrupt> {
    let (number, rest) = line.split_once(':')?;
    let number = number.trim().parse().ok()?;
    let mut words = rest.split_whitespace();
    let counts: Vec<u64> = words.by_ref().take(cpus.len()).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    if counts.len() != cpus.len() {
        return None;
    }
    // `PCI-MSI 524288-edge mlx5_comp0@pci:…`, `GICv3 23 Level arch_timer`.
    let words: Vec<&str> = words.collect();
    let is_trigger = |word: &&str| match word.split_once('-') {
        Some((number, kind)) => number.parse::<u64>().is_ok() && kind.chars().all(|c| c.is_ascii_alphabetic()),
        None => matches!(*word, "Edge" | "Level"),
    };
    let trigger = words.iter().position(is_trigger);
    let handlers = words.get(trigger.map_or(0, |at| at + 1)..).unwrap_or_default().join(" ");
    Some(Interrupt { number, counts, cpus: cpus.to_vec(), description: words.join(" "), handlers })
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
pub fn of_device(root: &Root, device_link: &str) -> Vec<Interrupt> {
    let mut numbers: Vec<u32> = root.names(format!("{device_link}/msi_irqs")).iter().filter_map(|name| name.parse().ok()).collect();
    if numbers.is_empty() {
        // A virtio network device lies one level below its PCI function.
        numbers = root.names(format!("{device_link}/../msi_irqs")).iter().filter_map(|name| name.parse().ok()).collect();
    }
    read(root).unwrap_or_default().into_iter().filter(|row| numbers.contains(&row.number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::Tree;

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

    #[test]
    fn numbered_lines_are_read() {
        let text = "           CPU0       CPU1\n  0:         23          0   IO-APIC   2-edge      timer\n 27:      \
                    100         7   PCI-MSI 81920-edge      virtio0-input.0\nLOC:  5  6   Local timer interrupts\n";
        let table = parse(text);
        assert_eq!(table.len(), 2);
        assert_eq!((table[1].number, table[1].counts.as_slice()), (27, [100, 7].as_slice()));
        assert_eq!(table[1].description, "PCI-MSI 81920-edge virtio0-input.0");
    }

    #[test]
    fn rows_keep_cpu_and_name_apart() {
        let rows = parse(TABLE);
        assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), [24, 25, 126, 27, 9, 3]);
        assert_eq!(rows[0].handlers, "ACPI:Ged");
        assert_eq!((rows[1].handlers.as_str(), &rows[1].counts[..]), ("mlx5_comp0@pci:0000:03:00.0", &[10, 5][..]));
        assert_eq!((&rows[2].cpus[..], &rows[2].counts[..]), (&[0, 2][..], &[0, 77][..]));
        assert_eq!([&rows[3], &rows[4], &rows[5]].map(|row| row.handlers.as_str()), ["arch_timer", "acpi", ""]);
    }

    #[test]
    fn a_damaged_table_gives_no_rows() {
        for text in ["", "CPU0\n 5: x edge\n", "CPU0 CPU1\n 5: 1\n"] {
            assert!(parse(text).is_empty(), "{text:?}");
        }
        assert!(read(Tree::new().root()).is_err());
        assert_eq!(affinity(&Tree::new().root(), 5), Affinity::default());
    }
}
