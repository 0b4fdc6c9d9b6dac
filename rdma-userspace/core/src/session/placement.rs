//! Where the measured threads run: which CPU of which side, and what is said of it.
use super::options::CpuChoice;
use super::{Options, SessionError};
use crate::control::message::ServerFacts;
use crate::machine::Root;
use crate::machine::proc_text::{cpu_list, field};
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
pub(super) fn allowed_cpus(root: &Root) -> Vec<u32> {
    let status = root.text("/proc/self/status").unwrap_or_default();
    field(&status, "Cpus_allowed_list").and_then(cpu_list).unwrap_or_default()
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
