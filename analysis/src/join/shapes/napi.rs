//! The handler is called from a NAPI poll.
use super::path::Path;
use crate::join::flags::Flag;
use crate::join::joined::Joined;
use crate::join::window::NET_RX;
use ebpf_probes::{Body, Kind, Softirq};

/// Sets the milestones; true when one is missing that this path always has and that could have been recorded.
pub(super) fn join(path: &Path<'_, '_>, joined: &mut Joined) -> bool {
    let (mut poll, mut softirq) = (None, None);
    for (at, event) in path.context(path.handler, None) {
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
        joined.flags.set_if(path.facts.records(Kind::SoftirqEntry), Flag::NotIrq);
        return false;
    };
    // The interrupt that asked for the poll: it may have come after the softirq began.
    let mut found = path.behind(poll.unwrap_or(half), None);
    let after_softirq = found.interrupt.entry.is_some_and(|entry| entry > half);
    found.half = Some(if after_softirq { poll.unwrap_or(half) } else { half });
    joined.flags.set_if(found.interrupt.entry.is_none(), Flag::NapiPolled);
    path.shared_context(joined, half);
    path.set(joined, &found);
    false
}
