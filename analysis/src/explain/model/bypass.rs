//! The proof of bypass in numbers, and hooks that stayed silent.
use capture::manifest::SyscallCount;
use serde::Serialize;

/// What the measured rounds moved through the kernel's files and sockets. Sums over all measured rounds; `None`: not told.
#[derive(Clone, Debug, Serialize)]
pub struct Bypass {
    /// Measured rounds that were looked at, traced ones included.
    pub rounds: u64,
    /// Operations in them.
    pub operations: u64,
    /// Bytes sent on the control connection.
    pub tcp_sent_bytes: Option<u64>,
    /// Bytes received on it.
    pub tcp_received_bytes: Option<u64>,
    /// Read calls of the measured thread.
    pub reads: Option<u64>,
    /// Bytes that they gave.
    pub read_bytes: Option<u64>,
    /// Write calls of the measured thread.
    pub writes: Option<u64>,
    /// Bytes that they took.
    pub written_bytes: Option<u64>,
    /// Times that the thread slept.
    pub voluntary_switches: u64,
    /// The system calls of a round of its own.
    pub calls: Option<BypassCalls>,
    /// Why they were not counted.
    pub calls_absent: Option<String>,
    /// No socket I/O: `None` where not enough was told.
    pub is_proven: Option<bool>,
    /// In one sentence.
    pub verdict: String,
}

/// System calls of the measured thread in a round of its own.
#[derive(Clone, Debug, Serialize)]
pub struct BypassCalls {
    /// Operations of that round.
    pub operations: u64,
    /// Calls beyond those of a round without operations.
    pub calls: Vec<SyscallCount>,
    /// Calls of a round without operations.
    pub frame: Vec<SyscallCount>,
    /// Calls that move data through a socket.
    pub socket_calls: u64,
}

/// A hook that did not fire, and what that means.
#[derive(Clone, Debug, Serialize)]
pub struct SilentHook {
    /// Hook name.
    pub hook: String,
    /// Symbol.
    pub symbol: String,
    /// Hits in this run's traced rounds.
    pub hits: u64,
    /// Why it is silent, and the control that proves the probe alive ("fired 10,000 times in the event rounds") or "no control possible here".
    pub meaning: String,
}
