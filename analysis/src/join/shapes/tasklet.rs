//! A tasklet that serves an event queue or several: the last interrupt of the driver before it counts.
use super::path::Path;
use crate::join::flags::Flag;
use crate::join::joined::Joined;
use ebpf_probes::{Body, CompHandler, Kind};

/// Sets the milestones; true when one is missing that this path always has and that could have been recorded.
pub(super) fn join(path: &Path<'_, '_>, joined: &mut Joined) -> bool {
    let Body::CompHandler(CompHandler { cq, .. }) = path.event(path.handler).body else { return false };
    let Some(half) = path.half(path.handler, None) else {
        joined.flags.set_if(path.records_tasklets(), Flag::NotIrq);
        return false;
    };
    // A CQ whose handler was called from the driver's callback before is called from nowhere else in its bottom half.
    let mine = path.learned.driver_cq(cq);
    if mine.is_some() && path.callback(cq, mine).is_none() {
        joined.flags.set(Flag::NotIrq);
        return false;
    }
    let found = path.behind(half, None);
    path.shared_context(joined, half);
    path.set(joined, &found);
    found.interrupt.entry.is_none() && path.facts.records(Kind::IrqEntry) && !path.interrupted_before(half, path.facts.irq)
}
