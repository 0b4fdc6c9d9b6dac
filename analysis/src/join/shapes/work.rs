//! The handler is called from a work item; on kernels without it, in the interrupt itself.
use super::direct;
use super::path::{Milestones, Path};
use crate::join::joined::Joined;
use ebpf_probes::{Body, Kind, Work};

/// Sets the milestones; true when one is missing that this path always has and that could have been recorded.
pub(super) fn join(path: &Path<'_, '_>, joined: &mut Joined) -> bool {
    let start = path.context(path.handler, None).find(|(_, event)| matches!(event.body, Body::WorkStart(_)));
    let Some((start, Body::WorkStart(Work { work, .. }))) = start.map(|(at, event)| (at, event.body)) else {
        return direct::join(path, joined);
    };
    let queued = path
        .window
        .before(start)
        .take_while(|(_, event)| event.header.ts_ns >= path.begin_ns)
        .find(|(_, event)| matches!(event.body, Body::WorkQueue(queued) if queued.work == work))
        .map(|(at, _)| at);
    let mut found = match queued {
        Some(at) => path.behind(at, Some(at)),
        None => Milestones::default(),
    };
    found.half = Some(start);
    path.shared_context(joined, start);
    path.set(joined, &found);
    queued.is_none() && path.facts.records(Kind::WorkQueue)
}
