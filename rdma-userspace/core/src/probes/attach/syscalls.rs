//! Counting the system calls of one thread: for the proof of bypass, in a round of its own, never beside measured ones.
//!
//! It loads the object once more with this one program, so that the probes of a session and their counters are not touched.

use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuArray};
use aya::programs::RawTracePoint;
use aya::programs::raw_trace_point::RawTracePointLink;
use ebpf_probes::Program;
use ebpf_probes::config::{SYSCALL_THREAD_MAP, SYSCALLS_MAP, SYSCALLS_MAX};

use super::load::{lift_memlock, load_object, page_bytes};
use super::object::object;
use crate::probes::ProbeError;

/// The ring is not used here: the smallest that there is.
const RING_BYTES: u32 = 4096;
const TRACEPOINT: &str = "sys_enter";

/// The counter.
pub struct SyscallCounter {
    ebpf: Ebpf,
    calls: PerCpuArray<MapData, u64>,
    thread: Array<MapData, u32>,
    link: Option<RawTracePointLink>,
}

impl SyscallCounter {
    /// Loads the program; nothing is attached yet.
    ///
    /// # Errors
    /// As [`super::Probes::load`].
    pub fn load() -> Result<SyscallCounter, ProbeError> {
        if object().is_empty() {
            return Err(ProbeError::NoObject);
        }
        lift_memlock();
        let mut ebpf = load_object(&[], RING_BYTES.max(page_bytes()))?;
        let mut take = |name| ebpf.take_map(name).ok_or(ProbeError::NotInObject { what: "map", name });
        let calls = PerCpuArray::try_from(take(SYSCALLS_MAP)?).map_err(|error| ProbeError::from_map(SYSCALLS_MAP, error))?;
        let thread = Array::try_from(take(SYSCALL_THREAD_MAP)?).map_err(|error| ProbeError::from_map(SYSCALL_THREAD_MAP, error))?;
        let name = Program::Syscalls.symbol();
        program(&mut ebpf)?.load().map_err(|error| ProbeError::from_program("load", name, error))?;
        Ok(SyscallCounter { ebpf, calls, thread, link: None })
    }

    /// Counts the system calls of a thread of ours from now on.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn begin(&mut self, tid: u32) -> Result<(), ProbeError> {
        self.link = None;
        let cpus = aya::util::nr_cpus().map_err(|(_, error)| ProbeError::Cpus { error })?;
        let zero = || aya::maps::PerCpuValues::try_from(vec![0_u64; cpus]);
        for number in 0..SYSCALLS_MAX {
            let zero = zero().map_err(|error| ProbeError::Cpus { error })?;
            self.calls.set(number, zero, 0).map_err(|error| ProbeError::from_map(SYSCALLS_MAP, error))?;
        }
        self.thread.set(0, tid, 0).map_err(|error| ProbeError::from_map(SYSCALL_THREAD_MAP, error))?;
        let name = Program::Syscalls.symbol();
        let refused = |error| ProbeError::from_program("attach", name, error);
        let program = program(&mut self.ebpf)?;
        let id = program.attach(TRACEPOINT).map_err(refused)?;
        self.link = Some(program.take_link(id).map_err(refused)?);
        Ok(())
    }

    /// Stops, and gives the calls by number. Numbers without a call are left out.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn end(&mut self) -> Result<Vec<(u32, u64)>, ProbeError> {
        self.link = None;
        let mut found = Vec::new();
        for number in 0..SYSCALLS_MAX {
            let calls = self.calls.get(&number, 0).map_err(|error| ProbeError::from_map(SYSCALLS_MAP, error))?;
            match calls.iter().sum::<u64>() {
                0 => {}
                sum => found.push((number, sum)),
            }
        }
        Ok(found)
    }
}

fn program(ebpf: &mut Ebpf) -> Result<&mut RawTracePoint, ProbeError> {
    let name = Program::Syscalls.symbol();
    let program = ebpf.program_mut(name).ok_or(ProbeError::NotInObject { what: "program", name })?;
    program.try_into().map_err(|error| ProbeError::from_program("use", name, error))
}

macro_rules! names {
    ($($constant:ident = $name:literal),* $(,)?) => {
        /// Name of a system call that a runner's thread may be expected to make; the number where it is another one.
        pub fn syscall_name(number: u32) -> String {
            match libc::c_long::from(number) {
                $(libc::$constant => $name.to_owned(),)*
                _ => platform_name(number).map_or_else(|| format!("number {number}"), str::to_owned),
            }
        }
    };
}

names! {
    SYS_read = "read", SYS_write = "write", SYS_readv = "readv", SYS_writev = "writev", SYS_ioctl = "ioctl", SYS_ppoll = "ppoll",
    SYS_epoll_pwait = "epoll_pwait", SYS_futex = "futex", SYS_clock_gettime = "clock_gettime", SYS_getrusage = "getrusage",
    SYS_clock_nanosleep = "clock_nanosleep", SYS_nanosleep = "nanosleep", SYS_sched_yield = "sched_yield", SYS_mmap = "mmap",
    SYS_munmap = "munmap", SYS_mremap = "mremap", SYS_mprotect = "mprotect", SYS_madvise = "madvise", SYS_brk = "brk",
    SYS_sendto = "sendto", SYS_recvfrom = "recvfrom", SYS_sendmsg = "sendmsg", SYS_recvmsg = "recvmsg", SYS_sendmmsg = "sendmmsg",
    SYS_recvmmsg = "recvmmsg", SYS_connect = "connect", SYS_accept4 = "accept4", SYS_getsockopt = "getsockopt",
    SYS_setsockopt = "setsockopt", SYS_tgkill = "tgkill", SYS_gettid = "gettid", SYS_getpid = "getpid",
    SYS_rt_sigreturn = "rt_sigreturn", SYS_rt_sigprocmask = "rt_sigprocmask", SYS_restart_syscall = "restart_syscall",
    SYS_close = "close", SYS_openat = "openat", SYS_bpf = "bpf", SYS_perf_event_open = "perf_event_open", SYS_exit = "exit",
}

/// Calls that only older architectures have.
#[cfg(target_arch = "x86_64")]
fn platform_name(number: u32) -> Option<&'static str> {
    match libc::c_long::from(number) {
        libc::SYS_poll => Some("poll"),
        libc::SYS_epoll_wait => Some("epoll_wait"),
        libc::SYS_select => Some("select"),
        _ => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn platform_name(_: u32) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_names_and_others_numbers() {
        let name = |number: libc::c_long| syscall_name(u32::try_from(number).expect("small"));
        assert_eq!([name(libc::SYS_write), name(libc::SYS_sendto)], ["write", "sendto"]);
        assert_eq!(syscall_name(499), "number 499");
    }
}
