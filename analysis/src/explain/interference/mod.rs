//! What took the CPU from the measured thread while a sample ran: an overlay over its stages that claims none of them.
//!
//! [`overlay`] reads it from the events in which the thread is `current` (interrupts, softirqs, ticks, page faults) and from the
//! switches away from it. [`totals`] adds it up over a run.
pub mod names;
pub mod overlay;
pub mod totals;

pub use names::Names;
pub use overlay::overlay;
pub use totals::OverlayTotals;

use super::model::Cause;

/// What took the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A hard interrupt, by its Linux number.
    Irq(u32),
    /// The local timer's interrupt.
    Tick,
    /// A softirq, by its vector.
    Softirq(u32),
    /// Another thread, although the measured one wanted to run.
    Preempted {
        /// Thread that got the CPU.
        by: u32,
        /// Thread that left it; another one than `by` when more of them ran and a record is missing.
        last: u32,
    },
    /// The thread was taken from one CPU and went on on another one.
    Migrated {
        /// CPU that it left.
        from: u32,
        /// CPU on which it went on.
        to: u32,
        /// Thread that got the CPU that it left (the kernel's `migration/N` where it was moved while it ran).
        by: u32,
    },
    /// The thread slept in the kernel although it was not waiting for an event (a lock, a page on its way).
    Blocked,
    /// A page fault: only its begin is recorded.
    PageFault,
}

impl What {
    /// What kind of cause it is.
    pub const fn kind(self) -> Cause {
        match self {
            What::Irq(_) => Cause::Irq,
            What::Tick => Cause::Tick,
            What::Softirq(_) => Cause::Softirq,
            What::Preempted { .. } => Cause::Preempted,
            What::Migrated { .. } => Cause::Migrated,
            What::Blocked => Cause::Blocked,
            What::PageFault => Cause::PageFault,
        }
    }

    /// The other thread that it was about.
    pub const fn pid(self) -> Option<u32> {
        match self {
            What::Preempted { by, .. } | What::Migrated { by, .. } => Some(by),
            _ => None,
        }
    }
}

/// One time that the CPU was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// By what.
    pub what: What,
    /// Begin, `CLOCK_MONOTONIC` ns.
    pub start_ns: u64,
    /// For how long, without what was nested in it (that has an entry of its own); `None`: its end was not recorded.
    pub duration_ns: Option<u64>,
}

/// The overlay of one sample, by begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlay {
    /// All that was seen.
    pub items: Vec<Taken>,
    /// Sum of the known durations: never more than the sample.
    pub taken_ns: u64,
    /// Begins whose end was lost (page faults, which have none, are not counted).
    pub unknown: u32,
}

impl Overlay {
    /// Time taken within `[from_ns, to_ns]`. What reaches over a border counts with the part inside, as far as it was not interrupted
    /// itself.
    pub fn within(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (Taken, u64)> + '_ {
        self.items.iter().filter(move |item| item.start_ns < to_ns).filter_map(move |item| {
            let duration = item.duration_ns?;
            let begin = item.start_ns.max(from_ns);
            let end = item.start_ns.saturating_add(duration).min(to_ns);
            (end > begin).then(|| (*item, end - begin))
        })
    }
}

/// Kinds of records that the overlay rests on, with what is not seen where they are not recorded.
pub const RESTS_ON: &[(ebpf_probes::Kind, &str)] = &[
    (ebpf_probes::Kind::SchedSwitch, "other threads"),
    (ebpf_probes::Kind::IrqExit, "how long interrupts took"),
    (ebpf_probes::Kind::SoftirqExit, "how long softirqs took"),
    (ebpf_probes::Kind::TimerExit, "ticks"),
    (ebpf_probes::Kind::PageFault, "page faults"),
];
