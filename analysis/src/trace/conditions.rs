//! What is wrong, by name: conditions in which a program waits for an event that cannot come, or loses completions.
//!
//! Only what records prove is named. Whether another program polls its CQ cannot be seen, except on soft-RoCE, whose queue shows how many
//! CQEs were not taken.
use super::cq::CqTrace;
use super::join::Join;
use capture::manifest::TraceFacts;
use serde::Serialize;

/// A thread that has not moved for so long is asleep for good, as far as a trace can tell.
const QUIET_NS: u64 = 1_000_000_000;
/// `IB_EVENT_CQ_ERR`.
const CQ_ERR: u32 = 0;

/// A named condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// Its name.
    pub name: &'static str,
    /// Process that it befell.
    pub tgid: u32,
    /// CQ, by restrack id, where one is meant.
    pub cq: Option<u32>,
    /// What was seen, and what follows.
    pub sentence: String,
}

/// A CQ overran.
pub const OVERRUN: &str = "CQ overrun";
/// A thread sleeps although completions lie unread.
pub const ASLEEP: &str = "asleep on finished work";
/// Events of one CQ came, while another one on the channel has unread completions.
pub const OTHER_CQ: &str = "event for another CQ";
/// Events lie in the channel and nobody reads them.
pub const UNREAD_EVENTS: &str = "events that nobody reads";

/// Everything that is wrong with the CQs of the traced processes.
pub fn find(join: &Join, facts: &TraceFacts) -> Vec<Condition> {
    let is_ours = |cq: &&CqTrace| cq.tgid == 0 || facts.processes.iter().any(|process| process.tgid == cq.tgid);
    let mut found = Vec::new();
    for cq in join.cqs().iter().filter(is_ours) {
        found.extend(overrun(cq));
        found.extend(asleep(join, facts, cq));
    }
    found
}

/// `CQ 7` or, where the id is not known, the program's address.
pub fn name_of(cq: &CqTrace) -> String {
    cq.restrack_id.map_or_else(|| format!("CQ {:#x}", cq.user_handle), |id| format!("CQ {id}"))
}

fn condition(name: &'static str, cq: &CqTrace, sentence: String) -> Condition {
    Condition { name, tgid: cq.tgid, cq: cq.restrack_id, sentence }
}

fn overrun(cq: &CqTrace) -> Option<Condition> {
    let times = cq.errors.iter().filter(|(_, event)| *event == CQ_ERR).count();
    let depth = cq.depth.map_or_else(String::new, |depth| format!(" (it holds {depth})"));
    (times > 0).then(|| {
        let sentence = format!(
            "{}: a completion found no room in the queue{depth}; the driver reported it {times} times. Completions are lost, and no event comes \
             for them: who waits for one sleeps for ever. The program must poll the CQ before it posts more than fits.",
            name_of(cq)
        );
        condition(OVERRUN, cq, sentence)
    })
}

fn asleep(join: &Join, facts: &TraceFacts, cq: &CqTrace) -> Option<Condition> {
    let process = facts.processes.iter().find(|process| process.tgid == cq.tgid);
    if cq.channel == 0 || cq.destroyed_ns.is_some() || process.is_some_and(|process| process.ended) {
        return None;
    }
    let on_channel: Vec<&CqTrace> = join.cqs().iter().filter(|other| other.channel == cq.channel && other.destroyed_ns.is_none()).collect();
    let waiting: Vec<u32> = {
        let mut threads: Vec<u32> = on_channel.iter().flat_map(|cq| cq.waiters.iter().chain(&cq.readers)).copied().collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    };
    let last_move_ns = on_channel.iter().map(|cq| cq.last_event_ns.max(cq.last_cqe_ns.unwrap_or(0))).max().unwrap_or(0);
    let quiet_ns = facts.end_ns.saturating_sub(last_move_ns);
    if waiting.is_empty() || !waiting.iter().all(|thread| join.is_asleep(*thread)) || quiet_ns < QUIET_NS {
        return None;
    }
    let since = format!("{:.1} s", quiet_ns as f64 / 1e9);
    let threads = waiting.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let in_channel = cq.events.saturating_sub(cq.outcomes.all());
    if in_channel > 0 {
        let sentence = format!(
            "{in_channel} events of {} lie unread in its channel, and thread {threads} sleeps on something else since {since}",
            name_of(cq)
        );
        return Some(condition(UNREAD_EVENTS, cq, sentence));
    }
    let unread = facts.unread.iter().find(|it| it.cq == cq.cq).map(|it| it.cqes).filter(|cqes| *cqes > 0)?;
    let full = match cq.depth {
        Some(depth) if unread >= depth => ", so it is full",
        _ => "",
    };
    let armed = if cq.is_armed {
        "It was armed when they lay there already: only a further completion raises an event."
    } else {
        "It is not armed: no event will come for them."
    };
    let what = format!("thread {threads} sleeps since {since}, and {unread} CQEs lie unread in {}{full}. {armed}", name_of(cq));
    let last = on_channel.iter().max_by_key(|other| other.last_event_ns).filter(|other| other.cq != cq.cq && other.events > 0);
    Some(match last {
        Some(other) => {
            let sentence = format!(
                "{what} The channel serves {} CQs, and its last event was for {}: the program must poll the CQ that the event names, and every \
                 CQ of the channel once more after arming it.",
                on_channel.len(),
                name_of(other)
            );
            condition(OTHER_CQ, cq, sentence)
        }
        None => condition(ASLEEP, cq, format!("{what} The program must poll until the CQ is empty, and once more after arming it.")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::manifest::{TracedProcess, UnreadCqes};
    use ebpf_probes::{Body, CompHandler, CqError, CqPost, Event, EventRead, Header, Switch};

    const PID: u32 = 100;
    const SEND: u64 = 0xa0;
    const RECEIVE: u64 = 0xb0;

    fn at(ts_ns: u64, body: Body) -> Event {
        Event { header: Header { ts_ns, pid: PID, tgid: PID, ..Header::default() }, body }
    }

    fn handler(cq: u64, ts_ns: u64) -> Event {
        let restrack_id = cq as u32;
        at(ts_ns, Body::CompHandler(CompHandler { cq, user_handle: cq, channel: 0xcc, owner_tgid: PID, restrack_id }))
    }

    fn read(ts_ns: u64) -> Event {
        at(ts_ns, Body::EventRead(EventRead { channel: 0xcc, result: 8 }))
    }

    /// Both CQs of a channel had an event, a CQE came to the first one, the thread sleeps.
    fn asleep(unread: u32, end_ns: u64) -> Vec<Condition> {
        let mut join = Join::default();
        let sleeps = Switch { prev_pid: PID, next_pid: 0, ..Switch::default() };
        let post = CqPost { cq: SEND, ..CqPost::default() };
        let events =
            [handler(SEND, 10), read(11), handler(RECEIVE, 12), read(13), at(14, Body::CqPost(post)), at(15, Body::SchedSwitch(sleeps))];
        events.iter().for_each(|event| join.event(event));
        let processes = vec![TracedProcess { tgid: PID, ..TracedProcess::default() }];
        find(&join, &TraceFacts { end_ns, processes, unread: vec![UnreadCqes { cq: SEND, cqes: unread }], ..TraceFacts::default() })
    }

    #[test]
    fn a_thread_asleep_on_unread_completions_is_named_with_the_cq_whose_event_came() {
        let found = asleep(1, 2 * QUIET_NS);
        assert_eq!(found.iter().map(|it| (it.name, it.cq)).collect::<Vec<_>>(), [(OTHER_CQ, Some(SEND as u32))]);
        assert!(
            found[0].sentence.contains("last event was for CQ 176") && found[0].sentence.contains("thread 100"),
            "{}",
            found[0].sentence
        );
        assert_eq!(asleep(0, 2 * QUIET_NS), [], "nothing lies unread");
        assert_eq!(asleep(1, QUIET_NS / 2), [], "it has not slept for long");
    }

    #[test]
    fn an_overrun_is_named_and_other_events_of_a_cq_are_not_one() {
        let error = |event| at(20, Body::CqError(CqError { cq: SEND, user_handle: SEND, owner_tgid: PID, event }));
        let found = |event| {
            let mut join = Join::default();
            [handler(SEND, 10), error(event)].iter().for_each(|it| join.event(it));
            find(&join, &TraceFacts { processes: vec![TracedProcess { tgid: PID, ..TracedProcess::default() }], ..TraceFacts::default() })
        };
        assert_eq!(found(CQ_ERR).iter().map(|it| it.name).collect::<Vec<_>>(), [OVERRUN]);
        assert_eq!(found(5), []);
    }
}
