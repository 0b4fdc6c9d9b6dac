//! The events around one sample, cut out of the stream: from its post to its completion. Memory is bounded by the longest sample,
//! not by the capture.
use ebpf_probes::{Body, Event, Irq, Softirq, Switch};
use std::collections::{BTreeMap, VecDeque};

/// Events of one window at most; a sample with more is flagged LOST.
pub const WINDOW_MAX: usize = 1 << 17;
/// Events this much later than the sample's end still belong to its window: the two clocks may differ by a read.
pub const SLACK_NS: u64 = 1_000;

/// Softirq vector that receives packets.
pub const NET_RX: u32 = 3;
/// Softirq vector that runs tasklets.
pub const TASKLET: u32 = 6;

/// What is known of a CPU at the begin of a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuState {
    /// A receive softirq runs.
    pub in_net_rx: bool,
    /// The last interrupt that began there.
    pub last_irq: Option<u32>,
}

/// The rolling buffer of events.
#[derive(Debug, Default)]
pub struct Buffer {
    events: VecDeque<Event>,
    first_id: u64,
    cpus: BTreeMap<u32, CpuState>,
    overflowed_until_ns: u64,
}

impl Buffer {
    /// Takes the next event of the stream and returns its number.
    pub fn push(&mut self, event: Event) -> u64 {
        let id = self.first_id + self.events.len() as u64;
        self.events.push_back(event);
        if self.events.len() > WINDOW_MAX {
            self.overflowed_until_ns = self.events[0].header.ts_ns;
            self.drop_first();
        }
        id
    }

    /// Events held now.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Holds none?
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Number of the first event held.
    pub fn first_id(&self) -> u64 {
        self.first_id
    }

    /// Forgets the events before `begin_ns`, keeping what they say of their CPUs.
    pub fn forget_before(&mut self, begin_ns: u64) {
        while self.events.front().is_some_and(|event| event.header.ts_ns < begin_ns) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.first_id += 1;
            if let Some(open) = net_rx_change(&event) {
                self.cpus.entry(event.header.cpu).or_default().in_net_rx = open;
            }
            if let Body::IrqEntry(Irq { irq, .. }) = event.body {
                self.cpus.entry(event.header.cpu).or_default().last_irq = Some(irq);
            }
        }
    }

    /// The window up to `end_ns` (and the slack).
    pub fn window(&mut self, end_ns: u64) -> Window<'_> {
        let overflowed_until_ns = self.overflowed_until_ns;
        let events = self.events.make_contiguous();
        let end = events.partition_point(|event| event.header.ts_ns <= end_ns.saturating_add(SLACK_NS));
        Window { events: &events[..end], first_id: self.first_id, cpus: &self.cpus, overflowed_until_ns }
    }
}

fn net_rx_change(event: &Event) -> Option<bool> {
    match event.body {
        Body::SoftirqEntry(Softirq { vec: NET_RX, .. }) => Some(true),
        Body::SoftirqExit(Softirq { vec: NET_RX, .. }) => Some(false),
        _ => None,
    }
}

/// The events of one sample by time.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The events.
    pub events: &'a [Event],
    first_id: u64,
    cpus: &'a BTreeMap<u32, CpuState>,
    overflowed_until_ns: u64,
}

impl<'a> Window<'a> {
    /// Number in the stream of the event at this position.
    pub fn id(&self, at: usize) -> u64 {
        self.first_id + at as u64
    }

    /// Position of the event with this number, when it lies in the window.
    pub fn position(&self, id: u64) -> Option<usize> {
        let at = usize::try_from(id.checked_sub(self.first_id)?).ok()?;
        (at < self.events.len()).then_some(at)
    }

    /// True when events since `begin_ns` had to be dropped for want of room.
    pub fn overflowed(&self, begin_ns: u64) -> bool {
        self.overflowed_until_ns >= begin_ns && self.overflowed_until_ns > 0
    }

    /// What was known of a CPU when the window began.
    pub fn cpu(&self, cpu: u32) -> CpuState {
        self.cpus.get(&cpu).copied().unwrap_or_default()
    }

    /// Time of the event at this position.
    pub fn ts(&self, at: usize) -> u64 {
        self.events[at].header.ts_ns
    }

    /// The events behind this position, in order.
    pub fn after(&self, at: usize) -> impl Iterator<Item = (usize, &'a Event)> + use<'a> {
        self.events.iter().enumerate().skip(at + 1)
    }

    /// The events before this position, latest first.
    pub fn before(&self, at: usize) -> impl Iterator<Item = (usize, &'a Event)> + use<'a> {
        self.events[..at].iter().enumerate().rev()
    }

    /// The last switch to `tid` in (`after_ns`, `until_ns`] that ended a sleep: a thread that was only preempted on its way into or
    /// out of the sleep is not woken by what comes next.
    pub fn woken_in(&self, tid: u32, after_ns: u64, until_ns: u64) -> Option<usize> {
        let (mut found, mut was_preempted) = (None, false);
        for (at, event) in self.events.iter().enumerate() {
            let Body::SchedSwitch(Switch { prev_pid, next_pid, preempted, .. }) = event.body else { continue };
            if prev_pid == tid {
                was_preempted = preempted != 0;
            } else if next_pid == tid {
                if !was_preempted && event.header.ts_ns > after_ns && event.header.ts_ns <= until_ns {
                    found = Some(at);
                }
                was_preempted = false;
            }
        }
        found
    }

    /// The first switch to `tid` in (`after_ns`, `until_ns`].
    pub fn switch_in(&self, tid: u32, after_ns: u64, until_ns: u64) -> Option<usize> {
        self.events.iter().position(|event| {
            let time = event.header.ts_ns;
            time > after_ns && time <= until_ns && matches!(event.body, Body::SchedSwitch(Switch { next_pid, .. }) if next_pid == tid)
        })
    }

    /// The receive softirq in which the event at this position ran: `Some(Some(position))` when it began in this window,
    /// `Some(None)` when it began before, `None` when there was none.
    pub fn open_net_rx(&self, at: usize) -> Option<Option<usize>> {
        let cpu = self.events[at].header.cpu;
        for (position, event) in self.before(at).filter(|(_, event)| event.header.cpu == cpu) {
            if let Some(open) = net_rx_change(event) {
                return open.then_some(Some(position));
            }
        }
        self.cpus.get(&cpu).is_some_and(|state| state.in_net_rx).then_some(None)
    }
}
