//! Why probes could not be had, each a plain sentence with what to do.

use std::error::Error;
use std::io::{self, ErrorKind};

use aya::programs::ProgramError;

use super::rights::lacking;
use crate::machine::Root;
use crate::machine::kernel::KernelError;

/// Lines of the verifier's log that an error carries.
const VERIFIER_LINES: usize = 12;

/// Why probes could not be loaded, attached or used.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Facts about the kernel could not be read.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// This build carries no BPF object.
    #[error("this build has no BPF object: run `cargo xtask bpf`, then build again (or run without probes: --level none)")]
    NoObject,
    /// The kernel is locked down.
    #[error(
        "kernel lockdown is in `confidentiality` mode, which forbids probes to read kernel memory: boot with `lockdown=integrity` or less, \
         or run without probes (--level none)"
    )]
    Lockdown,
    /// Not allowed.
    #[error(
        "no permission to {doing}: {}; probes need root, or CAP_BPF and CAP_PERFMON (kernel said: {error})",
        lacking.as_deref().unwrap_or("the kernel refuses it although the capabilities are there")
    )]
    NoPermission {
        /// What was tried.
        doing: String,
        /// Which capability is missing, in words.
        lacking: Option<String>,
        /// What the kernel said.
        #[source]
        error: io::Error,
    },
    /// The thread that holds the probes panicked.
    #[error("the thread of the probes is gone")]
    ThreadGone,
    /// The object was refused as a whole (maps, BTF).
    #[error("cannot load the BPF object: {error}")]
    Object {
        /// What the loader said.
        #[source]
        error: Box<aya::EbpfError>,
    },
    /// The verifier refused a program.
    #[error("the kernel refused program `{program}` ({error}); end of the verifier's log:\n{log}")]
    Verifier {
        /// The program.
        program: String,
        /// What the system call said.
        #[source]
        error: io::Error,
        /// The last lines of the log.
        log: String,
    },
    /// A program could not be loaded or run for another reason.
    #[error("cannot {doing} program `{program}`: {error}")]
    Program {
        /// What was tried.
        doing: &'static str,
        /// The program.
        program: String,
        /// What the loader said.
        #[source]
        error: Box<ProgramError>,
    },
    /// The object in this build lacks something that the loader wants.
    #[error("the BPF object has no {what} `{name}`: object and program are of different builds; run `cargo xtask bpf` and build again")]
    NotInObject {
        /// `map` or `program`.
        what: &'static str,
        /// Its name.
        name: &'static str,
    },
    /// A map could not be used.
    #[error("cannot use map `{name}`: {error}")]
    Map {
        /// The map.
        name: &'static str,
        /// What the loader said.
        #[source]
        error: Box<aya::maps::MapError>,
    },
    /// Nothing was planned, or nothing attached.
    #[error("no probe attached: {why}")]
    NothingAttached {
        /// The first reasons.
        why: String,
    },
    /// The number of CPUs that the maps are made for is not known.
    #[error("cannot tell how many CPUs there are: {error}")]
    Cpus {
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A process could not be followed.
    #[error("cannot read the threads of process {pid}: {error}")]
    NoProcess {
        /// The process.
        pid: u32,
        /// What the system said.
        #[source]
        error: io::Error,
    },
}

impl ProbeError {
    /// Sorts what loading the object said.
    pub(super) fn from_object(error: aya::EbpfError) -> Self {
        match denied(&error) {
            Some(error) => ProbeError::NoPermission { doing: "create BPF maps".to_owned(), lacking: lacking(), error },
            None => ProbeError::Object { error: Box::new(error) },
        }
    }

    /// Sorts what loading or running a program said.
    pub(super) fn from_program(doing: &'static str, program: &str, error: ProgramError) -> Self {
        let program = program.to_owned();
        match error {
            ProgramError::LoadError { io_error, verifier_log }
                if io_error.kind() != ErrorKind::PermissionDenied || !verifier_log.to_string().is_empty() =>
            {
                ProbeError::Verifier { program, error: io_error, log: excerpt(&verifier_log.to_string()) }
            }
            error => match denied(&error) {
                Some(error) => ProbeError::NoPermission { doing: format!("{doing} program `{program}`"), lacking: lacking(), error },
                None => ProbeError::Program { doing, program, error: Box::new(error) },
            },
        }
    }

    /// Wraps a map's error.
    pub(super) fn from_map(name: &'static str, error: aya::maps::MapError) -> Self {
        ProbeError::Map { name, error: Box::new(error) }
    }
}

/// One line with the errno, for a hook that did not attach.
pub(super) fn attach_reason(error: &ProgramError) -> String {
    match io_error_of(error) {
        Some(io_error) if is_paranoid(io_error) => format!("attach failed: {io_error}; {PARANOID}"),
        Some(io_error) => format!("attach failed: {io_error}"),
        None => format!("attach failed: {error}"),
    }
}

/// Debian's kernels have a level above the usual ones that keeps kprobes from everybody but root (seen on 7.3, CAP_PERFMON in force).
const PARANOID: &str = "kernel.perf_event_paranoid is above 2: `sysctl kernel.perf_event_paranoid=2` lets CAP_PERFMON place kprobes";

fn is_paranoid(error: &io::Error) -> bool {
    let level = || Root::live().number::<i32>("/proc/sys/kernel/perf_event_paranoid");
    error.kind() == ErrorKind::PermissionDenied && level().is_some_and(|level| level > 2)
}

fn denied(error: &(dyn Error + 'static)) -> Option<io::Error> {
    let error = io_error_of(error)?;
    let is_denied = error.kind() == ErrorKind::PermissionDenied;
    is_denied.then(|| error.raw_os_error().map_or_else(|| ErrorKind::PermissionDenied.into(), io::Error::from_raw_os_error))
}

fn io_error_of<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e io::Error> {
    let mut now: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = now {
        let direct = error.downcast_ref::<io::Error>();
        // These two do not hand on their source.
        let inner =
            error.downcast_ref::<aya::sys::SyscallError>().map(|error| &error.io_error).or(match error.downcast_ref::<ProgramError>() {
                Some(ProgramError::SyscallError(error)) => Some(&error.io_error),
                Some(ProgramError::IOError(error)) => Some(error),
                _ => None,
            });
        if let Some(found) = direct.or(inner) {
            return Some(found);
        }
        now = error.source();
    }
    None
}

fn excerpt(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(VERIFIER_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_system_call_says_what_to_do() {
        let error = ProgramError::SyscallError(aya::sys::SyscallError {
            call: "perf_event_open",
            io_error: io::Error::from_raw_os_error(libc::EACCES),
        });
        let text = ProbeError::from_program("load", "comp_handler", error).to_string();
        assert!(text.contains("CAP_BPF and CAP_PERFMON") && text.contains("root") && text.contains("comp_handler"), "{text}");
    }

    #[test]
    fn the_end_of_a_long_log_is_kept() {
        let log = (0..100).map(|line| format!("line {line}\n")).collect::<String>();
        let kept = excerpt(&log);
        assert!(kept.ends_with("line 99") && kept.lines().count() == VERIFIER_LINES);
    }

    #[test]
    fn an_errno_is_in_the_reason() {
        let error = ProgramError::SyscallError(aya::sys::SyscallError {
            call: "perf_event_open",
            io_error: io::Error::from_raw_os_error(libc::ENOENT),
        });
        assert!(attach_reason(&error).contains("os error 2"));
    }
}
