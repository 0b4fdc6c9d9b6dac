//! The measured thread lost its CPU: after its completion was there, or in its blocking read without a return on record.
use super::facts::RunFacts;
use super::flags::Flag;
use super::joined::Joined;
use super::window::Window;
use crate::stages::Point;
use capture::Sample;
use ebpf_probes::{Body, Kind, Switch};

/// Did the measured thread lose its CPU after the CQE was there (or, while polling, in the whole sample), and to a thread of our own?
pub fn of_reader(joined: &mut Joined, window: &Window<'_>, sample: &Sample, facts: &RunFacts, cqe: Option<usize>) {
    // A sleep is no loss of the CPU: where its end is not known, only what comes after the read counts.
    let otherwise = || if joined.slept { sample.wait_end_ns } else { cqe.map_or(sample.post_end_ns, |at| window.ts(at)) };
    let from_ns = joined.chain.get(Point::SwitchIn).unwrap_or_else(otherwise);
    let lost = window.events.iter().find_map(|event| match event.body {
        Body::SchedSwitch(Switch { prev_pid, next_pid, .. }) if prev_pid == facts.tid => {
            let time = event.header.ts_ns;
            let polling = sample.wait_end_ns == 0 || time > sample.wait_end_ns || joined.slept;
            (time > from_ns && time <= sample.done_ns && polling).then_some((time, next_pid))
        }
        _ => None,
    });
    let Some((time, next_pid)) = lost else { return };
    joined.flags.set(Flag::ReaderPreempted);
    // The name of a thread is known where it was the one that left when the measured thread came back.
    let back = window.switch_in(facts.tid, time, sample.done_ns).map(|at| &window.events[at]);
    let own = back.is_some_and(|event| {
        matches!(event.body, Body::SchedSwitch(switch) if switch.prev_pid == next_pid) && next_pid != 0 && event.header.tgid == facts.tgid
    });
    joined.flags.set_if(own, Flag::Observer);
}

/// The thread left its CPU in the blocking read and its return is not recorded: a switch was lost.
pub fn is_return_lost(window: &Window<'_>, sample: &Sample, facts: &RunFacts) -> bool {
    if sample.wait_end_ns == 0 || !facts.records(Kind::SchedSwitch) {
        return false;
    }
    let mut away = false;
    for event in window.events.iter().filter(|event| (sample.wait_begin_ns..=sample.wait_end_ns).contains(&event.header.ts_ns)) {
        if let Body::SchedSwitch(Switch { prev_pid, next_pid, .. }) = event.body {
            away = (away || prev_pid == facts.tid) && next_pid != facts.tid;
        }
    }
    away
}
