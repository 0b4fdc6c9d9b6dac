//! The handler is called in the interrupt itself, or in the thread that handles it.
use super::path::{Milestones, Path};
use crate::join::flags::Flag;
use crate::join::joined::Joined;
use crate::join::threads::{Duty, Interrupt};
use ebpf_probes::{Body, CompHandler, Irq, Kind};

/// Sets the milestones; true when one is missing that this path always has and that could have been recorded.
pub(super) fn join(path: &Path<'_, '_>, joined: &mut Joined) -> bool {
    let Body::CompHandler(CompHandler { cq, .. }) = path.event(path.handler).body else { return false };
    let watched = path.facts.records(Kind::DriverIrq);
    let mine = path.learned.driver_cq(cq);
    let outside = mine.is_some() && path.callback(cq, mine).is_none();
    let (mut own, mut entry) = (None, None);
    for (at, event) in path.context(path.handler, None) {
        match event.body {
            Body::DriverIrq(_) => {
                own = Some(at);
                break;
            }
            Body::IrqEntry(Irq { irq, .. }) if !watched && path.facts.irq.is_none_or(|ours| ours == irq) => {
                entry = Some(at);
                break;
            }
            Body::SoftirqEntry(_)
            | Body::SoftirqExit(_)
            | Body::IrqExit(_)
            | Body::TaskletEntry(_)
            | Body::DriverBottomHalf(_)
            | Body::WorkStart(_) => break,
            Body::SchedSwitch(_) if !path.facts.threads.forced() => break,
            _ => {}
        }
    }
    let in_thread = matches!(path.facts.threads.duty(path.event(path.handler).header.pid), Some(Duty::Irq(_)));
    if outside || (own.is_none() && entry.is_none() && (watched || !in_thread)) {
        joined.flags.set_if(watched || path.facts.records(Kind::IrqEntry), Flag::NotIrq);
        return false;
    }
    let at = own.unwrap_or(path.handler);
    let interrupt = match entry {
        Some(entry) => Interrupt { entry: Some(entry), thread: None },
        None => path.facts.threads.interrupt(path.window, at, path.irq_of(at), path.begin_ns),
    };
    let found = Milestones { interrupt, own, ..Milestones::default() };
    if let Some(begin) = own.or(interrupt.entry) {
        path.shared_context(joined, begin);
    }
    path.set(joined, &found);
    own.is_some() && interrupt.entry.is_none() && path.facts.records(Kind::IrqEntry) && !path.interrupted_before(at, path.irq_of(at))
}
