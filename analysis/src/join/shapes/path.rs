//! Looking for the interrupt path of a completion: what the shapes have in common.
use crate::join::context::same;
use crate::join::facts::RunFacts;
use crate::join::flags::Flag;
use crate::join::joined::Joined;
use crate::join::learned::{DriverKey, Learned, key};
use crate::join::threads::{Duty, Interrupt};
use crate::join::window::{TASKLET, Window};
use crate::stages::Point;
use ebpf_probes::{Body, CompHandler, DriverEntry, Event, Irq, Kind, Softirq, Switch};

/// What the path is looked for in.
pub(crate) struct Path<'a, 'w> {
    /// The events of the sample.
    pub window: &'a Window<'w>,
    /// Who is looked for.
    pub facts: &'a RunFacts,
    /// What the stream taught of the driver's CQs.
    pub learned: &'a Learned,
    /// Begin of the sample.
    pub begin_ns: u64,
    /// K5.
    pub handler: usize,
}

/// Positions of the milestones.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Milestones {
    /// K1, and the wake-up of the thread that handles it.
    pub interrupt: Interrupt,
    /// K1b, the driver's own handler.
    pub own: Option<usize>,
    /// K3, or the queueing of a work item.
    pub request: Option<usize>,
    /// K4.
    pub half: Option<usize>,
}

impl Path<'_, '_> {
    pub(super) fn event(&self, at: usize) -> &Event {
        &self.window.events[at]
    }

    /// The events of the same context before `at`, latest first, within the sample and at or after `since`.
    pub(super) fn context(&self, at: usize, since: Option<usize>) -> impl Iterator<Item = (usize, &Event)> {
        let header = self.event(at).header;
        self.window
            .before(at)
            .take_while(move |(position, event)| event.header.ts_ns >= self.begin_ns && since.is_none_or(|since| *position > since))
            .filter(move |(_, event)| same(&event.header, &header))
    }

    /// The driver's callback that the handler is nested in.
    pub(super) fn callback(&self, cq: u64, mine: Option<DriverKey>) -> Option<usize> {
        for (at, event) in self.context(self.handler, None) {
            match event.body {
                Body::DriverComp(body) if mine.is_none_or(|mine| mine == key(&body)) => return Some(at),
                Body::CompHandler(CompHandler { cq: other, .. }) if other == cq => return None,
                Body::TaskletEntry(_) | Body::DriverBottomHalf(_) | Body::SoftirqEntry(_) | Body::SoftirqExit(_) | Body::WorkStart(_) => {
                    return None;
                }
                _ => {}
            }
        }
        None
    }

    /// Is the handler nested in the driver's callback of its CQ?
    pub(super) fn is_in_callback(&self) -> bool {
        let Body::CompHandler(CompHandler { cq, .. }) = self.event(self.handler).body else { return false };
        self.callback(cq, self.learned.driver_cq(cq)).is_some()
    }

    /// The last bottom half that began in this context.
    pub(super) fn half(&self, end: usize, since: Option<usize>) -> Option<usize> {
        let mut own = None;
        for (at, event) in self.context(end, since) {
            match event.body {
                Body::TaskletEntry(_) => return Some(at),
                Body::DriverBottomHalf(_) => own = own.or(Some(at)),
                Body::SoftirqEntry(Softirq { vec: TASKLET, .. }) => return own.or(Some(at)),
                Body::SoftirqEntry(_) | Body::SoftirqExit(_) | Body::WorkStart(_) | Body::RxePost(_) => return own,
                Body::SchedSwitch(Switch { prev_pid, .. }) if prev_pid == event.header.pid && !self.facts.threads.forced() => {
                    return own;
                }
                _ => {}
            }
        }
        own
    }

    pub(super) fn records_tasklets(&self) -> bool {
        [Kind::TaskletEntry, Kind::DriverBottomHalf, Kind::SoftirqEntry].iter().any(|kind| self.facts.records(*kind))
    }

    /// The interrupt behind `at`, the start of a bottom half or a request for one, where nothing names it: the driver's last one on
    /// that CPU; where the driver's own handler is not watched, the last interrupt there.
    pub(super) fn behind(&self, at: usize, request: Option<usize>) -> Milestones {
        let cpu = self.event(at).header.cpu;
        let mut earlier = self.window.before(at).take_while(|(_, event)| event.header.ts_ns >= self.begin_ns);
        let own = earlier.find(|(_, event)| event.header.cpu == cpu && matches!(event.body, Body::DriverIrq(_))).map(|(at, _)| at);
        let half = request.is_none().then_some(at);
        if let Some(own) = own {
            let interrupt = self.facts.threads.interrupt(self.window, own, self.irq_of(own), self.begin_ns);
            return Milestones { interrupt, own: Some(own), request, half };
        }
        let mut earlier = self.window.before(at).take_while(|(_, event)| event.header.ts_ns >= self.begin_ns);
        let entry = earlier.find(|(_, event)| {
            event.header.cpu == cpu
                && matches!(event.body, Body::IrqEntry(Irq { irq, .. }) if self.facts.irq.is_none_or(|ours| ours == irq))
        });
        Milestones { interrupt: Interrupt { entry: entry.map(|(at, _)| at), thread: None }, own: None, request, half }
    }

    /// The driver's own interrupt handler around `at`.
    pub(super) fn own_handler(&self, at: usize) -> Option<usize> {
        self.context(at, None)
            .take_while(|(_, event)| !matches!(event.body, Body::SoftirqEntry(_) | Body::TaskletEntry(_) | Body::IrqExit(_)))
            .find(|(_, event)| matches!(event.body, Body::DriverIrq(_)))
            .map(|(at, _)| at)
    }

    pub(super) fn irq_of(&self, at: usize) -> Option<u32> {
        match self.event(at).body {
            Body::DriverIrq(DriverEntry { irq, .. }) => known(irq).or(self.facts.irq),
            _ => self.facts.irq,
        }
    }

    /// No interrupt lies between the begin of the sample and `at`, but the CPU's last one before was this: it goes on.
    pub(super) fn interrupted_before(&self, at: usize, irq: Option<u32>) -> bool {
        let last = self.window.cpu(self.event(at).header.cpu).last_irq;
        last.is_some() && (irq.is_none() || last == irq)
    }

    /// Another CQ's handler ran in this context since `begin`.
    pub(super) fn shared_context(&self, joined: &mut Joined, begin: usize) {
        let Body::CompHandler(CompHandler { cq, .. }) = self.event(self.handler).body else { return };
        let begin_header = self.event(begin).header;
        let other = self
            .context(self.handler, Some(begin))
            .filter(|(_, event)| event.header.cpu == begin_header.cpu)
            .any(|(_, event)| matches!(event.body, Body::CompHandler(CompHandler { cq: other, .. }) if other != cq));
        joined.flags.set_if(other, Flag::IrqShared);
    }

    /// The milestones and the flags that follow from them.
    pub(super) fn set(&self, joined: &mut Joined, found: &Milestones) {
        let ts = |at: usize| self.window.ts(at);
        let pid = |at: usize| self.event(at).header.pid;
        if let Some(entry) = found.interrupt.entry.or(found.own) {
            joined.chain.set(Point::CompIrq, ts(entry));
            joined.own_handler_for_interrupt = found.interrupt.entry.is_none();
        }
        let threaded =
            found.own.filter(|own| found.interrupt.entry.is_some_and(|entry| !same(&self.event(*own).header, &self.event(entry).header)));
        match (found.interrupt.thread, threaded) {
            (Some(thread), _) => {
                joined.chain.set(Point::CompIrqWaking, ts(thread.waking));
                joined.chain.set(Point::CompIrqThread, ts(thread.switch));
                joined.flags.set(Flag::Rt);
            }
            // The thread's scheduling was not recorded: the begin of the driver's handler in it.
            (None, Some(own)) => {
                joined.chain.set(Point::CompIrqThread, ts(own));
                joined.flags.set(Flag::Rt);
            }
            (None, None) => {}
        }
        if let Some(request) = found.request {
            joined.chain.set(Point::DriverEnqueue, ts(request));
        }
        let Some(half) = found.half else { return };
        joined.chain.set(Point::BottomHalf, ts(half));
        if matches!(self.event(half).body, Body::WorkStart(_)) {
            return;
        }
        let cause = found.request.or(found.own).or(found.interrupt.entry.filter(|_| !self.facts.threads.forced()));
        let put_off = matches!(self.facts.threads.duty(pid(half)), Some(Duty::Softirq))
            || cause.is_some_and(|cause| !same(&self.event(cause).header, &self.event(half).header));
        joined.flags.set_if(put_off, Flag::BhDeferred);
        let since_ns = cause.or(found.interrupt.entry).map_or(self.begin_ns, ts);
        if let Some(thread) = self.facts.threads.softirq_entry(self.window, half, since_ns) {
            joined.chain.set(Point::SoftirqWaking, ts(thread.waking));
            joined.chain.set(Point::SoftirqThread, ts(thread.switch));
        }
    }
}

/// A number that the probe knew.
pub(super) fn known(number: u32) -> Option<u32> {
    (number != u32::MAX).then_some(number)
}
