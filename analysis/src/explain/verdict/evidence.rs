//! What the events around one sample say of who was in the way, beyond its chain: kept for the samples that get a verdict.
use crate::explain::interference::{Overlay, What, overlay};
use crate::join::joined::Joined;
use crate::join::window::Window;
use crate::stages::Point;
use capture::Sample;
use ebpf_probes::{Body, Event};

/// A bottom half (or a receive softirq) of the chain, and what ran on its CPU before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Half {
    /// Its CPU.
    pub cpu: u32,
    /// Thread in which it ran: the one that it interrupted, or ksoftirqd.
    pub pid: u32,
    /// Thread that its cause interrupted.
    pub cause_pid: u32,
    /// Interrupts and softirqs that began on that CPU between the cause and it, with their number.
    pub before: Vec<(What, u32)>,
}

/// The switch to a thread of the path that is not the measured one: an interrupt's thread, or one that runs softirqs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathThread {
    /// The thread.
    pub pid: u32,
    /// Its CPU.
    pub cpu: u32,
    /// Who left the CPU for it; 0 is the idle task.
    pub behind: u32,
}

/// A work item of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker {
    /// The kernel's worker thread that took it.
    pub pid: u32,
    /// On this CPU.
    pub cpu: u32,
}

/// Milestones at which a thread of the path gets its CPU.
const THREADS: [Point; 5] =
    [Point::IrqThread, Point::NetSoftirqThread, Point::RespSoftirqThread, Point::CompIrqThread, Point::SoftirqThread];

/// The evidence on one sample.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// What took the thread's CPU.
    pub overlay: Overlay,
    /// Milestones that the thread reached itself: in the gap before them it was the one that worked.
    own: Vec<Point>,
    /// The bottom half before the handler.
    pub bottom_half: Option<Half>,
    /// The softirq that received the packet.
    pub receive: Option<Half>,
    /// The worker that sent the request.
    pub sender: Option<Worker>,
    /// The worker that handled the answer.
    pub receiver: Option<Worker>,
    /// Threads of the path, with the milestone at which they got their CPU.
    pub threads: Vec<(Point, PathThread)>,
    /// Destinations of the thread's migrations while the sample ran.
    pub moved_to: Vec<u32>,
}

impl Evidence {
    /// Reads it from the window. `tid`: the measured thread.
    pub fn of(window: &Window<'_>, sample: &Sample, joined: &Joined, tid: u32) -> Evidence {
        let find = |point: Point, is_it: fn(&Body) -> bool| {
            let ts_ns = joined.chain.get(point)?;
            window.events.iter().position(|event| event.header.ts_ns == ts_ns && is_it(&event.body))
        };
        let half = |at: Option<usize>, cause: Option<usize>| Some(half(window.events, at?, cause?));
        let bottom_half = find(Point::BottomHalf, |body| matches!(body, Body::TaskletEntry(_) | Body::SoftirqEntry(_)));
        let cause = find(Point::CqePosted, |body| matches!(body, Body::CqPost(_)))
            .or_else(|| find(Point::DriverEnqueue, |body| matches!(body, Body::DriverEnqueue(_))))
            .or_else(|| find(Point::CompIrq, |body| matches!(body, Body::IrqEntry(_))));
        let receive = find(Point::NetSoftirq, |body| matches!(body, Body::SoftirqEntry(_)));
        let irq = find(Point::Irq, |body| matches!(body, Body::IrqEntry(_)));
        let worker = |point| {
            let at = find(point, |body| matches!(body, Body::WorkStart(_)))?;
            let header = window.events[at].header;
            Some(Worker { pid: header.pid, cpu: header.cpu })
        };
        let threads = THREADS.iter().filter_map(|point| {
            let at = find(*point, |body| matches!(body, Body::SchedSwitch(_)))?;
            let Body::SchedSwitch(switch) = window.events[at].body else { return None };
            Some((*point, PathThread { pid: switch.next_pid, cpu: window.events[at].header.cpu, behind: switch.prev_pid }))
        });
        let moved_to = window.events.iter().filter(|event| event.header.ts_ns <= sample.done_ns).filter_map(|event| match event.body {
            Body::SchedMigrate(wake) if wake.target_pid == tid => Some(wake.target_cpu),
            _ => None,
        });
        let is_own = |(point, ts_ns): (Point, u64)| {
            let user =
                matches!(point, Point::PostBegin | Point::PostEnd | Point::PostReturn | Point::ReadReturn | Point::WaitEnd | Point::Done);
            let by_thread = || window.events.iter().any(|event| event.header.ts_ns == ts_ns && event.header.pid == tid);
            (user || by_thread()).then_some(point)
        };
        Evidence {
            overlay: overlay(window.events, sample, tid),
            own: joined.chain.points().filter_map(is_own).collect(),
            bottom_half: half(bottom_half, cause),
            receive: half(receive, irq),
            sender: worker(Point::ReqWork),
            receiver: worker(Point::RespWork),
            threads: threads.collect(),
            moved_to: moved_to.collect(),
        }
    }

    /// Did the thread itself work its way to this milestone?
    pub fn is_own(&self, point: Point) -> bool {
        self.own.contains(&point)
    }
}

fn half(events: &[Event], at: usize, cause: usize) -> Half {
    let header = events[at].header;
    let mut before: Vec<(What, u32)> = Vec::new();
    for event in events.get(cause + 1..at).unwrap_or_default().iter().filter(|event| event.header.cpu == header.cpu) {
        let what = match event.body {
            Body::IrqEntry(irq) => What::Irq(irq.irq),
            Body::SoftirqEntry(softirq) => What::Softirq(softirq.vec),
            Body::TimerEntry(_) => What::Tick,
            _ => continue,
        };
        match before.iter_mut().find(|(seen, _)| *seen == what) {
            Some((_, times)) => *times += 1,
            None => before.push((what, 1)),
        }
    }
    // The softirq in which a tasklet runs is the tasklet's own.
    if matches!(events[at].body, Body::TaskletEntry(_)) {
        before.retain_mut(|(what, times)| {
            *times -= u32::from(*what == What::Softirq(crate::join::window::TASKLET));
            *times > 0
        });
    }
    Half { cpu: header.cpu, pid: header.pid, cause_pid: events[cause].header.pid, before }
}
