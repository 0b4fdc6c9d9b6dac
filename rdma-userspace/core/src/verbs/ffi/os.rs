//! System calls around a measured thread: clock, pinning, the signal that ends a blocking read, usage counters, limits.
use std::io;
use std::mem::MaybeUninit;

/// `CLOCK_MONOTONIC` in nanoseconds, through the vDSO where the clock source allows. The probes' `bpf_ktime_get_ns` is the same clock.
#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread in nanoseconds, user and system.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline]
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place. Both clocks exist on every Linux that has RDMA, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// Kernel id of the calling thread.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: takes no argument and cannot fail.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(tid).unwrap_or(0)
}

/// Voluntary and involuntary context switches of the calling thread so far.
pub(crate) fn thread_switches() -> (u64, u64) {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid place for the structure that the call fills.
    let ret = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: zeroed before, and all fields are integers.
    let usage = unsafe { usage.assume_init() };
    if ret == 0 { (usage.ru_nvcsw as u64, usage.ru_nivcsw as u64) } else { (0, 0) }
}

/// Pins the calling thread to one CPU.
pub(crate) fn pin_to_cpu(cpu: u32) -> io::Result<()> {
    let index = cpu as usize;
    if index >= 8 * size_of::<libc::cpu_set_t>() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: a `cpu_set_t` is a plain bit array, for which all zeroes is the empty set.
    let mut set = unsafe { MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init() };
    // SAFETY: the index was checked against the size of the set.
    unsafe { libc::CPU_SET(index, &mut set) };
    // SAFETY: the set is valid for the size given; 0 is the calling thread.
    let ret = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
    if ret == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// CPUs that the calling thread may run on, ascending.
pub(crate) fn allowed_cpus() -> io::Result<Vec<u32>> {
    // SAFETY: a `cpu_set_t` is a plain bit array.
    let mut set = unsafe { MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init() };
    // SAFETY: the set is a valid place of the size given; 0 is the calling thread.
    let ret = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    if ret != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every index is below the number of bits of the set.
    Ok((0..8 * size_of::<libc::cpu_set_t>()).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).map(|cpu| cpu as u32).collect())
}

/// Gives the calling thread the real-time policy FIFO at this priority (1 to 99).
pub(crate) fn set_fifo_priority(priority: u8) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: i32::from(priority) };
    // SAFETY: `param` is valid; 0 is the calling thread.
    let ret = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &param) };
    if ret == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The signal that only makes a blocking read return `EINTR`.
fn wake_signal() -> i32 {
    libc::SIGRTMIN() + 4
}

extern "C" fn no_op(_signal: i32) {}

/// Installs the handler of the wake signal: it does nothing, and without `SA_RESTART` the interrupted read returns.
pub(crate) fn install_wake_signal() -> io::Result<()> {
    // SAFETY: all zeroes is a valid `sigaction`: no flags, empty mask.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    action.sa_sigaction = no_op as extern "C" fn(i32) as usize;
    // SAFETY: the action is valid and its handler touches nothing, so that it is safe in any context.
    let ret = unsafe { libc::sigaction(wake_signal(), &action, std::ptr::null_mut()) };
    if ret == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends the wake signal to a thread of this process; a thread that has ended is not an error.
pub(crate) fn wake_thread(tid: u32) {
    // SAFETY: plain integers; a thread id of this process or of nobody, since the process id is given too.
    unsafe {
        libc::syscall(libc::SYS_tgkill, libc::c_long::from(std::process::id()), libc::c_long::from(tid), libc::c_long::from(wake_signal()))
    };
}

/// Soft limit of `RLIMIT_MEMLOCK` in bytes; `None`: unlimited.
pub(crate) fn memlock_limit_bytes() -> io::Result<Option<u64>> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place.
    let ret = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    if ret != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur))
}

/// Payload bytes that the peer of a TCP connection has acknowledged, and bytes that came from it, since the connection began.
///
/// The offsets are those of `struct tcp_info` in `linux/tcp.h`, which only ever grows (these two fields are there since 4.1).
pub(crate) fn tcp_bytes(socket: std::os::fd::BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    const ACKED: usize = 120;
    const RECEIVED: usize = 128;
    let mut info = [0_u8; 256];
    let mut length = libc::socklen_t::try_from(info.len()).unwrap_or(0);
    let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes into `info`, which has as many.
    let ret = unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &mut length) };
    if ret != 0 {
        return Err(io::Error::last_os_error());
    }
    let field = |at: usize| {
        let there = length as usize >= at + 8;
        let bytes = info.get(at..).and_then(|rest| rest.first_chunk());
        bytes.filter(|_| there).map(|bytes| u64::from_ne_bytes(*bytes)).ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
    };
    Ok((field(ACKED)?, field(RECEIVED)?))
}

/// Size of a page in bytes.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: a plain query.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_and_a_missing_cpu_is_refused() {
        let first = monotonic_ns();
        assert!(first > 0 && monotonic_ns() >= first);
        assert_eq!(pin_to_cpu(1023).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(pin_to_cpu(1 << 20).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert!(!allowed_cpus().unwrap().is_empty());
    }

    #[test]
    fn bytes_of_a_connection_are_counted() {
        use std::io::{Read, Write};
        use std::os::fd::AsFd;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        let (acked, received) = tcp_bytes(here.as_fd()).unwrap();
        here.write_all(b"12345").unwrap();
        there.read_exact(&mut [0; 5]).unwrap();
        there.write_all(b"123").unwrap();
        here.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(tcp_bytes(here.as_fd()).unwrap(), (acked + 5, received + 3));
        assert!(tcp_bytes(std::io::stdin().as_fd()).is_err());
    }

    #[test]
    fn the_wake_signal_interrupts_a_blocking_read() {
        install_wake_signal().unwrap();
        let (reader, _writer) = std::io::pipe().unwrap();
        let (tid_out, tid_in) = std::sync::mpsc::channel();
        let blocked = std::thread::spawn(move || {
            tid_out.send(thread_id()).unwrap();
            let mut byte = [0u8];
            // SAFETY: the descriptor is open and the buffer is one byte long.
            let ret = unsafe { libc::read(std::os::fd::AsRawFd::as_raw_fd(&reader), byte.as_mut_ptr().cast(), 1) };
            (ret, io::Error::last_os_error().raw_os_error())
        });
        let tid = tid_in.recv().unwrap();
        while !blocked.is_finished() {
            wake_thread(tid);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(blocked.join().unwrap(), (-1, Some(libc::EINTR)));
    }
}
