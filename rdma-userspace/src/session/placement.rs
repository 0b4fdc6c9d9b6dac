//! Where the measured threads run: which CPU of which side, and what is said of it.
use super::options::CpuChoice;
use super::{Options, SessionError};
use crate::control::message::ServerFacts;
use crate::system::{Root, device, irq};
use std::fmt;

/// CPUs of the measured threads; `None`: wherever the scheduler likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// Client.
    pub client: Option<u32>,
    /// Server.
    pub server: Option<u32>,
}

impl fmt::Display for Cpus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |cpu: Option<u32>| cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
        write!(out, "client on {}, server on {}", name(self.client), name(self.server))
    }
}

/// Chooses, and refuses a CPU that a side does not have.
///
/// `auto` takes the last CPU for the client and, on one machine, the first one for the server, so that the two never share one
/// where there are two: CPU 0 tends to serve more interrupts, and the client is what is measured.
///
/// # Errors
/// [`SessionError::NoSuchCpu`].
pub fn choose(options: &Options, server: &ServerFacts, same_kernel: bool) -> Result<Cpus, SessionError> {
    let ours = allowed_cpus(&Root::live());
    let client = pick(options.cpu, &ours, ours.last().copied(), "--cpu")?;
    let theirs = server.cpus.iter().copied();
    let free = if same_kernel { theirs.clone().find(|cpu| Some(*cpu) != client) } else { theirs.clone().last() };
    let server = pick(options.server_cpu, &server.cpus, free, "--server-cpu")?;
    Ok(Cpus { client, server })
}

fn pick(choice: CpuChoice, allowed: &[u32], auto: Option<u32>, flag: &'static str) -> Result<Option<u32>, SessionError> {
    match choice {
        CpuChoice::Unpinned => Ok(None),
        // One CPU for everything: pinning would change nothing.
        CpuChoice::Auto => Ok(auto.filter(|_| allowed.len() > 1)),
        CpuChoice::Cpu(cpu) if allowed.contains(&cpu) => Ok(Some(cpu)),
        CpuChoice::Cpu(cpu) => {
            let allowed: Vec<String> = allowed.iter().map(u32::to_string).collect();
            Err(SessionError::NoSuchCpu { flag, cpu, allowed: allowed.join(", ") })
        }
    }
}

/// CPUs that this process may use.
pub fn allowed_cpus(root: &Root) -> Vec<u32> {
    let status = root.text("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.and_then(crate::system::root::cpu_list).unwrap_or_default()
}

/// Completion vector → interrupt → its CPUs, and the sentence about it.
pub struct Vector {
    /// Linux interrupt of the vector.
    pub irq: Option<u32>,
    /// CPUs that it may run on.
    pub irq_cpus: Option<String>,
    /// Vector → interrupt CPU → waiter CPU.
    pub text: String,
}

/// What the kernel tells about a completion vector of a device.
pub fn vector(root: &Root, device_name: &str, comp_vector: u32, waiter: Option<u32>) -> Vector {
    let waiter = waiter.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let found = device::device(root, device_name);
    let row = found.as_ref().and_then(|device| irq::of_vector(root, device, comp_vector));
    match (&found, row) {
        (_, Some(row)) => {
            let affinity = irq::affinity(root, row.irq);
            let cpus = affinity.effective.or(affinity.allowed);
            let on = cpus.clone().unwrap_or_else(|| "CPUs that the kernel does not tell".to_owned());
            let text = format!("completion vector {comp_vector} → irq {} ({}) on CPU {on} → waiter on {waiter}", row.irq, row.name);
            Vector { irq: Some(row.irq), irq_cpus: cpus, text }
        }
        (Some(device), None) if device.is_software() => {
            let text = format!(
                "completion vector {comp_vector} → no interrupt of its own (software device: completions come from the network's softirq, a tasklet or a work item) → waiter on {waiter}"
            );
            Vector { irq: None, irq_cpus: None, text }
        }
        _ => Vector {
            irq: None,
            irq_cpus: None,
            text: format!("completion vector {comp_vector} → an interrupt that the driver does not name → waiter on {waiter}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_not_there_is_refused_and_one_cpu_is_never_pinned_by_itself() {
        assert_eq!(pick(CpuChoice::Auto, &[0, 1], Some(1), "--cpu").ok(), Some(Some(1)));
        assert_eq!(pick(CpuChoice::Auto, &[0], Some(0), "--cpu").ok(), Some(None));
        assert_eq!(pick(CpuChoice::Cpu(0), &[0], None, "--cpu").ok(), Some(Some(0)));
        let refused = pick(CpuChoice::Cpu(7), &[0, 1], None, "--cpu").expect_err("refused").to_string();
        assert!(refused.contains("7") && refused.contains("0, 1"), "{refused}");
    }
}
