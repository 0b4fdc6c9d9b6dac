//! What kinds of causes there are: machine-readable, one word each.
use std::fmt;

/// What was in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Another thread had the measured thread's CPU.
    Preempted,
    /// The thread was moved to another CPU.
    Migrated,
    /// A hard interrupt took its CPU.
    Irq,
    /// A softirq took it.
    Softirq,
    /// The timer's interrupt took it.
    Tick,
    /// The thread slept in the kernel although it was not waiting for an event.
    Blocked,
    /// A page fault.
    PageFault,
    /// A wake-up waited behind another thread.
    RunQueue,
    /// A wake-up waited for a CPU to leave its idle state.
    IdleExit,
    /// A bottom half or the thread that handles it waited.
    BottomHalf,
    /// Work waited for a kernel worker.
    Worker,
    /// The device, the network or the peer.
    Peer,
    /// A packet was lost.
    Retransmission,
    /// The thread ran all the time.
    OwnCode,
    /// All was recorded, and nothing explains it.
    NoneSeen,
    /// What would explain it was not recorded.
    NotRecorded,
}

impl Cause {
    /// Its name, as in the JSON report.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Preempted => "preempted",
            Cause::Migrated => "migrated",
            Cause::Irq => "irq",
            Cause::Softirq => "softirq",
            Cause::Tick => "tick",
            Cause::Blocked => "blocked",
            Cause::PageFault => "page_fault",
            Cause::RunQueue => "run_queue",
            Cause::IdleExit => "idle_exit",
            Cause::BottomHalf => "bottom_half",
            Cause::Worker => "worker",
            Cause::Peer => "peer",
            Cause::Retransmission => "retransmission",
            Cause::OwnCode => "own_code",
            Cause::NoneSeen => "none_seen",
            Cause::NotRecorded => "not_recorded",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl serde::Serialize for Cause {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}
