//! The proof of bypass: what the measured thread and the control connection moved during a round, read before and after it, and one round
//! of its own in which every system call of the thread is counted. Nothing of it runs inside a measured round.
use super::peer::Peer;
use crate::machine::proc_text::field;
use crate::probes::syscall_name;
use capture::manifest::{RoundIo, SyscallCount, ThreadIo};

/// Operations of the round in which system calls are counted.
pub(super) const SYSCALL_OPERATIONS: u64 = 1_000;

/// Counters at one moment between two rounds.
pub(super) struct Before {
    tid: u32,
    thread: Option<ThreadIo>,
    tcp: Option<(u64, u64)>,
}

impl Before {
    /// Reads them for a thread that waits for its next round.
    pub fn read(tid: u32, peer: &Peer) -> Before {
        Before { tid, thread: thread_io(tid), tcp: peer.tcp_bytes() }
    }

    /// What has been moved since.
    pub fn until_now(&self, peer: &Peer) -> RoundIo {
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let thread = thread_io(self.tid).zip(self.thread).map(|(now, before)| ThreadIo {
            reads: since(now.reads, before.reads),
            read_bytes: since(now.read_bytes, before.read_bytes),
            writes: since(now.writes, before.writes),
            written_bytes: since(now.written_bytes, before.written_bytes),
        });
        let tcp = peer.tcp_bytes().zip(self.tcp);
        RoundIo {
            thread,
            tcp_sent_bytes: tcp.map(|(now, before)| since(now.0, before.0)),
            tcp_received_bytes: tcp.map(|(now, before)| since(now.1, before.1)),
        }
    }
}

/// The counters of a thread of this process; `None` on a kernel without them.
fn thread_io(tid: u32) -> Option<ThreadIo> {
    parse(&std::fs::read_to_string(format!("/proc/self/task/{tid}/io")).ok()?)
}

fn parse(text: &str) -> Option<ThreadIo> {
    let number = |name| field(text, name)?.parse().ok();
    Some(ThreadIo { reads: number("syscr")?, read_bytes: number("rchar")?, writes: number("syscw")?, written_bytes: number("wchar")? })
}

/// Counts with their names, the most frequent first.
pub(super) fn named(calls: &[(u32, u64)]) -> Vec<SyscallCount> {
    let mut named: Vec<SyscallCount> =
        calls.iter().map(|&(number, calls)| SyscallCount { number, name: syscall_name(number), calls }).collect();
    named.sort_by_key(|it| (std::cmp::Reverse(it.calls), it.number));
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::ffi::os::thread_id;

    #[test]
    fn a_thread_s_own_calls_are_counted_and_no_other_s() {
        let text = "rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n";
        assert_eq!(parse(text), Some(ThreadIo { reads: 3, read_bytes: 10, writes: 4, written_bytes: 20 }));
        assert_eq!(parse("rchar: 10\n"), None);
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new().write(true).open("/dev/null").expect("there");
        let before = thread_io(thread_id()).expect("counters");
        file.write_all(b"12345").expect("written");
        let after = thread_io(thread_id()).expect("counters");
        assert_eq!((after.writes - before.writes, after.written_bytes - before.written_bytes), (1, 5));
        assert!(thread_io(u32::MAX).is_none());
    }

    #[test]
    fn the_most_frequent_call_is_first() {
        let write = u32::try_from(libc::SYS_write).expect("small");
        let calls = named(&[(499, 2), (write, 7)]);
        assert_eq!((calls[0].name.as_str(), calls[0].calls, calls[1].name.as_str()), ("write", 7, "number 499"));
    }
}
