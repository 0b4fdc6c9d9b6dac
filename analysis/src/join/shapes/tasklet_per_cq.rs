//! A tasklet, with a probe on the request for it and on the callback of every CQ (mlx5, mlx4). This is exact: the callback, nested around
//! the handler, names the driver's CQ, whose requests for the bottom half name the interrupt.
use super::path::{Milestones, Path, known};
use crate::join::flags::Flag;
use crate::join::joined::Joined;
use crate::join::learned::{DriverKey, key};
use ebpf_probes::{Body, CompHandler, DriverCq, DriverEntry, Event, Kind, Tasklet};

/// Sets the milestones; true when one is missing that this path always has and that could have been recorded.
pub(super) fn join(path: &Path<'_, '_>, joined: &mut Joined) -> bool {
    let Body::CompHandler(CompHandler { cq, .. }) = path.event(path.handler).body else { return false };
    let mine = path.learned.driver_cq(cq);
    let callback = path.callback(cq, mine);
    let entry = path.learned.callback(path.window.id(callback.unwrap_or(path.handler)));
    let request = entry.and_then(|callback| callback.request);
    if callback.is_none() && request.is_none_or(|call| call.ts_ns < path.begin_ns) {
        joined.flags.set(Flag::NotIrq);
        return false;
    }
    let end = callback.unwrap_or(path.handler);
    let at = request.and_then(|call| path.window.position(call.id));
    let irq = at.or(callback).and_then(|at| match path.event(at).body {
        Body::DriverEnqueue(DriverCq { irq, .. }) | Body::DriverComp(DriverCq { irq, .. }) => known(irq),
        _ => None,
    });
    let mut found = Milestones { request: at, half: tasklet_run(path, end, at), ..Milestones::default() };
    if let Some(at) = at {
        found.own = path.own_handler(at);
        found.interrupt = path.facts.threads.interrupt(path.window, at, irq, path.begin_ns);
    }
    // The event of an earlier completion: its request lies before this sample.
    joined.flags.set_if(request.is_some() && at.is_none(), Flag::Spurious);
    let earlier = at.is_some_and(|at| path.interrupted_before(at, irq));
    joined.flags.set_if(earlier && found.interrupt.entry.is_none(), Flag::IrqShared);
    shared_queue(path, joined, &found, end, entry.map(|callback| callback.driver_cq).or(mine), irq);
    path.set(joined, &found);
    (request.is_none() && path.facts.records(Kind::DriverEnqueue))
        || (at.is_some() && found.interrupt.entry.is_none() && !earlier && path.facts.records(Kind::IrqEntry))
        || (found.half.is_none() && path.records_tasklets())
}

/// The tasklet's run that led to `end`: the first one of that tasklet since the request, for one that served other CQs until its
/// time was up runs again. Without a record of tasklets the softirq counts.
fn tasklet_run(path: &Path<'_, '_>, end: usize, request: Option<usize>) -> Option<usize> {
    let nearest = path.half(end, request)?;
    let Some(object) = object_of(path.event(nearest)) else { return Some(nearest) };
    let Some(request) = request else { return Some(nearest) };
    let first = path.window.after(request).take_while(|(at, _)| *at < nearest).find(|(_, event)| object_of(event) == Some(object));
    Some(first.map_or(nearest, |(at, _)| at))
}

/// Other entries of the same event queue, or a second one of this CQ, between the interrupt and the handler.
fn shared_queue(path: &Path<'_, '_>, joined: &mut Joined, found: &Milestones, end: usize, mine: Option<DriverKey>, irq: Option<u32>) {
    let Some(begin) = found.interrupt.entry.or(found.request) else { return };
    let other = path.window.after(begin).take_while(|(at, _)| *at < end).any(|(at, event)| match event.body {
        Body::DriverEnqueue(entry) => known(entry.irq) == irq && found.request != Some(at),
        Body::DriverComp(entry) => known(entry.irq) == irq && Some(key(&entry)) != mine,
        _ => false,
    });
    joined.flags.set_if(other, Flag::IrqShared);
}

fn object_of(event: &Event) -> Option<u64> {
    match event.body {
        Body::TaskletEntry(Tasklet { tasklet, .. }) => Some(tasklet),
        Body::DriverBottomHalf(DriverEntry { object, .. }) => Some(object),
        _ => None,
    }
}
