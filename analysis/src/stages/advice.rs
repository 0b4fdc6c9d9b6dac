//! What to try next when a stage grew.

/// What to try next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The thread stands behind others.
    OwnCpu,
    /// Its CPU sleeps deeply.
    NoDeepIdle,
    /// rxe waits for a kernel worker.
    FreeWorkerCpu,
    /// The time is spent on the other side.
    OtherSide,
    /// The other side shares this machine.
    PeerHere,
    /// Interrupts and softirqs share a CPU.
    SharedCpu,
    /// A thread of the interrupt path waits.
    ThreadPriority,
    /// Packets were lost.
    Retransmissions,
    /// The measured thread itself was held up.
    QuietCpu,
    /// Nothing better is known.
    Repeat,
}

impl Advice {
    /// The advice as the rest of a sentence that begins with "Next:".
    pub const fn text(self) -> &'static str {
        match self {
            Advice::OwnCpu => "give the thread a CPU of its own (--cpu) or a real-time priority",
            Advice::NoDeepIdle => "hold /dev/cpu_dma_latency at 0, or place the waiter on the CPU that handles the completion",
            Advice::FreeWorkerCpu => "leave a CPU free for the kernel workers of rxe",
            Advice::OtherSide => "look at the other side: its own capture shows where the answer stayed",
            Advice::PeerHere => "the peer shares this machine: give its thread a CPU of its own, or look at what it waits for",
            Advice::SharedCpu => "see which softirqs and interrupts share that CPU (/proc/interrupts, /proc/softirqs)",
            Advice::ThreadPriority => "give the thread that handles it a higher real-time priority or a CPU of its own",
            Advice::Retransmissions => "read the port's retransmission counters and look for drops on the way",
            Advice::QuietCpu => "keep other threads and interrupts off the thread's CPU",
            Advice::Repeat => "compare with the samples around it and repeat with more samples",
        }
    }
}
