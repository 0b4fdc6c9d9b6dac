//! Placement: which CPUs the measured threads get, and the way vector → interrupt CPU → waiter CPU.
use super::error::RunnerError;
use crate::verbs::Device;
use crate::verbs::ffi::os;
use std::fs;
use std::path::PathBuf;

/// What the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuWish {
    /// Choose.
    Auto,
    /// This one.
    Cpu(u32),
    /// Do not pin.
    Unpinned,
}

/// CPUs of the measured threads; `None`: not pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// Client's thread.
    pub client: Option<u32>,
    /// Server's thread, where it runs on this machine.
    pub server: Option<u32>,
}

/// Where a completion vector leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorPath {
    /// Linux interrupt, where the device has one and its name is known.
    pub irq: Option<u32>,
    /// CPUs that it may run on, as the kernel lists them.
    pub irq_cpus: Option<String>,
    /// The sentence to print.
    pub text: String,
}

/// Roots of the pseudo file systems; other ones in tests.
struct Roots {
    proc: PathBuf,
    sys: PathBuf,
}

impl Roots {
    fn real() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into() }
    }
}

/// Chooses the CPUs of both threads. `loopback`: both ends run on this machine.
///
/// Automatic: with one CPU nothing is pinned, since two pinned threads would only take turns. In loopback the server gets the first CPU and
/// the client the next one that is not its hyper-thread. Otherwise a thread gets the second CPU, which fewer interrupts go to than the first.
pub fn choose_cpus(client: CpuWish, server: CpuWish, loopback: bool) -> Result<Cpus, RunnerError> {
    let allowed = os::allowed_cpus().map_err(|source| RunnerError::Read { path: "the CPU affinity of this process".into(), source })?;
    choose(client, server, loopback, &allowed, &Roots::real())
}

fn choose(client: CpuWish, server: CpuWish, loopback: bool, allowed: &[u32], roots: &Roots) -> Result<Cpus, RunnerError> {
    let fixed = |wish| match wish {
        CpuWish::Cpu(cpu) if !allowed.contains(&cpu) => {
            let allowed = format!("CPUs {}", allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
            Err(RunnerError::NoSuchCpu { cpu, allowed, source: std::io::Error::from_raw_os_error(libc::EINVAL) })
        }
        CpuWish::Cpu(cpu) => Ok(Some(cpu)),
        CpuWish::Auto | CpuWish::Unpinned => Ok(None),
    };
    let (mut cpus, many) = (Cpus { client: fixed(client)?, server: fixed(server)? }, allowed.len() > 1);
    if server == CpuWish::Auto && many {
        let taken = cpus.client.filter(|_| loopback);
        cpus.server = if loopback { pick(allowed, taken, roots) } else { allowed.get(1).copied() };
    }
    if client == CpuWish::Auto && many {
        let taken = cpus.server.filter(|_| loopback);
        cpus.client = if taken.is_some() { pick(allowed, taken, roots) } else { allowed.get(1).copied() };
    }
    Ok(cpus)
}

/// The first CPU that is neither taken nor a hyper-thread of the taken one; failing that the first that is not taken.
fn pick(allowed: &[u32], taken: Option<u32>, roots: &Roots) -> Option<u32> {
    let siblings = taken.map(|cpu| siblings(cpu, roots)).unwrap_or_default();
    let free = || allowed.iter().copied().filter(|cpu| Some(*cpu) != taken);
    free().find(|cpu| !siblings.contains(cpu)).or_else(|| free().next())
}

/// Hyper-threads of a CPU's core, itself included; empty where the kernel does not tell.
fn siblings(cpu: u32, roots: &Roots) -> Vec<u32> {
    let path = roots.sys.join(format!("devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
    fs::read_to_string(path).map(|text| cpu_list(&text)).unwrap_or_default()
}

/// The CPUs of a list such as `0-2,5`.
fn cpu_list(text: &str) -> Vec<u32> {
    let ranges = text.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?.min(1 << 16))
    });
    ranges.flatten().collect()
}

/// Where the completions of a vector go: interrupt, the CPUs that it runs on, and the CPU of the waiting thread.
pub fn vector_path(device: &Device, comp_vector: u32, waiter: Option<u32>) -> VectorPath {
    path_of(&Roots::real(), device.name(), &device.driver(), comp_vector, waiter)
}

fn path_of(roots: &Roots, device: &str, driver: &str, vector: u32, waiter: Option<u32>) -> VectorPath {
    let waiter = waiter.map_or_else(|| "a waiter that is not pinned".to_owned(), |cpu| format!("waiter on CPU {cpu}"));
    let without_irq = |why: String| VectorPath { irq: None, irq_cpus: None, text: format!("vector {vector} → {why} → {waiter}") };
    if matches!(driver, "rdma_rxe" | "siw") {
        return without_irq(format!("no interrupt of its own ({driver} is software: whichever CPU runs its task or softirq notifies)"));
    }
    let Some(action) = action_name(roots, device, driver, vector) else {
        return without_irq(format!("an interrupt that is not known (how {driver} names its vectors is not in this version)"));
    };
    let interrupts = fs::read_to_string(roots.proc.join("interrupts")).unwrap_or_default();
    let Some(irq) = irq_of_action(&interrupts, &action) else {
        return without_irq(format!("an interrupt that /proc/interrupts does not list as {action}"));
    };
    let affinity = |file| fs::read_to_string(roots.proc.join(format!("irq/{irq}/{file}"))).ok();
    let irq_cpus = affinity("effective_affinity_list").filter(|text| !text.trim().is_empty()).or_else(|| affinity("smp_affinity_list"));
    let irq_cpus = irq_cpus.map(|text| text.trim().to_owned());
    let on = irq_cpus.as_ref().map_or_else(|| "CPU unknown".to_owned(), |cpus| format!("CPU {cpus}"));
    VectorPath { irq: Some(irq), text: format!("vector {vector} → irq {irq} ({action}, {on}) → {waiter}"), irq_cpus }
}

/// Name under which a driver registers the interrupt of a vector. Only names whose numbering is known to follow the vector are here.
fn action_name(roots: &Roots, device: &str, driver: &str, vector: u32) -> Option<String> {
    let function = fs::canonicalize(roots.sys.join("class/infiniband").join(device).join("device")).ok()?;
    let address = function.file_name()?.to_str()?;
    match driver {
        "mlx5_core" => Some(format!("mlx5_comp{vector}@pci:{address}")),
        _ => None,
    }
}

/// Number of the interrupt whose line ends in this action.
fn irq_of_action(interrupts: &str, action: &str) -> Option<u32> {
    let line = interrupts.lines().find(|line| line.split([' ', ',']).any(|word| word == action))?;
    line.trim_start().split_once(':')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::CpuWish::{Auto, Cpu, Unpinned};
    use super::*;
    use std::path::Path;

    fn fixture(root: &Path) -> Roots {
        Roots { proc: root.join("proc"), sys: root.join("sys") }
    }

    fn tree(siblings: &[(u32, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (cpu, list) in siblings {
            let dir = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("thread_siblings_list"), format!("{list}\n")).unwrap();
        }
        root
    }

    fn chosen(client: CpuWish, server: CpuWish, loopback: bool, allowed: &[u32], root: &Path) -> (Option<u32>, Option<u32>) {
        let cpus = choose(client, server, loopback, allowed, &fixture(root)).unwrap();
        (cpus.client, cpus.server)
    }

    #[test]
    fn automatic_placement() {
        let plain = tree(&[]);
        assert_eq!(chosen(Auto, Auto, true, &[0], plain.path()), (None, None));
        assert_eq!(chosen(Auto, Auto, true, &[0, 1], plain.path()), (Some(1), Some(0)));
        assert_eq!(chosen(Auto, Auto, false, &[0, 1], plain.path()), (Some(1), Some(1)));
        assert_eq!(chosen(Auto, Unpinned, false, &[0], plain.path()), (None, None));
        assert_eq!(chosen(Cpu(0), Auto, true, &[0, 1], plain.path()), (Some(0), Some(1)));
        assert_eq!(chosen(Auto, Cpu(1), true, &[0, 1], plain.path()), (Some(0), Some(1)));
        assert_eq!(chosen(Unpinned, Unpinned, true, &[0, 1], plain.path()), (None, None));
        // A process that may not use CPU 0.
        assert_eq!(chosen(Auto, Auto, true, &[4, 6], plain.path()), (Some(6), Some(4)));
    }

    #[test]
    fn hyper_threads_of_one_core_are_avoided() {
        let smt = tree(&[(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")]);
        assert_eq!(chosen(Auto, Auto, true, &[0, 1, 2, 3], smt.path()), (Some(2), Some(0)));
        // Where there is nothing else the sibling has to do.
        assert_eq!(chosen(Auto, Auto, true, &[0, 1], smt.path()), (Some(1), Some(0)));
    }

    #[test]
    fn a_cpu_that_is_not_allowed_is_named() {
        let error = choose(Cpu(7), Auto, true, &[0, 1], &fixture(tree(&[]).path())).unwrap_err().to_string();
        assert!(error.contains("CPU 7") && error.contains("CPUs 0, 1"), "{error}");
    }

    #[test]
    fn a_vector_leads_to_its_interrupt() {
        let root = tree(&[]);
        let function = root.path().join("sys/devices/pci0000:00/0000:3b:00.1");
        fs::create_dir_all(&function).unwrap();
        let class = root.path().join("sys/class/infiniband/mlx5_1");
        fs::create_dir_all(&class).unwrap();
        std::os::unix::fs::symlink(&function, class.join("device")).unwrap();
        fs::create_dir_all(root.path().join("proc/irq/142")).unwrap();
        let interrupts = "            CPU0       CPU1\n  24:          7          0   PCI-MSI 327680-edge      xhci_hcd\n \
             141:          1          0   PCI-MSIX-0000:3b:00.1   2-edge      mlx5_comp1@pci:0000:3b:00.0\n \
             142:          1          9   PCI-MSIX-0000:3b:00.1   2-edge      mlx5_comp1@pci:0000:3b:00.1\n \
             152:          1          9   PCI-MSIX-0000:3b:00.1  12-edge      mlx5_comp11@pci:0000:3b:00.1\n";
        fs::write(root.path().join("proc/interrupts"), interrupts).unwrap();
        fs::write(root.path().join("proc/irq/142/smp_affinity_list"), "0-1\n").unwrap();
        let roots = fixture(root.path());
        let path = path_of(&roots, "mlx5_1", "mlx5_core", 1, Some(1));
        assert_eq!((path.irq, path.irq_cpus.as_deref()), (Some(142), Some("0-1")));
        assert_eq!(path.text, "vector 1 → irq 142 (mlx5_comp1@pci:0000:3b:00.1, CPU 0-1) → waiter on CPU 1");
        fs::write(root.path().join("proc/irq/142/effective_affinity_list"), "0\n").unwrap();
        assert_eq!(path_of(&roots, "mlx5_1", "mlx5_core", 1, None).irq_cpus.as_deref(), Some("0"));
        // What is not there is said, not guessed.
        assert!(path_of(&roots, "mlx5_1", "mlx5_core", 2, None).text.contains("does not list as mlx5_comp2"));
        assert!(path_of(&roots, "mlx5_1", "othercard", 1, None).text.contains("how othercard names its vectors"));
        let soft = path_of(&roots, "rxe0", "rdma_rxe", 0, Some(1));
        assert!(soft.irq.is_none() && soft.text.contains("no interrupt of its own") && soft.text.ends_with("waiter on CPU 1"));
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(cpu_list(""), Vec::<u32>::new());
        assert_eq!(cpu_list("x-3,4"), [4]);
    }
}
