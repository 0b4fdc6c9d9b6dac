//! The traced processes: those that are there, those that have a device open, those that come later, a command that is started.

use std::path::Path;
use std::process::{Child, Command};

use capture::manifest::{FoundThread, TracedProcess};

use super::TraceError;
use super::targets::{Selection, Targets};
use rdmascope_core::machine::Root;
use rdmascope_core::machine::device::verbs_files;
use rdmascope_core::probes::{ProbeError, Probes, monotonic_ns, threads_of};

/// The processes that are traced: found, started, and watched for their end.
pub(super) struct TracedProcesses {
    targets: Targets,
    /// Name of the device's file below `/dev/infiniband`.
    device_file: Option<String>,
    child: Option<Child>,
    /// Processes, also those that have ended.
    pub processes: Vec<TracedProcess>,
    /// Creators of CQs that are not what was asked for.
    unwanted: Vec<u32>,
}

impl TracedProcesses {
    /// Finds what is there already.
    pub fn begin(targets: &Targets, probes: &mut Probes) -> Result<Self, TraceError> {
        let device_file = match &targets.selection {
            Selection::Device(name) => Some(device_file(name)?),
            _ => None,
        };
        let mut traced =
            TracedProcesses { targets: targets.clone(), device_file, child: None, processes: Vec::new(), unwanted: Vec::new() };
        match &targets.selection {
            Selection::Pids(pids) => {
                for pid in pids {
                    // An error for a process that does not exist.
                    threads_of(*pid)?;
                    traced.follow(*pid, true, probes)?;
                }
            }
            Selection::Command(_) => {}
            Selection::Name(_) | Selection::Device(_) => {
                for pid in all_processes() {
                    if traced.is_wanted(pid) {
                        traced.follow(pid, true, probes)?;
                    }
                }
            }
        }
        let what = match &targets.selection {
            Selection::Name(name) => format!("called {name}"),
            Selection::Device(device) => format!("that has {device} open"),
            _ => String::new(),
        };
        if traced.processes.is_empty() && !targets.wait && !what.is_empty() {
            return Err(TraceError::NoSuchProcess { what });
        }
        Ok(traced)
    }

    /// Starts the command, where one was given; to be called with the probes attached.
    pub fn start(&mut self, probes: &mut Probes) -> Result<(), TraceError> {
        let Selection::Command(command) = &self.targets.selection else { return Ok(()) };
        let Some((program, arguments)) = command.split_first() else { return Ok(()) };
        let child = Command::new(program).args(arguments).spawn();
        let child = child.map_err(|error| TraceError::Start { command: program.clone(), error })?;
        let pid = child.id();
        self.child = Some(child);
        self.follow(pid, false, probes)?;
        Ok(())
    }

    /// A process created a CQ: whether it is one of ours, which begins to be traced now where it was not.
    pub fn created_cq(&mut self, pid: u32, probes: &mut Probes) -> Result<(), ProbeError> {
        if self.processes.iter().any(|process| process.tgid == pid) || self.unwanted.contains(&pid) {
            return Ok(());
        }
        if self.is_wanted(pid) {
            return self.follow(pid, false, probes);
        }
        self.unwanted.push(pid);
        probes.untrack_tgid(pid)
    }

    /// Checks for the end of processes, and for names of commands that have become another program since. True when there is nothing left
    /// to wait for.
    pub fn update(&mut self) -> bool {
        let child = self.child.as_mut();
        let child_ended = child.is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
        for process in self.processes.iter_mut().filter(|process| !process.ended) {
            process.ended = is_gone(process.tgid) || child_ended;
            if !process.ended
                && let Some(comm) = name_of(process.tgid)
            {
                process.comm = comm;
            }
        }
        let waits_for_more = matches!(self.targets.selection, Selection::Device(_));
        !waits_for_more && !self.processes.is_empty() && self.processes.iter().all(|process| process.ended)
    }

    /// Finds processes that came and have no CQ yet.
    pub fn find_new(&mut self, probes: &mut Probes) -> Result<(), ProbeError> {
        if !matches!(self.targets.selection, Selection::Name(_)) {
            return Ok(());
        }
        for pid in all_processes() {
            if !self.processes.iter().any(|process| process.tgid == pid && !process.ended) && self.is_wanted(pid) {
                self.follow(pid, false, probes)?;
            }
        }
        Ok(())
    }

    /// The state of every thread, to be taken after the probes were attached.
    pub fn read_thread_states(&mut self) {
        for process in &mut self.processes {
            let threads = threads_of(process.tgid).unwrap_or_default();
            let found = |tid: &u32| {
                let at_ns = monotonic_ns();
                Some(FoundThread { tid: *tid, running: state_of(process.tgid, *tid)? == 'R', at_ns })
            };
            process.threads = threads.iter().filter_map(found).collect();
        }
    }

    fn follow(&mut self, pid: u32, was_there: bool, probes: &mut Probes) -> Result<(), ProbeError> {
        probes.track_tgid(pid)?;
        let comm = name_of(pid).unwrap_or_else(|| "gone".to_owned());
        self.processes.push(TracedProcess { tgid: pid, comm, was_there, ..TracedProcess::default() });
        Ok(())
    }

    fn is_wanted(&self, pid: u32) -> bool {
        match &self.targets.selection {
            Selection::Pids(pids) => pids.contains(&pid),
            // A name of the kernel has at most 15 bytes.
            Selection::Name(name) => name_of(pid).is_some_and(|comm| comm.as_bytes() == &name.as_bytes()[..name.len().min(15)]),
            Selection::Device(_) => self.device_file.as_deref().is_some_and(|file| has_open(pid, file)),
            Selection::Command(_) => false,
        }
    }
}

impl Drop for TracedProcesses {
    fn drop(&mut self) {
        // A command that we started does not outlive us.
        if let Some(child) = &mut self.child
            && matches!(child.try_wait(), Ok(None))
        {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Name of a process.
pub(super) fn name_of(pid: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| capture::text::printable(name.trim_end_matches('\n')))
}

/// The state letter of a thread; `None` when it is gone.
fn state_of(pid: u32, thread: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.trim_start().chars().next()
}

/// Gone, or dead and not yet waited for by its parent.
fn is_gone(pid: u32) -> bool {
    !matches!(state_of(pid, pid), Some(state) if state != 'Z' && state != 'X') && !has_other_threads(pid)
}

/// A process whose first thread has ended lives on in the others.
fn has_other_threads(pid: u32) -> bool {
    threads_of(pid).is_ok_and(|threads| threads.iter().any(|thread| *thread != pid))
}

fn all_processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The file below `/dev/infiniband` through which verbs reach the device.
fn device_file(name: &str) -> Result<String, TraceError> {
    let all = verbs_files(&Root::live());
    match all.iter().find(|(device, _)| device == name) {
        Some((_, file)) => Ok(file.clone()),
        None => Err(TraceError::NoDevice { name: name.to_owned(), there: all.into_iter().map(|(device, _)| device).collect() }),
    }
}

fn has_open(pid: u32, device_file: &str) -> bool {
    let wanted = Path::new("/dev/infiniband").join(device_file);
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|target| target == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_process_is_known_and_alive() {
        let pid = std::process::id();
        assert!(name_of(pid).is_some() && !is_gone(pid) && all_processes().contains(&pid));
        assert!(is_gone(u32::MAX) && !has_open(pid, "uverbs-none"));
        assert!(matches!(device_file("no-such-device"), Err(TraceError::NoDevice { .. })));
    }
}
