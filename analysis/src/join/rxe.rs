//! From the post to the CQE: what rxe, the network device and the workers did for this sample.
use super::context::same;
use super::facts::RunFacts;
use super::flags::Flag;
use super::joined::Joined;
use super::threads::{Duty, Interrupt};
use super::window::{NET_RX, TASKLET, Window};
use crate::stages::Point;
use capture::Sample;
use ebpf_probes::{Body, Event, Kind, RxeRcv, RxeTask, RxeXmit, Softirq, Work, path};
use std::collections::BTreeSet;

/// R1, the requester's task, R2: from the post to the last packet of the request.
pub fn post(joined: &mut Joined, window: &Window<'_>, sample: &Sample, facts: &RunFacts, cqe: Option<usize>) {
    let chain = &mut joined.chain;
    let end = end_of(window, sample, cqe);
    let events = &window.events[..end];
    // It may even come after the CQE: looked for in the whole post.
    let entered = window.events.iter().position(|event| {
        (sample.post_begin_ns..=sample.post_end_ns).contains(&event.header.ts_ns)
            && matches!(event.body, Body::RxePost(_))
            && event.header.pid == facts.tid
    });
    if let Some(at) = entered {
        chain.set(Point::PostEnter, window.ts(at));
    }
    let Some(sent) = Sent::find(events, sample) else { return };
    chain.set(Point::Xmit, window.ts(sent.last_new));
    // The requester was running and found the WR in the queue before the doorbell came: R1 is no milestone then (see `sent_early`).
    joined.flags.set_if(entered.is_some_and(|at| at > sent.last_new), Flag::TaskBusy);
    if let Some(again) = sent.last_again {
        chain.set(Point::Rexmit, window.ts(again));
        joined.flags.set(Flag::Retransmit);
    }
    let after_ns = entered.map_or(sample.post_begin_ns, |at| window.ts(at));
    let task = task_before(window, sent.first, facts.qpn, |task| matches!(task, path::REQUESTER | path::SENDER))
        .filter(|at| window.ts(*at) >= after_ns);
    match task {
        Some(task) => {
            chain.set(Point::ReqStart, window.ts(task));
            if let Some(work) = work_before(window, task, after_ns) {
                chain.set(Point::ReqWork, window.ts(work));
                if let Some(queued) = queued_before(window, work, after_ns) {
                    chain.set(Point::ReqQueued, window.ts(queued));
                }
            }
        }
        None => joined.flags.set_if(facts.records(Kind::RxeTask), Flag::TaskBusy),
    }
    let sent_cpu = window.events[sent.last_new].header.cpu;
    let leaves = window
        .after(sent.last_again.unwrap_or(sent.last_new))
        .take_while(|(at, _)| *at < end)
        .find(|(_, event)| event.header.cpu == sent_cpu && matches!(event.body, Body::NetPacket(packet) if packet.direction == 1));
    if let Some((at, _)) = leaves {
        chain.set(Point::NetTx, window.ts(at));
    }
}

/// What is before the CQE or, without one, before the end of the sample.
fn end_of(window: &Window<'_>, sample: &Sample, cqe: Option<usize>) -> usize {
    cqe.unwrap_or_else(|| window.events.partition_point(|event| event.header.ts_ns <= sample.done_ns))
}

/// The packets of the request.
struct Sent {
    first: usize,
    last_new: usize,
    last_again: Option<usize>,
}

impl Sent {
    fn find(events: &[Event], sample: &Sample) -> Option<Sent> {
        let mut seen = BTreeSet::new();
        let mut sent: Option<Sent> = None;
        for (at, event) in events.iter().enumerate() {
            let Body::RxeXmit(RxeXmit { wr_id, qpn, psn, .. }) = event.body else { continue };
            if wr_id != sample.begin_wr_id || qpn != sample.qpn {
                continue;
            }
            let new = seen.insert(psn);
            match &mut sent {
                None => sent = Some(Sent { first: at, last_new: at, last_again: None }),
                Some(sent) if new && sent.last_again.is_none() => sent.last_new = at,
                Some(sent) => sent.last_again = Some(at),
            }
        }
        sent
    }
}

/// K1, NET_RX, R3, R4 and the task up to R6: from the packet that ends the sample to its CQE.
pub fn packet(joined: &mut Joined, window: &Window<'_>, sample: &Sample, facts: &RunFacts, cqe: Option<usize>) {
    let sent_ns = joined.chain.get(Point::Rexmit).or(joined.chain.get(Point::Xmit)).unwrap_or(sample.post_begin_ns);
    let end = end_of(window, sample, cqe);
    let received = window.before(end).take_while(|(_, event)| event.header.ts_ns >= sent_ns).find(
        |(_, event)| matches!(event.body, Body::RxeRcv(RxeRcv { qpn, path, .. }) if qpn == sample.qpn && path == facts.ending_path()),
    );
    let Some((rcv, _)) = received else { return };
    if cqe.is_none() && facts.has_cqe {
        // Without its CQE a packet may belong to anything: the packet is not claimed.
        return;
    }
    joined.chain.set(Point::Rcv, window.ts(rcv));
    if facts.same_kernel {
        joined.flags.set(Flag::Loopback);
    } else {
        arrival(joined, window, facts, rcv, sent_ns);
    }
    let task = match cqe {
        Some(cqe) => task_before(window, cqe, facts.qpn, |task| facts.is_ending_task(task)),
        None => window
            .after(rcv)
            .take_while(|(at, _)| *at < end)
            .find(|(_, event)| is_task(event, facts.qpn, |task| facts.is_ending_task(task)))
            .map(|(at, _)| at),
    };
    match task.filter(|task| *task > rcv) {
        Some(task) => {
            joined.chain.set(Point::RespStart, window.ts(task));
            let after_ns = window.ts(rcv);
            if let Some(work) = work_before(window, task, after_ns) {
                joined.chain.set(Point::RespWork, window.ts(work));
                if let Some(queued) = queued_before(window, work, after_ns) {
                    joined.chain.set(Point::RespQueued, window.ts(queued));
                }
                let deferred = matches!(window.events[work].body, Body::SoftirqEntry(_) | Body::TaskletEntry(_))
                    && window.events[work].header.pid != window.events[rcv].header.pid
                    && window.events[work].header.cpu == window.events[rcv].header.cpu;
                joined.flags.set_if(deferred, Flag::BhDeferred);
                if let Some(thread) = facts.threads.softirq_entry(window, work, after_ns) {
                    joined.chain.set(Point::RespSoftirqWaking, window.ts(thread.waking));
                    joined.chain.set(Point::RespSoftirqThread, window.ts(thread.switch));
                }
            }
        }
        None => joined.flags.set_if(facts.records(Kind::RxeTask), Flag::TaskBusy),
    }
}

/// How the packet came in: with an interrupt and a softirq of its own, or by an earlier NAPI poll. The end of a softirq may not be
/// recorded; the last one that began on the packet's CPU is the one it came in. Where interrupts or softirqs run in threads, the
/// wake-ups of these threads are stages of their own.
fn arrival(joined: &mut Joined, window: &Window<'_>, facts: &RunFacts, rcv: usize, sent_ns: u64) {
    let Body::RxeRcv(RxeRcv { skb, .. }) = window.events[rcv].body else { return };
    let enters = window
        .before(rcv)
        .take_while(|(_, event)| event.header.ts_ns >= sent_ns)
        .find(|(_, event)| matches!(event.body, Body::NetPacket(packet) if packet.direction == 0 && packet.skb == skb));
    if let Some((at, _)) = enters {
        joined.chain.set(Point::NetRx, window.ts(at));
    }
    let threads = &facts.threads;
    let softirq = match threads.duty(window.events[rcv].header.pid) {
        // A thread that polls devices: there is no softirq around it.
        Some(Duty::Napi) => rcv,
        _ => match window.open_net_rx(rcv) {
            Some(Some(at)) if window.ts(at) >= sent_ns => at,
            _ => return joined.flags.set(Flag::NapiPolled),
        },
    };
    if softirq != rcv {
        joined.chain.set(Point::NetSoftirq, window.ts(softirq));
    }
    let cause = match threads.softirq_entry(window, softirq, sent_ns) {
        Some(thread) => {
            joined.chain.set(Point::NetSoftirqWaking, window.ts(thread.waking));
            joined.chain.set(Point::NetSoftirqThread, window.ts(thread.switch));
            thread.waking
        }
        None => softirq,
    };
    let put_off = matches!(threads.duty(window.events[softirq].header.pid), Some(Duty::Softirq));
    let in_irq_thread = matches!(threads.duty(window.events[cause].header.pid), Some(Duty::Irq(_)));
    let is_net_rx = |event: &Event| {
        matches!(event.body, Body::SoftirqExit(Softirq { vec: NET_RX, .. }) | Body::SoftirqEntry(Softirq { vec: NET_RX, .. }))
    };
    let header = window.events[cause].header;
    let interrupt = if in_irq_thread {
        let found = threads.interrupt(window, cause, None, sent_ns);
        // One softirq of that thread has served the interrupt already: this one began without another.
        let served =
            |entry: usize| window.before(cause).take_while(|(at, _)| *at > entry).any(|(_, it)| same(&it.header, &header) && is_net_rx(it));
        if found.entry.is_some_and(served) { Interrupt::default() } else { found }
    } else {
        // An interrupt within the softirq before (of a busy device, say) is served by this one; one before that began was served by it.
        let mut earlier = window
            .before(cause)
            .take_while(|(_, event)| event.header.ts_ns >= sent_ns)
            .filter(|(_, event)| event.header.cpu == header.cpu)
            .take_while(|(_, event)| !matches!(event.body, Body::SoftirqEntry(Softirq { vec: NET_RX, .. })));
        Interrupt { entry: earlier.find(|(_, event)| matches!(event.body, Body::IrqEntry(_))).map(|(at, _)| at), thread: None }
    };
    if let Some(thread) = interrupt.thread {
        joined.chain.set(Point::IrqWaking, window.ts(thread.waking));
        joined.chain.set(Point::IrqThread, window.ts(thread.switch));
        joined.flags.set(Flag::Rt);
    }
    match interrupt.entry {
        Some(at) => {
            joined.chain.set(Point::Irq, window.ts(at));
            let elsewhere = !in_irq_thread && softirq != rcv && !same(&window.events[at].header, &window.events[softirq].header);
            joined.flags.set_if(put_off || elsewhere, Flag::BhDeferred);
        }
        None => {
            joined.flags.set(Flag::NapiPolled);
            joined.flags.set_if(put_off, Flag::BhDeferred);
        }
    }
}

fn is_task(event: &Event, our_qpn: u32, is_right: impl Fn(u32) -> bool) -> bool {
    matches!(event.body, Body::RxeTask(RxeTask { qpn, path, .. }) if (qpn == our_qpn || qpn == u32::MAX) && is_right(path))
}

/// The task in whose run the event at `at` happened: the last start of one on the same CPU in the same thread.
fn task_before(window: &Window<'_>, at: usize, qpn: u32, is_right: impl Fn(u32) -> bool) -> Option<usize> {
    let header = window.events[at].header;
    window.before(at).find(|(_, event)| same(&event.header, &header) && is_task(event, qpn, &is_right)).map(|(at, _)| at)
}

/// The work item, tasklet or tasklet softirq in which the task at `task` runs, begun after `after_ns`.
fn work_before(window: &Window<'_>, task: usize, after_ns: u64) -> Option<usize> {
    let header = window.events[task].header;
    window
        .before(task)
        .take_while(|(_, event)| event.header.ts_ns >= after_ns)
        .filter(|(_, event)| same(&event.header, &header))
        .take_while(|(_, event)| !matches!(event.body, Body::SoftirqExit(_)))
        .find(|(_, event)| {
            matches!(event.body, Body::WorkStart(_) | Body::TaskletEntry(_) | Body::SoftirqEntry(Softirq { vec: TASKLET, .. }))
        })
        .map(|(at, _)| at)
}

/// The queueing of the work item that starts at `start`, after `after_ns`.
fn queued_before(window: &Window<'_>, start: usize, after_ns: u64) -> Option<usize> {
    let Body::WorkStart(Work { work, .. }) = window.events[start].body else { return None };
    window
        .before(start)
        .take_while(|(_, event)| event.header.ts_ns >= after_ns)
        .find(|(_, event)| matches!(event.body, Body::WorkQueue(queued) if queued.work == work))
        .map(|(at, _)| at)
}
