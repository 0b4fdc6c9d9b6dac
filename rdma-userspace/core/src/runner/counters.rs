//! What a round counted, and how a thread's use of the machine is read before and after it.
use crate::verbs::ffi::os;
use capture::manifest::Round;
use serde::{Deserialize, Serialize};

/// Counters of one round on one side; a server sends its own to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundStats {
    /// Begin, `CLOCK_MONOTONIC` ns of this machine.
    pub begin_ns: u64,
    /// End, `CLOCK_MONOTONIC` ns of this machine.
    pub end_ns: u64,
    /// Operations done.
    pub samples: u64,
    /// Operations that failed.
    pub failed: u64,
    /// CPU time of the measured thread in ns, user and system.
    pub thread_cpu_ns: u64,
    /// Times that the thread gave up its CPU (it slept).
    pub voluntary_switches: u64,
    /// Times that its CPU was taken away.
    pub involuntary_switches: u64,
    /// Completion events read by the blocking reads of samples.
    pub events: u64,
    /// Events read between samples: of completions that the poll after arming had found already.
    #[serde(default)]
    pub drained_events: u64,
    /// Events of blocking reads that brought no CQE.
    pub empty_wakeups: u64,
    /// Polls after arming that found the CQE already there.
    pub armed_poll_hits: u64,
    /// Polls that found nothing (polling mode; for `write-pp` looks at the memory).
    pub empty_polls: u64,
}

impl RoundStats {
    /// Puts the counters into a round of the manifest.
    pub fn fill(&self, round: &mut Round) {
        round.begin_ns = self.begin_ns;
        round.end_ns = self.end_ns;
        round.samples = self.samples;
        round.failed = self.failed;
        round.thread_cpu_ns = self.thread_cpu_ns;
        round.voluntary_switches = self.voluntary_switches;
        round.involuntary_switches = self.involuntary_switches;
        // The manifest counts every event that was read.
        round.events = self.events + self.drained_events;
        round.empty_wakeups = self.empty_wakeups;
        round.armed_poll_hits = self.armed_poll_hits;
        round.empty_polls = self.empty_polls;
    }
}

/// Counters of a completion mode since the round began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModeCounters {
    pub events: u64,
    pub drained_events: u64,
    pub empty_wakeups: u64,
    pub armed_poll_hits: u64,
    pub empty_polls: u64,
}

/// The calling thread's usage at one moment.
pub(crate) struct ThreadUsage {
    cpu_ns: u64,
    voluntary: u64,
    involuntary: u64,
}

impl ThreadUsage {
    pub fn now() -> Self {
        let (voluntary, involuntary) = os::thread_switches();
        Self { cpu_ns: os::thread_cpu_ns(), voluntary, involuntary }
    }

    /// Writes the difference to now.
    pub fn add_since(&self, stats: &mut RoundStats) {
        let now = Self::now();
        stats.thread_cpu_ns = now.cpu_ns.saturating_sub(self.cpu_ns);
        stats.voluntary_switches = now.voluntary.saturating_sub(self.voluntary);
        stats.involuntary_switches = now.involuntary.saturating_sub(self.involuntary);
    }
}
