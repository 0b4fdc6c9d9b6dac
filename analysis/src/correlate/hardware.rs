//! The interrupt path of a hardware driver, from its completion interrupt to the completion handler: K1, the irq thread where interrupts
//! are threaded, K3, the softirq thread where the bottom half was put off, K4.
//!
//! Drivers differ in shape ([`Shape`]). mlx5 and mlx4 are exact: their callback (nested around the handler) names the driver's CQ, whose
//! requests for the bottom half name the interrupt. Other drivers tell less: there the last interrupt of the driver counts.
use super::chain::Joined;
use super::context::{Interrupt, Role, same};
use super::flags::Flag;
use super::identity::Identity;
use super::learned::{DriverKey, Learned, key};
use super::window::{NET_RX, TASKLET, Window};
use crate::stages::Point;
use ebpf_probes::{Body, CompHandler, DriverCq, DriverEntry, Event, Irq, Kind, Softirq, Switch, Tasklet, Work};

/// How a driver comes from its interrupt to the handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// A tasklet that serves an event queue or several.
    #[default]
    Tasklet,
    /// A tasklet, with a probe on the request for it and on the callback of every CQ (mlx5, mlx4).
    TaskletPerCq,
    /// The handler is called in the interrupt itself.
    Direct,
    /// The handler is called from a NAPI poll.
    Napi,
    /// A work item; on kernels without it the interrupt itself.
    Work,
    /// Software that calls the handler from wherever it is (siw): there is no interrupt to look for.
    Anywhere,
}

impl Shape {
    /// From the name of the PCI driver behind the device, or of the RDMA driver (sysfs may tell either).
    pub fn of(driver: &str) -> Shape {
        let any = |names: &[&str]| names.iter().any(|name| driver.starts_with(name));
        if any(&["mlx5", "mlx4"]) {
            Shape::TaskletPerCq
        } else if any(&["efa", "qedr", "qede", "mana", "vmw_pvrdma"]) {
            Shape::Direct
        } else if any(&["cxgb4", "iw_cxgb4"]) {
            Shape::Napi
        } else if any(&["hns", "hfi1", "qib"]) {
            Shape::Work
        } else if any(&["siw", "rdma_rxe"]) {
            Shape::Anywhere
        } else {
            Shape::Tasklet
        }
    }
}

/// What the path is looked for in.
pub struct Path<'a, 'w> {
    /// The events of the sample.
    pub window: &'a Window<'w>,
    /// Who is looked for.
    pub identity: &'a Identity,
    /// What the stream taught of the driver's CQs.
    pub learned: &'a Learned,
    /// Begin of the sample.
    pub begin_ns: u64,
    /// K5.
    pub handler: usize,
}

/// Positions of the milestones.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    interrupt: Interrupt,
    /// K1b, the driver's own handler.
    own: Option<usize>,
    /// K3, or the queueing of a work item.
    request: Option<usize>,
    /// K4.
    half: Option<usize>,
}

impl Path<'_, '_> {
    /// Sets the milestones; true when one is missing that this path always has and that could have been recorded.
    pub fn join(&self, joined: &mut Joined) -> bool {
        match self.identity.shape {
            Shape::TaskletPerCq if self.identity.records(Kind::DriverComp) => self.per_cq(joined),
            Shape::TaskletPerCq | Shape::Tasklet => self.tasklet(joined),
            Shape::Direct => self.direct(joined),
            Shape::Napi => self.napi(joined),
            Shape::Work => self.work(joined),
            Shape::Anywhere => false,
        }
    }

    fn event(&self, at: usize) -> &Event {
        &self.window.events[at]
    }

    /// The events of the same context before `at`, latest first, within the sample and at or after `since`.
    fn context(&self, at: usize, since: Option<usize>) -> impl Iterator<Item = (usize, &Event)> {
        let header = self.event(at).header;
        self.window
            .before(at)
            .take_while(move |(position, event)| event.header.ts_ns >= self.begin_ns && since.is_none_or(|since| *position > since))
            .filter(move |(_, event)| same(&event.header, &header))
    }

    fn per_cq(&self, joined: &mut Joined) -> bool {
        let Body::CompHandler(CompHandler { cq, .. }) = self.event(self.handler).body else { return false };
        let mine = self.learned.driver_cq(cq);
        let callback = self.callback(cq, mine);
        let entry = self.learned.callback(self.window.id(callback.unwrap_or(self.handler)));
        let request = entry.and_then(|callback| callback.request);
        if callback.is_none() && request.is_none_or(|call| call.ts_ns < self.begin_ns) {
            joined.flags.set(Flag::NotIrq);
            return false;
        }
        let end = callback.unwrap_or(self.handler);
        let at = request.and_then(|call| self.window.position(call.id));
        let irq = at.or(callback).and_then(|at| match self.event(at).body {
            Body::DriverEnqueue(DriverCq { irq, .. }) | Body::DriverComp(DriverCq { irq, .. }) => known(irq),
            _ => None,
        });
        let mut found = Found { request: at, half: self.tasklet_run(end, at), ..Found::default() };
        if let Some(at) = at {
            found.own = self.own_handler(at);
            found.interrupt = self.identity.threads.interrupt(self.window, at, irq, self.begin_ns);
        }
        // The event of an earlier completion: its request lies before this sample.
        joined.flags.set_if(request.is_some() && at.is_none(), Flag::Spurious);
        let earlier = at.is_some_and(|at| self.interrupted_before(at, irq));
        joined.flags.set_if(earlier && found.interrupt.entry.is_none(), Flag::IrqShared);
        self.shared_queue(joined, &found, end, entry.map(|callback| callback.driver_cq).or(mine), irq);
        self.set(joined, &found);
        (request.is_none() && self.identity.records(Kind::DriverEnqueue))
            || (at.is_some() && found.interrupt.entry.is_none() && !earlier && self.identity.records(Kind::IrqEntry))
            || (found.half.is_none() && self.records_tasklets())
    }

    /// The driver's callback that the handler is nested in.
    fn callback(&self, cq: u64, mine: Option<DriverKey>) -> Option<usize> {
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

    /// The tasklet's run that led to `end`: the first one of that tasklet since the request, for one that served other CQs until its
    /// time was up runs again. Without a record of tasklets the softirq counts.
    fn tasklet_run(&self, end: usize, request: Option<usize>) -> Option<usize> {
        let nearest = self.half(end, request)?;
        let Some(object) = object_of(self.event(nearest)) else { return Some(nearest) };
        let Some(request) = request else { return Some(nearest) };
        let first = self.window.after(request).take_while(|(at, _)| *at < nearest).find(|(_, event)| object_of(event) == Some(object));
        Some(first.map_or(nearest, |(at, _)| at))
    }

    /// The last bottom half that began in this context.
    fn half(&self, end: usize, since: Option<usize>) -> Option<usize> {
        let mut own = None;
        for (at, event) in self.context(end, since) {
            match event.body {
                Body::TaskletEntry(_) => return Some(at),
                Body::DriverBottomHalf(_) => own = own.or(Some(at)),
                Body::SoftirqEntry(Softirq { vec: TASKLET, .. }) => return own.or(Some(at)),
                Body::SoftirqEntry(_) | Body::SoftirqExit(_) | Body::WorkStart(_) | Body::RxePost(_) => return own,
                Body::SchedSwitch(Switch { prev_pid, .. }) if prev_pid == event.header.pid && !self.identity.threads.forced() => {
                    return own;
                }
                _ => {}
            }
        }
        own
    }

    fn records_tasklets(&self) -> bool {
        [Kind::TaskletEntry, Kind::DriverBottomHalf, Kind::SoftirqEntry].iter().any(|kind| self.identity.records(*kind))
    }

    fn tasklet(&self, joined: &mut Joined) -> bool {
        let Body::CompHandler(CompHandler { cq, .. }) = self.event(self.handler).body else { return false };
        let Some(half) = self.half(self.handler, None) else {
            joined.flags.set_if(self.records_tasklets(), Flag::NotIrq);
            return false;
        };
        // A CQ whose handler was called from the driver's callback before is called from nowhere else in its bottom half.
        let mine = self.learned.driver_cq(cq);
        if mine.is_some() && self.callback(cq, mine).is_none() {
            joined.flags.set(Flag::NotIrq);
            return false;
        }
        let found = self.behind(half, None);
        self.shared_context(joined, half);
        self.set(joined, &found);
        found.interrupt.entry.is_none() && self.identity.records(Kind::IrqEntry) && !self.interrupted_before(half, self.identity.irq)
    }

    fn direct(&self, joined: &mut Joined) -> bool {
        let Body::CompHandler(CompHandler { cq, .. }) = self.event(self.handler).body else { return false };
        let watched = self.identity.records(Kind::DriverIrq);
        let mine = self.learned.driver_cq(cq);
        let outside = mine.is_some() && self.callback(cq, mine).is_none();
        let (mut own, mut entry) = (None, None);
        for (at, event) in self.context(self.handler, None) {
            match event.body {
                Body::DriverIrq(_) => {
                    own = Some(at);
                    break;
                }
                Body::IrqEntry(Irq { irq, .. }) if !watched && self.identity.irq.is_none_or(|ours| ours == irq) => {
                    entry = Some(at);
                    break;
                }
                Body::SoftirqEntry(_)
                | Body::SoftirqExit(_)
                | Body::IrqExit(_)
                | Body::TaskletEntry(_)
                | Body::DriverBottomHalf(_)
                | Body::WorkStart(_) => break,
                Body::SchedSwitch(_) if !self.identity.threads.forced() => break,
                _ => {}
            }
        }
        let in_thread = matches!(self.identity.threads.role(self.event(self.handler).header.pid), Some(Role::Irq(_)));
        if outside || (own.is_none() && entry.is_none() && (watched || !in_thread)) {
            joined.flags.set_if(watched || self.identity.records(Kind::IrqEntry), Flag::NotIrq);
            return false;
        }
        let at = own.unwrap_or(self.handler);
        let interrupt = match entry {
            Some(entry) => Interrupt { entry: Some(entry), thread: None },
            None => self.identity.threads.interrupt(self.window, at, self.irq_of(at), self.begin_ns),
        };
        let found = Found { interrupt, own, ..Found::default() };
        if let Some(begin) = own.or(interrupt.entry) {
            self.shared_context(joined, begin);
        }
        self.set(joined, &found);
        own.is_some() && interrupt.entry.is_none() && self.identity.records(Kind::IrqEntry) && !self.interrupted_before(at, self.irq_of(at))
    }

    fn napi(&self, joined: &mut Joined) -> bool {
        let (mut poll, mut softirq) = (None, None);
        for (at, event) in self.context(self.handler, None) {
            match event.body {
                Body::DriverBottomHalf(_) => poll = poll.or(Some(at)),
                Body::SoftirqEntry(Softirq { vec: NET_RX, .. }) => {
                    softirq = Some(at);
                    break;
                }
                Body::SoftirqEntry(_) | Body::SoftirqExit(_) | Body::TaskletEntry(_) | Body::WorkStart(_) => break,
                _ => {}
            }
        }
        let Some(half) = softirq.or(poll) else {
            joined.flags.set_if(self.identity.records(Kind::SoftirqEntry), Flag::NotIrq);
            return false;
        };
        // The interrupt that asked for the poll: it may have come after the softirq began.
        let mut found = self.behind(poll.unwrap_or(half), None);
        let after_softirq = found.interrupt.entry.is_some_and(|entry| entry > half);
        found.half = Some(if after_softirq { poll.unwrap_or(half) } else { half });
        joined.flags.set_if(found.interrupt.entry.is_none(), Flag::NapiPolled);
        self.shared_context(joined, half);
        self.set(joined, &found);
        false
    }

    fn work(&self, joined: &mut Joined) -> bool {
        let start = self.context(self.handler, None).find(|(_, event)| matches!(event.body, Body::WorkStart(_)));
        let Some((start, Body::WorkStart(Work { work, .. }))) = start.map(|(at, event)| (at, event.body)) else {
            return self.direct(joined);
        };
        let queued = self
            .window
            .before(start)
            .take_while(|(_, event)| event.header.ts_ns >= self.begin_ns)
            .find(|(_, event)| matches!(event.body, Body::WorkQueue(queued) if queued.work == work))
            .map(|(at, _)| at);
        let mut found = match queued {
            Some(at) => self.behind(at, Some(at)),
            None => Found::default(),
        };
        found.half = Some(start);
        self.shared_context(joined, start);
        self.set(joined, &found);
        queued.is_none() && self.identity.records(Kind::WorkQueue)
    }

    /// The interrupt behind `at`, the start of a bottom half or a request for one, where nothing names it: the driver's last one on
    /// that CPU; where the driver's own handler is not watched, the last interrupt there.
    fn behind(&self, at: usize, request: Option<usize>) -> Found {
        let cpu = self.event(at).header.cpu;
        let mut earlier = self.window.before(at).take_while(|(_, event)| event.header.ts_ns >= self.begin_ns);
        let own = earlier.find(|(_, event)| event.header.cpu == cpu && matches!(event.body, Body::DriverIrq(_))).map(|(at, _)| at);
        let half = request.is_none().then_some(at);
        if let Some(own) = own {
            let interrupt = self.identity.threads.interrupt(self.window, own, self.irq_of(own), self.begin_ns);
            return Found { interrupt, own: Some(own), request, half };
        }
        let mut earlier = self.window.before(at).take_while(|(_, event)| event.header.ts_ns >= self.begin_ns);
        let entry = earlier.find(|(_, event)| {
            event.header.cpu == cpu
                && matches!(event.body, Body::IrqEntry(Irq { irq, .. }) if self.identity.irq.is_none_or(|ours| ours == irq))
        });
        Found { interrupt: Interrupt { entry: entry.map(|(at, _)| at), thread: None }, own: None, request, half }
    }

    /// The driver's own interrupt handler around `at`.
    fn own_handler(&self, at: usize) -> Option<usize> {
        self.context(at, None)
            .take_while(|(_, event)| !matches!(event.body, Body::SoftirqEntry(_) | Body::TaskletEntry(_) | Body::IrqExit(_)))
            .find(|(_, event)| matches!(event.body, Body::DriverIrq(_)))
            .map(|(at, _)| at)
    }

    fn irq_of(&self, at: usize) -> Option<u32> {
        match self.event(at).body {
            Body::DriverIrq(DriverEntry { irq, .. }) => known(irq).or(self.identity.irq),
            _ => self.identity.irq,
        }
    }

    /// No interrupt lies between the begin of the sample and `at`, but the CPU's last one before was this: it goes on.
    fn interrupted_before(&self, at: usize, irq: Option<u32>) -> bool {
        let last = self.window.cpu(self.event(at).header.cpu).last_irq;
        last.is_some() && (irq.is_none() || last == irq)
    }

    /// Other entries of the same event queue, or a second one of this CQ, between the interrupt and the handler.
    fn shared_queue(&self, joined: &mut Joined, found: &Found, end: usize, mine: Option<DriverKey>, irq: Option<u32>) {
        let Some(begin) = found.interrupt.entry.or(found.request) else { return };
        let other = self.window.after(begin).take_while(|(at, _)| *at < end).any(|(at, event)| match event.body {
            Body::DriverEnqueue(entry) => known(entry.irq) == irq && found.request != Some(at),
            Body::DriverComp(entry) => known(entry.irq) == irq && Some(key(&entry)) != mine,
            _ => false,
        });
        joined.flags.set_if(other, Flag::IrqShared);
    }

    /// Another CQ's handler ran in this context since `begin`.
    fn shared_context(&self, joined: &mut Joined, begin: usize) {
        let Body::CompHandler(CompHandler { cq, .. }) = self.event(self.handler).body else { return };
        let begin_header = self.event(begin).header;
        let other = self
            .context(self.handler, Some(begin))
            .filter(|(_, event)| event.header.cpu == begin_header.cpu)
            .any(|(_, event)| matches!(event.body, Body::CompHandler(CompHandler { cq: other, .. }) if other != cq));
        joined.flags.set_if(other, Flag::IrqShared);
    }

    /// The milestones and the flags that follow from them.
    fn set(&self, joined: &mut Joined, found: &Found) {
        let ts = |at: usize| self.window.ts(at);
        let pid = |at: usize| self.event(at).header.pid;
        if let Some(entry) = found.interrupt.entry.or(found.own) {
            joined.chain.set(Point::CompIrq, ts(entry));
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
        let cause = found.request.or(found.own).or(found.interrupt.entry.filter(|_| !self.identity.threads.forced()));
        let put_off = matches!(self.identity.threads.role(pid(half)), Some(Role::Softirq))
            || cause.is_some_and(|cause| !same(&self.event(cause).header, &self.event(half).header));
        joined.flags.set_if(put_off, Flag::BhDeferred);
        let since_ns = cause.or(found.interrupt.entry).map_or(self.begin_ns, ts);
        if let Some(thread) = self.identity.threads.softirq_entry(self.window, half, since_ns) {
            joined.chain.set(Point::SoftirqWaking, ts(thread.waking));
            joined.chain.set(Point::SoftirqThread, ts(thread.switch));
        }
    }
}

fn known(number: u32) -> Option<u32> {
    (number != u32::MAX).then_some(number)
}

fn object_of(event: &Event) -> Option<u64> {
    match event.body {
        Body::TaskletEntry(Tasklet { tasklet, .. }) => Some(tasklet),
        Body::DriverBottomHalf(DriverEntry { object, .. }) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_have_their_shape_by_either_name() {
        for (driver, shape) in [
            ("mlx5_core", Shape::TaskletPerCq),
            ("mlx4_ib", Shape::TaskletPerCq),
            ("efa", Shape::Direct),
            ("qede", Shape::Direct),
            ("cxgb4", Shape::Napi),
            ("hns3", Shape::Work),
            ("siw", Shape::Anywhere),
            ("bnxt_en", Shape::Tasklet),
            ("something new", Shape::Tasklet),
        ] {
            assert_eq!(Shape::of(driver), shape, "{driver}");
        }
    }
}
