//! Names for what took the CPU: interrupts from the manifest, threads from the switches of the whole capture.
use super::What;
use capture::Manifest;
use capture::text::printable;
use ebpf_probes::{Body, Event};
use std::collections::BTreeMap;

/// Threads whose names are kept.
const THREADS_MAX: usize = 4096;
/// Softirq vectors in the kernel's order (include/linux/interrupt.h).
const SOFTIRQS: [&str; 10] = ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// A thread that was seen leaving a CPU, or that the manifest knows.
#[derive(Clone, Debug)]
struct Thread {
    comm: String,
    tgid: u32,
}

/// What is known by name.
#[derive(Clone, Debug, Default)]
pub struct Names {
    own_tgid: u32,
    threads: BTreeMap<u32, Thread>,
    irqs: BTreeMap<u32, String>,
}

impl Names {
    /// The names that the manifest has.
    pub fn of(manifest: &Manifest) -> Names {
        let irqs = manifest.host.interrupts.iter().map(|it| (it.irq, it.name.clone())).collect();
        let kernel = manifest.kernel_threads.iter().map(|it| (it.pid, Thread { comm: printable(&it.name), tgid: it.pid }));
        Names { own_tgid: manifest.placement.tgid, threads: kernel.collect(), irqs }
    }

    /// Learns from switches: only the thread that leaves a CPU has its name in the record.
    pub fn learn(&mut self, events: &[Event]) {
        for event in events {
            if let Body::SchedSwitch(switch) = event.body
                && switch.prev_pid != 0
                && self.threads.len() < THREADS_MAX
            {
                // The first name that was seen: a look-up is cheaper than a text for every switch.
                self.threads.entry(switch.prev_pid).or_insert_with(|| Thread { comm: text(&switch.prev_comm), tgid: event.header.tgid });
            }
        }
    }

    /// `comm` of a thread, where it was ever seen.
    pub fn comm(&self, pid: u32) -> Option<String> {
        self.threads.get(&pid).map(|thread| thread.comm.clone())
    }

    /// True for a thread of the measuring process itself.
    pub fn is_own(&self, pid: u32) -> bool {
        self.threads.get(&pid).is_some_and(|thread| thread.tgid == self.own_tgid)
    }

    /// A thread for readers: `busy (thread 321)`.
    pub fn thread(&self, pid: u32) -> String {
        let own = if self.is_own(pid) { ", a thread of this tool" } else { "" };
        match (pid, self.comm(pid)) {
            (0, _) => "the idle task".into(),
            (_, Some(comm)) => format!("{comm} (thread {pid}{own})"),
            (_, None) => format!("thread {pid}"),
        }
    }

    /// An interrupt for readers: `irq 27 (virtio0-input.0)`.
    pub fn irq(&self, irq: u32) -> String {
        match self.irqs.get(&irq).filter(|name| !name.is_empty()) {
            Some(name) => format!("irq {irq} ({})", printable(name)),
            None => format!("irq {irq}"),
        }
    }

    /// The source that it is counted under, for tables.
    pub fn source(&self, what: What) -> String {
        match what {
            What::Irq(irq) => self.irq(irq),
            What::Tick => "timer tick".into(),
            What::Softirq(vec) => softirq(vec),
            What::Preempted { by, .. } => format!("preempted by {}", self.thread(by)),
            What::Migrated { from, to, .. } => format!("migrated from CPU {from} to CPU {to}"),
            What::Blocked => "slept in the kernel".into(),
            What::PageFault => "page fault".into(),
        }
    }
}

/// A softirq for readers: `NET_RX softirq`.
pub fn softirq(vec: u32) -> String {
    let name = usize::try_from(vec).ok().and_then(|vec| SOFTIRQS.get(vec));
    name.map_or_else(|| format!("softirq {vec}"), |name| format!("{name} softirq"))
}

/// A `comm` as text, safe to print.
pub fn text(comm: &[u8; 16]) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    printable(&String::from_utf8_lossy(&comm[..end]))
}
