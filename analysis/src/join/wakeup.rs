//! From the CQE to user space: the bottom half, the handler, the wake-up of the thread.
use super::context::same;
use super::facts::RunFacts;
use super::flags::Flag;
use super::joined::{Found, Joined};
use super::learned::Learned;
use super::shapes::{self, Path};
use super::window::{TASKLET, Window};
use crate::stages::Point;
use capture::Sample;
use ebpf_probes::{Body, CompHandler, Kind, Softirq, Switch};

/// K3/K4, K5, K6, K0, K7, K8, K9 and the return of the blocking read. Only where the thread read an event.
/// True when a milestone of the interrupt path is missing that could have been recorded.
pub fn event(joined: &mut Joined, window: &Window<'_>, sample: &Sample, facts: &RunFacts, learned: &Learned, found: Found) -> bool {
    let Found { cqe, handler, earlier_event } = found;
    let cqe_ns = cqe.map(|at| window.ts(at));
    if sample.wait_end_ns == 0 || cqe_ns.is_some_and(|ts| ts > sample.wait_end_ns) {
        return false;
    }
    if earlier_event {
        joined.chain.set(Point::WaitEnd, sample.wait_end_ns);
        return false;
    }
    joined.slept = match window.woken_in(facts.tid, sample.wait_begin_ns, sample.wait_end_ns) {
        Some(_) => true,
        None => !facts.records(Kind::SchedSwitch) && handler.is_some_and(|at| waking_after(window, at, facts).is_some()),
    };
    joined.chain.set(Point::WaitEnd, sample.wait_end_ns);
    let Some(handler) = handler.filter(|at| window.ts(*at) <= sample.wait_end_ns) else { return false };
    joined.chain.set(Point::Handler, window.ts(handler));
    let incomplete = match cqe {
        _ if !facts.rxe => shapes::join(&Path { window, facts, learned, begin_ns: sample.post_begin_ns, handler }, joined),
        Some(cqe) => {
            bottom_half(joined, window, facts, cqe, handler);
            false
        }
        None => false,
    };
    sharing(joined, window, facts, handler);
    wake_up(joined, window, sample, facts, handler);
    incomplete
}

/// K6, K0, K7, K8, K9.
fn wake_up(joined: &mut Joined, window: &Window<'_>, sample: &Sample, facts: &RunFacts, handler: usize) {
    let Some(waking) = waking_after(window, handler, facts).filter(|at| window.ts(*at) <= sample.wait_end_ns) else { return };
    joined.chain.set(Point::Waking, window.ts(waking));
    let wakeup = window
        .after(waking)
        .take_while(|(_, event)| event.header.ts_ns <= sample.wait_end_ns)
        .find(|(_, event)| matches!(event.body, Body::SchedWakeup(wake) if wake.target_pid == facts.tid))
        .map(|(at, _)| at);
    if let Some(at) = wakeup {
        joined.chain.set(Point::Wakeup, window.ts(at));
    }
    let Some(switch) = window.switch_in(facts.tid, window.ts(waking), sample.wait_end_ns).filter(|_| joined.slept) else {
        joined.flags.set_if(facts.records(Kind::SchedSwitch), Flag::WokenOnCpu);
        return read_return(joined, window, sample, facts, waking);
    };
    joined.chain.set(Point::SwitchIn, window.ts(switch));
    let header = window.events[switch].header;
    if let Body::SchedSwitch(Switch { prev_pid, prev_comm, .. }) = window.events[switch].body {
        joined.ran_before = Some((prev_pid, prev_comm));
        joined.flags.set_if(header.tgid == facts.tgid && prev_pid != facts.tid && prev_pid != 0, Flag::Observer);
    }
    let idle_exit = window
        .before(switch)
        .take_while(|(at, _)| *at > waking)
        .find(|(_, event)| event.header.cpu == header.cpu && matches!(event.body, Body::CpuIdleExit(_)));
    if let Some((at, _)) = idle_exit {
        let early = wakeup.is_some_and(|wakeup| at < wakeup);
        joined.chain.set(if early || wakeup.is_none() { Point::IdleExitEarly } else { Point::IdleExitLate }, window.ts(at));
        joined.idle_exit_cpu = Some(header.cpu);
    }
    read_return(joined, window, sample, facts, switch);
}

fn read_return(joined: &mut Joined, window: &Window<'_>, sample: &Sample, facts: &RunFacts, from: usize) {
    let read = window
        .after(from)
        .take_while(|(_, event)| event.header.ts_ns <= sample.wait_end_ns)
        .filter(|(_, event)| event.header.pid == facts.tid && matches!(event.body, Body::EventRead(read) if read.result > 0))
        .last();
    if let Some((at, _)) = read {
        joined.chain.set(Point::ReadReturn, window.ts(at));
    }
}

/// K6 has no key of its own: it is the wake-up of our thread that follows the handler call in the same context, before anything there
/// shows that the handler is over. A thread that calls the handler may be preempted in it (and on PREEMPT_RT wait for a lock).
fn waking_after(window: &Window<'_>, handler: usize, facts: &RunFacts) -> Option<usize> {
    let header = window.events[handler].header;
    for (at, event) in window.after(handler).filter(|(_, event)| same(&event.header, &header)) {
        match event.body {
            Body::SchedWaking(wake) if wake.target_pid == facts.tid => return Some(at),
            Body::CompHandler(_) | Body::SoftirqExit(_) | Body::TaskletEntry(_) | Body::WorkStart(_) => return None,
            Body::SchedSwitch(switch) if switch.preempted == 0 && !facts.threads.forced() => return None,
            _ => {}
        }
    }
    None
}

/// On rxe: the tasklet (or its softirq) between the CQE and the handler, and the thread that it was put off to.
fn bottom_half(joined: &mut Joined, window: &Window<'_>, facts: &RunFacts, cqe: usize, handler: usize) {
    let header = window.events[handler].header;
    let half = window
        .before(handler)
        .take_while(|(at, _)| *at > cqe)
        .filter(|(_, event)| same(&event.header, &header))
        .take_while(|(_, event)| !matches!(event.body, Body::SoftirqExit(Softirq { vec: TASKLET, .. })))
        .find(|(_, event)| matches!(event.body, Body::TaskletEntry(_) | Body::SoftirqEntry(Softirq { vec: TASKLET, .. })))
        .map(|(at, _)| at);
    let Some(half) = half else { return };
    joined.chain.set(Point::BottomHalf, window.ts(half));
    let (cause, half_header) = (window.events[cqe].header, window.events[half].header);
    joined.flags.set_if(cause.cpu == half_header.cpu && cause.pid != half_header.pid, Flag::BhDeferred);
    if let Some(thread) = facts.threads.softirq_entry(window, half, window.ts(cqe)) {
        joined.chain.set(Point::SoftirqWaking, window.ts(thread.waking));
        joined.chain.set(Point::SoftirqThread, window.ts(thread.switch));
    }
}

fn sharing(joined: &mut Joined, window: &Window<'_>, facts: &RunFacts, handler: usize) {
    let Body::CompHandler(CompHandler { cq, channel, .. }) = window.events[handler].body else { return };
    let other_cq =
        window.events.iter().any(|event| matches!(event.body, Body::CompHandler(body) if body.channel == channel && body.cq != cq));
    joined.flags.set_if(other_cq, Flag::MultiCqChannel);
    let header = window.events[handler].header;
    let other_waiter = window
        .after(handler)
        .filter(|(_, event)| same(&event.header, &header))
        .take_while(|(_, event)| matches!(event.body, Body::SchedWaking(_) | Body::SchedWakeup(_)))
        .any(|(_, event)| match event.body {
            Body::SchedWaking(wake) => wake.target_pid != facts.tid && facts.threads.duty(wake.target_pid).is_none(),
            _ => false,
        });
    joined.flags.set_if(other_waiter, Flag::MultiWaiter);
}
