//! What a CPU is in the middle of: from which interrupt, softirq, tasklet or work item a completion handler was called.
//!
//! A softirq belongs to the interrupt in which it was raised, however late it runs; a work item to the interrupt in whose softirq it was
//! queued. On kernels with threaded interrupts a softirq runs in a thread: it counts as open for that thread only.
use super::times::{Log2, Times};
use ebpf_probes::{Body, Event};
use std::collections::{BTreeMap, HashMap};

/// NET_RX.
pub const NET_RX: u32 = 3;
/// TASKLET.
const TASKLET: u32 = 6;
/// Interrupts within interrupts, more than any kernel allows.
const DEPTH_MAX: usize = 8;

/// Other vectors are recorded where they run in a thread that is watched; no completion comes from them.
fn leads_to_completions(vec: u32) -> bool {
    matches!(vec, NET_RX | TASKLET)
}

/// Where a completion handler came from; times are `CLOCK_MONOTONIC` ns. All `None`: the process (or a thread of the kernel) called it itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The interrupt: its number and its begin.
    pub irq: Option<(u32, u64)>,
    /// Begin of the softirq.
    pub softirq_ns: Option<u64>,
    /// Begin of the tasklet.
    pub tasklet_ns: Option<u64>,
    /// Begin of the work item.
    pub work_ns: Option<u64>,
}

#[derive(Debug, Default)]
struct Cpu {
    irqs: Vec<(u32, u64)>,
    softirq: Option<Softirq>,
    tasklet: Option<(u64, u32)>,
    raised: HashMap<u32, Raised>,
    polled_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Raised {
    at_ns: u64,
    by: Option<(u32, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Softirq {
    vec: u32,
    begin_ns: u64,
    thread: u32,
    by: Option<(u32, u64)>,
}

/// All CPUs, and what they spent on interrupts.
#[derive(Debug, Default)]
pub struct Cpus {
    cpus: HashMap<u32, Cpu>,
    queued: HashMap<u64, Option<(u32, u64)>>,
    works: HashMap<u32, (u64, Option<(u32, u64)>)>,
    /// Interrupt handlers, by interrupt number: begin → end.
    pub irq_handling: BTreeMap<u32, Times>,
    /// Interrupts by number and CPU.
    pub irq_counts: BTreeMap<(u32, u32), u64>,
    /// NAPI polls: from the begin of the softirq, or the end of the poll before in it, to the end of the poll.
    pub napi_poll: Log2,
    /// Packets by NAPI poll, in bins that double.
    pub napi_packets: Log2,
    /// NET_RX: raised → begins.
    pub net_rx_latency: Log2,
    /// NET_RX: begin → end.
    pub net_rx_run: Log2,
    /// TASKLET: raised → begins.
    pub tasklet_latency: Log2,
}

impl Cpus {
    /// Takes a record.
    pub fn event(&mut self, event: &Event) {
        let (number, now, thread) = (event.header.cpu, event.header.ts_ns, event.header.pid);
        let cpu = self.cpus.entry(number).or_default();
        match event.body {
            Body::IrqEntry(irq) => {
                *self.irq_counts.entry((irq.irq, number)).or_default() += 1;
                if cpu.irqs.len() < DEPTH_MAX {
                    cpu.irqs.push((irq.irq, now));
                }
            }
            Body::IrqExit(irq) => {
                if let Some(at) = cpu.irqs.iter().rposition(|(open, _)| *open == irq.irq) {
                    let (_, begin_ns) = cpu.irqs[at];
                    // Those above it have ended unseen.
                    cpu.irqs.truncate(at);
                    self.irq_handling.entry(irq.irq).or_default().record(begin_ns, now);
                }
            }
            Body::SoftirqRaise(softirq) if leads_to_completions(softirq.vec) => {
                let by = cpu.irqs.last().copied();
                cpu.raised.entry(softirq.vec).or_insert(Raised { at_ns: now, by });
            }
            Body::SoftirqEntry(softirq) if leads_to_completions(softirq.vec) => {
                let raised = cpu.raised.remove(&softirq.vec);
                if let Some(raised) = raised {
                    let latency = if softirq.vec == NET_RX { &mut self.net_rx_latency } else { &mut self.tasklet_latency };
                    latency.record(raised.at_ns, now);
                }
                cpu.softirq = Some(Softirq { vec: softirq.vec, begin_ns: now, thread, by: raised.and_then(|it| it.by) });
                (cpu.tasklet, cpu.polled_ns) = (None, now);
            }
            Body::SoftirqExit(softirq) if leads_to_completions(softirq.vec) => {
                if let Some(open) = cpu.softirq.take().filter(|open| open.vec == softirq.vec && open.vec == NET_RX) {
                    self.net_rx_run.record(open.begin_ns, now);
                }
                cpu.tasklet = None;
            }
            // On kernels without the tasklet tracepoint the driver's function tells.
            Body::TaskletEntry(_) | Body::DriverBottomHalf(_) => cpu.tasklet = Some((now, thread)),
            Body::NapiPoll(poll) => {
                if cpu.softirq.is_some_and(|open| open.vec == NET_RX) {
                    self.napi_poll.record(cpu.polled_ns, now);
                }
                self.napi_packets.record(0, u64::from(poll.work));
                cpu.polled_ns = now;
            }
            Body::WorkQueue(work) => {
                let by = self.origin(number, thread).irq;
                self.queued.insert(work.work, by);
            }
            Body::WorkStart(work) => {
                let by = self.queued.remove(&work.work).flatten();
                self.works.insert(thread, (now, by));
            }
            _ => {}
        }
    }

    /// What a handler that runs now on this CPU, in this thread, was called from.
    pub fn origin(&self, cpu: u32, thread: u32) -> Origin {
        let Some(cpu) = self.cpus.get(&cpu) else { return Origin::default() };
        if let Some(irq) = cpu.irqs.last() {
            return Origin { irq: Some(*irq), ..Origin::default() };
        }
        if let Some(softirq) = cpu.softirq.filter(|open| open.thread == thread) {
            let tasklet_ns = cpu.tasklet.filter(|(_, in_thread)| *in_thread == thread).map(|(begin_ns, _)| begin_ns);
            return Origin { irq: softirq.by, softirq_ns: Some(softirq.begin_ns), tasklet_ns, work_ns: None };
        }
        match self.works.get(&thread) {
            Some((begin_ns, by)) => Origin { irq: *by, work_ns: Some(*begin_ns), ..Origin::default() },
            None => Origin::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebpf_probes::{Header, Irq, Napi, Softirq as Vec_, Tasklet, Work};

    fn at(ts_ns: u64, pid: u32, body: Body) -> Event {
        Event { header: Header { ts_ns, pid, ..Header::default() }, body }
    }

    fn softirq(vec: u32) -> Vec_ {
        Vec_ { vec, reserved: 0 }
    }

    fn fed(events: &[Event]) -> Cpus {
        let mut cpus = Cpus::default();
        events.iter().for_each(|event| cpus.event(event));
        cpus
    }

    #[test]
    fn a_deferred_softirq_belongs_to_the_interrupt_that_raised_it() {
        let irq = |irq| Irq { irq, reserved: 0 };
        let mut cpus = fed(&[
            at(10, 7, Body::IrqEntry(irq(33))),
            at(12, 7, Body::SoftirqRaise(softirq(NET_RX))),
            at(15, 7, Body::IrqExit(irq(33))),
            at(20, 7, Body::IrqEntry(irq(40))),
            at(21, 7, Body::IrqExit(irq(40))),
            // In ksoftirqd, later.
            at(100, 9, Body::SoftirqEntry(softirq(NET_RX))),
            at(130, 9, Body::NapiPoll(Napi { work: 3, budget: 64 })),
        ]);
        assert_eq!(cpus.origin(0, 9), Origin { irq: Some((33, 10)), softirq_ns: Some(100), ..Origin::default() });
        assert_eq!(cpus.origin(0, 8), Origin::default(), "another thread on that CPU is not in the softirq");
        cpus.event(&at(140, 9, Body::SoftirqExit(softirq(NET_RX))));
        assert_eq!(cpus.origin(0, 9), Origin::default());
        assert_eq!((cpus.irq_handling[&33].max_ns(), cpus.irq_counts[&(40, 0)]), (Some(5), 1));
        assert_eq!((cpus.net_rx_latency.n(), cpus.net_rx_run.n(), cpus.napi_poll.bins[4]), (1, 1, 1));
    }

    #[test]
    fn a_work_item_remembers_the_interrupt_whose_softirq_queued_it() {
        let irq = Irq { irq: 33, reserved: 0 };
        let work = Work { work: 0xabc, func: 1 };
        let cpus = fed(&[
            at(10, 7, Body::IrqEntry(irq)),
            at(11, 7, Body::SoftirqRaise(softirq(NET_RX))),
            at(12, 7, Body::IrqExit(irq)),
            at(13, 7, Body::SoftirqEntry(softirq(NET_RX))),
            at(14, 7, Body::WorkQueue(work)),
            at(15, 7, Body::SoftirqExit(softirq(NET_RX))),
            at(20, 55, Body::WorkStart(work)),
        ]);
        assert_eq!(cpus.origin(0, 55), Origin { irq: Some((33, 10)), work_ns: Some(20), ..Origin::default() });
    }

    #[test]
    fn a_tasklet_lies_within_its_softirq() {
        let cpus = fed(&[
            at(10, 7, Body::SoftirqRaise(softirq(TASKLET))),
            at(13, 7, Body::SoftirqEntry(softirq(TASKLET))),
            at(14, 7, Body::TaskletEntry(Tasklet { tasklet: 1, func: 2 })),
        ]);
        let origin = cpus.origin(0, 7);
        assert_eq!(origin, Origin { softirq_ns: Some(13), tasklet_ns: Some(14), ..Origin::default() });
        assert_eq!(cpus.tasklet_latency.bins, [0, 1]);
    }
}
