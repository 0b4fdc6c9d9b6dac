//! The rounds of a run, and what was counted in each.
use super::costs::Spread;
use crate::sample::Sample;
use serde::{Deserialize, Serialize};

/// One uninterrupted block of samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Its index; [`super::Sample::round`] refers to it.
    pub index: u32,
    /// Probes attached?
    pub traced: bool,
    /// Warm-up: not counted, no samples recorded.
    pub warmup: bool,
    /// Begin, `CLOCK_MONOTONIC` ns.
    pub begin_ns: u64,
    /// End, `CLOCK_MONOTONIC` ns.
    pub end_ns: u64,
    /// Operations done.
    pub samples: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Time that a hypervisor took from all CPUs of this machine in ns, from /proc/stat; coarse (ticks).
    #[serde(default)]
    pub steal_ns: Option<u64>,
    /// CPU time of the measured thread in ns (user and system).
    pub thread_cpu_ns: u64,
    /// CPU time of the server's thread in ns, where it told.
    pub server_cpu_ns: Option<u64>,
    /// Busy (not idle) time of all CPUs of this machine in ns, from /proc/stat; coarse (ticks).
    pub machine_busy_ns: Option<u64>,
    /// Voluntary context switches of the measured thread.
    pub voluntary_switches: u64,
    /// Involuntary context switches of the measured thread.
    pub involuntary_switches: u64,
    /// Completion events read.
    pub events: u64,
    /// Events that brought no CQE.
    pub empty_wakeups: u64,
    /// Polls after arming that found the CQE already there (no sleep).
    pub armed_poll_hits: u64,
    /// Polls that found nothing (counted in polling mode).
    pub empty_polls: u64,
    /// Hits per hook within this round, by hook name; empty in an untraced round.
    #[serde(default)]
    pub hits: Vec<(String, u64)>,
    /// Ping-pongs: from the server's receive of a message (its poll returned, or it saw the write) to before its post of the answer,
    /// on the server's clock; `None`: no ping-pong, or the server did not tell.
    #[serde(default)]
    pub server_residency: Option<Spread>,
    /// What the thread and the control connection moved meanwhile; `None`: not looked at.
    #[serde(default)]
    pub io: Option<RoundIo>,
}

impl Round {
    /// Whether the sample lies in the time of this round, as all of its own do: the runner takes begin and end around them.
    pub fn holds(&self, sample: &Sample) -> bool {
        let times = [sample.post_begin_ns, sample.done_ns];
        times.iter().all(|ns| (self.begin_ns..=self.end_ns).contains(ns))
    }
}

/// What the measured thread and the control connection moved in a round, read before and after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundIo {
    /// The thread's own counters (`/proc/self/task/TID/io`).
    pub thread: Option<ThreadIo>,
    /// Bytes that this side sent on the control connection and the peer acknowledged (`TCP_INFO`).
    pub tcp_sent_bytes: Option<u64>,
    /// Bytes that came on the control connection.
    pub tcp_received_bytes: Option<u64>,
}

/// I/O counters of a thread. They count `read` and `write` calls of every kind of file, and no socket calls such as `sendto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadIo {
    /// Read calls.
    pub reads: u64,
    /// Bytes that they gave.
    pub read_bytes: u64,
    /// Write calls.
    pub writes: u64,
    /// Bytes that they took.
    pub written_bytes: u64,
}

/// The system calls of the measured thread, counted in a round of their own: every one of them, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallRound {
    /// Operations of the round.
    pub operations: u64,
    /// Calls within it.
    pub calls: Vec<SyscallCount>,
    /// Calls of the same thread in a round without any operation: what a round takes by itself.
    pub frame: Vec<SyscallCount>,
    /// Why nothing was counted; `None`: it was.
    pub absent: Option<String>,
}

/// Calls of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallCount {
    /// Number on this architecture.
    pub number: u32,
    /// Name.
    pub name: String,
    /// Calls.
    pub calls: u64,
}
