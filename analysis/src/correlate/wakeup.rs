//! From the CQE to user space: the bottom half, the handler, the wake-up of the thread; and what took the thread's CPU.
use super::chain::{Found, Joined, Preemption};
use super::context::same;
use super::flags::Flag;
use super::hardware::Path;
use super::identity::Identity;
use super::learned::Learned;
use super::window::{TASKLET, Window};
use crate::capture::Sample;
use crate::stages::Point;
use ebpf_probes::{Body, CompHandler, Kind, Softirq, Switch};

/// K3/K4, K5, K6, K0, K7, K8, K9 and the return of the blocking read. Only where the thread read an event.
/// True when a milestone of the interrupt path is missing that could have been recorded.
pub fn event(joined: &mut Joined, window: &Window<'_>, sample: &Sample, identity: &Identity, learned: &Learned, found: Found) -> bool {
    let Found { cqe, handler, earlier_event } = found;
    let cqe_ns = cqe.map(|at| window.ts(at));
    if sample.wait_end_ns == 0 || cqe_ns.is_some_and(|ts| ts > sample.wait_end_ns) {
        return false;
    }
    if earlier_event {
        joined.chain.set(Point::WaitEnd, sample.wait_end_ns);
        return false;
    }
    joined.slept = match window.woken_in(identity.tid, sample.wait_begin_ns, sample.wait_end_ns) {
        Some(_) => true,
        None => !identity.records(Kind::SchedSwitch) && handler.is_some_and(|at| waking_after(window, at, identity).is_some()),
    };
    joined.chain.set(Point::WaitEnd, sample.wait_end_ns);
    let Some(handler) = handler.filter(|at| window.ts(*at) <= sample.wait_end_ns) else { return false };
    joined.chain.set(Point::Handler, window.ts(handler));
    let incomplete = match cqe {
        _ if !identity.rxe => Path { window, identity, learned, begin_ns: sample.post_begin_ns, handler }.join(joined),
        Some(cqe) => {
            bottom_half(joined, window, identity, cqe, handler);
            false
        }
        None => false,
    };
    sharing(joined, window, identity, handler);
    wake_up(joined, window, sample, identity, handler);
    incomplete
}

/// K6, K0, K7, K8, K9.
fn wake_up(joined: &mut Joined, window: &Window<'_>, sample: &Sample, identity: &Identity, handler: usize) {
    let Some(waking) = waking_after(window, handler, identity).filter(|at| window.ts(*at) <= sample.wait_end_ns) else { return };
    joined.chain.set(Point::Waking, window.ts(waking));
    let wakeup = window
        .after(waking)
        .take_while(|(_, event)| event.header.ts_ns <= sample.wait_end_ns)
        .find(|(_, event)| matches!(event.body, Body::SchedWakeup(wake) if wake.target_pid == identity.tid))
        .map(|(at, _)| at);
    if let Some(at) = wakeup {
        joined.chain.set(Point::Wakeup, window.ts(at));
    }
    let Some(switch) = window.switch_in(identity.tid, window.ts(waking), sample.wait_end_ns).filter(|_| joined.slept) else {
        joined.flags.set_if(identity.records(Kind::SchedSwitch), Flag::WokenOnCpu);
        return read_return(joined, window, sample, identity, waking);
    };
    joined.chain.set(Point::SwitchIn, window.ts(switch));
    let header = window.events[switch].header;
    if let Body::SchedSwitch(Switch { prev_pid, prev_comm, .. }) = window.events[switch].body {
        joined.culprit.before = Some((prev_pid, prev_comm));
        joined.flags.set_if(header.tgid == identity.tgid && prev_pid != identity.tid && prev_pid != 0, Flag::Observer);
    }
    let idle_exit = window
        .before(switch)
        .take_while(|(at, _)| *at > waking)
        .find(|(_, event)| event.header.cpu == header.cpu && matches!(event.body, Body::CpuIdleExit(_)));
    if let Some((at, _)) = idle_exit {
        let early = wakeup.is_some_and(|wakeup| at < wakeup);
        joined.chain.set(if early || wakeup.is_none() { Point::IdleExitEarly } else { Point::IdleExitLate }, window.ts(at));
        joined.culprit.idle_exit_cpu = Some(header.cpu);
    }
    read_return(joined, window, sample, identity, switch);
}

fn read_return(joined: &mut Joined, window: &Window<'_>, sample: &Sample, identity: &Identity, from: usize) {
    let read = window
        .after(from)
        .take_while(|(_, event)| event.header.ts_ns <= sample.wait_end_ns)
        .filter(|(_, event)| event.header.pid == identity.tid && matches!(event.body, Body::EventRead(read) if read.result > 0))
        .last();
    if let Some((at, _)) = read {
        joined.chain.set(Point::ReadReturn, window.ts(at));
    }
}

/// K6 has no key of its own: it is the wake-up of our thread that follows the handler call in the same context, before anything there
/// shows that the handler is over. A thread that calls the handler may be preempted in it (and on PREEMPT_RT wait for a lock).
fn waking_after(window: &Window<'_>, handler: usize, identity: &Identity) -> Option<usize> {
    let header = window.events[handler].header;
    for (at, event) in window.after(handler).filter(|(_, event)| same(&event.header, &header)) {
        match event.body {
            Body::SchedWaking(wake) if wake.target_pid == identity.tid => return Some(at),
            Body::CompHandler(_) | Body::SoftirqExit(_) | Body::TaskletEntry(_) | Body::WorkStart(_) => return None,
            Body::SchedSwitch(switch) if switch.preempted == 0 && !identity.threads.forced() => return None,
            _ => {}
        }
    }
    None
}

/// On rxe: the tasklet (or its softirq) between the CQE and the handler, and the thread that it was put off to.
fn bottom_half(joined: &mut Joined, window: &Window<'_>, identity: &Identity, cqe: usize, handler: usize) {
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
    if let Some(thread) = identity.threads.softirq_entry(window, half, window.ts(cqe)) {
        joined.chain.set(Point::SoftirqWaking, window.ts(thread.waking));
        joined.chain.set(Point::SoftirqThread, window.ts(thread.switch));
    }
}

fn sharing(joined: &mut Joined, window: &Window<'_>, identity: &Identity, handler: usize) {
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
            Body::SchedWaking(wake) => wake.target_pid != identity.tid && identity.threads.role(wake.target_pid).is_none(),
            _ => false,
        });
    joined.flags.set_if(other_waiter, Flag::MultiWaiter);
}

/// What took the CPU from the measured thread after the CQE was there (or, while polling, in the whole sample).
pub fn interference(joined: &mut Joined, window: &Window<'_>, sample: &Sample, identity: &Identity, cqe: Option<usize>) {
    // A sleep is no loss of the CPU: where its end is not known, only what comes after the read counts.
    let otherwise = || if joined.slept { sample.wait_end_ns } else { cqe.map_or(sample.post_end_ns, |at| window.ts(at)) };
    let from_ns = joined.chain.get(Point::SwitchIn).unwrap_or_else(otherwise);
    let mut cpu = None;
    for (at, event) in window.events.iter().enumerate().filter(|(_, event)| event.header.ts_ns <= sample.done_ns) {
        let time = event.header.ts_ns;
        match event.body {
            Body::SchedSwitch(Switch { prev_pid, next_pid, .. }) if prev_pid == identity.tid && time > from_ns => {
                let polling = sample.wait_end_ns == 0 || time > sample.wait_end_ns || joined.slept;
                if polling && joined.culprit.preempted_by.is_none() {
                    let back = window.switch_in(identity.tid, time, sample.done_ns);
                    let comm = back.and_then(|back| match window.events[back].body {
                        Body::SchedSwitch(switch) if switch.prev_pid == next_pid => Some(switch.prev_comm),
                        _ => None,
                    });
                    let away_ns = back.map(|back| window.ts(back).saturating_sub(time));
                    let own = back.is_some_and(|back| comm.is_some() && next_pid != 0 && window.events[back].header.tgid == identity.tgid);
                    joined.flags.set_if(own, Flag::Observer);
                    joined.culprit.preempted_by = Some(Preemption { pid: next_pid, comm, away_ns });
                    joined.flags.set(Flag::ReaderPreempted);
                }
            }
            Body::SchedSwitch(Switch { next_pid, .. }) if next_pid == identity.tid => cpu = Some(event.header.cpu),
            Body::RxePost(_) if event.header.pid == identity.tid => cpu = cpu.or(Some(event.header.cpu)),
            Body::IrqEntry(_) if time > from_ns && cpu == Some(window.events[at].header.cpu) => joined.culprit.irqs += 1,
            Body::SoftirqEntry(_) if time > from_ns && cpu == Some(window.events[at].header.cpu) => joined.culprit.softirqs += 1,
            _ => {}
        }
    }
}

/// The thread left its CPU in the blocking read and its return is not recorded: a switch was lost.
pub fn switched_out_without_return(window: &Window<'_>, sample: &Sample, identity: &Identity) -> bool {
    if sample.wait_end_ns == 0 || !identity.records(Kind::SchedSwitch) {
        return false;
    }
    let mut away = false;
    for event in window.events.iter().filter(|event| (sample.wait_begin_ns..=sample.wait_end_ns).contains(&event.header.ts_ns)) {
        if let Body::SchedSwitch(Switch { prev_pid, next_pid, .. }) = event.body {
            away = (away || prev_pid == identity.tid) && next_pid != identity.tid;
        }
    }
    away
}
