//! From the CQE to user space: the bottom half, the handler, the wake-up of the thread; and what took the thread's CPU.
use super::chain::{Found, Joined, Preemption};
use super::flags::Flag;
use super::identity::Identity;
use super::window::{TASKLET, Window};
use crate::capture::Sample;
use crate::stages::Point;
use ebpf_probes::{Body, CompHandler, Kind, Softirq, Switch};

/// K3/K4, K5, K6, K0, K7, K8, K9 and the return of the blocking read. Only where the thread read an event.
pub fn event(joined: &mut Joined, window: &Window<'_>, sample: &Sample, identity: &Identity, found: Found) {
    let Found { cqe, handler, earlier_event } = found;
    let cqe_ns = cqe.map(|at| window.ts(at));
    if sample.wait_end_ns == 0 || cqe_ns.is_some_and(|ts| ts > sample.wait_end_ns) {
        return;
    }
    if earlier_event {
        joined.chain.set(Point::WaitEnd, sample.wait_end_ns);
        return;
    }
    let switch = window.switch_in(identity.tid, sample.wait_begin_ns, sample.wait_end_ns);
    joined.slept = match switch {
        Some(_) => true,
        None => !identity.records(Kind::SchedSwitch) && handler.is_some_and(|at| waking_after(window, at, identity.tid).is_some()),
    };
    joined.chain.set(Point::WaitEnd, sample.wait_end_ns);
    let Some(handler) = handler.filter(|at| window.ts(*at) <= sample.wait_end_ns) else { return };
    joined.chain.set(Point::Handler, window.ts(handler));
    bottom_half(joined, window, identity, cqe, handler, sample.post_begin_ns);
    sharing(joined, window, identity, handler);
    let Some(waking) = waking_after(window, handler, identity.tid).filter(|at| window.ts(*at) <= sample.wait_end_ns) else { return };
    joined.chain.set(Point::Waking, window.ts(waking));
    let wakeup = window
        .after(waking)
        .take_while(|(_, event)| event.header.ts_ns <= sample.wait_end_ns)
        .find(|(_, event)| matches!(event.body, Body::SchedWakeup(wake) if wake.target_pid == identity.tid))
        .map(|(at, _)| at);
    if let Some(at) = wakeup {
        joined.chain.set(Point::Wakeup, window.ts(at));
    }
    let Some(switch) = switch.filter(|at| *at > waking) else {
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

/// K6 has no key of its own: it is the wake-up of our thread that follows the handler call on the same CPU, before anything on
/// that CPU shows that the handler is over.
fn waking_after(window: &Window<'_>, handler: usize, tid: u32) -> Option<usize> {
    let cpu = window.events[handler].header.cpu;
    for (at, event) in window.after(handler).filter(|(_, event)| event.header.cpu == cpu) {
        match event.body {
            Body::SchedWaking(wake) if wake.target_pid == tid => return Some(at),
            Body::CompHandler(_) | Body::SchedSwitch(_) | Body::SoftirqExit(_) | Body::TaskletEntry(_) | Body::WorkStart(_) => return None,
            _ => {}
        }
    }
    None
}

/// The bottom half around the handler call: a tasklet or softirq on its CPU, after the CQE; on hardware also the driver's request
/// and the interrupt before it.
fn bottom_half(joined: &mut Joined, window: &Window<'_>, identity: &Identity, cqe: Option<usize>, handler: usize, begin_ns: u64) {
    let header = window.events[handler].header;
    let since = cqe.map_or(begin_ns, |at| window.ts(at));
    let here =
        || window.before(handler).take_while(|(_, event)| event.header.ts_ns >= since).filter(|(_, event)| event.header.cpu == header.cpu);
    let half = here()
        .take_while(|(_, event)| !matches!(event.body, Body::SoftirqExit(Softirq { vec: TASKLET, .. })))
        .find(|(at, event)| {
            cqe.is_none_or(|cqe| *at > cqe)
                && matches!(event.body, Body::TaskletEntry(_) | Body::SoftirqEntry(Softirq { vec: TASKLET, .. }))
        })
        .map(|(at, _)| at);
    if let Some(half) = half {
        joined.chain.set(Point::BottomHalf, window.ts(half));
        let cause = cqe.filter(|at| window.events[*at].header.cpu == header.cpu);
        joined.flags.set_if(cause.is_some_and(|at| window.events[at].header.pid != window.events[half].header.pid), Flag::BhDeferred);
    }
    if identity.rxe {
        return;
    }
    let before = half.unwrap_or(handler);
    let enqueue = here().find(|(at, event)| *at < before && matches!(event.body, Body::DriverEnqueue(_))).map(|(at, _)| at);
    let irq = here().find(|(at, event)| *at < enqueue.unwrap_or(before) && matches!(event.body, Body::IrqEntry(_))).map(|(at, _)| at);
    if let Some(at) = enqueue {
        joined.chain.set(Point::DriverEnqueue, window.ts(at));
    }
    match irq {
        Some(at) => joined.chain.set(Point::CompIrq, window.ts(at)),
        None => joined.flags.set_if(half.is_none() && identity.records(Kind::IrqEntry), Flag::NotIrq),
    }
}

fn sharing(joined: &mut Joined, window: &Window<'_>, identity: &Identity, handler: usize) {
    let Body::CompHandler(CompHandler { cq, channel, .. }) = window.events[handler].body else { return };
    let other_cq =
        window.events.iter().any(|event| matches!(event.body, Body::CompHandler(body) if body.channel == channel && body.cq != cq));
    joined.flags.set_if(other_cq, Flag::MultiCqChannel);
    let cpu = window.events[handler].header.cpu;
    let other_waiter = window
        .after(handler)
        .filter(|(_, event)| event.header.cpu == cpu)
        .take_while(|(_, event)| matches!(event.body, Body::SchedWaking(_) | Body::SchedWakeup(_)))
        .any(|(_, event)| matches!(event.body, Body::SchedWaking(wake) if wake.target_pid != identity.tid));
    joined.flags.set_if(other_waiter, Flag::MultiWaiter);
}

/// What took the CPU from the measured thread after the CQE was there (or, while polling, in the whole sample).
pub fn interference(joined: &mut Joined, window: &Window<'_>, sample: &Sample, identity: &Identity, cqe: Option<usize>) {
    let from_ns = joined.chain.get(Point::SwitchIn).or(cqe.map(|at| window.ts(at))).unwrap_or(sample.post_end_ns);
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
