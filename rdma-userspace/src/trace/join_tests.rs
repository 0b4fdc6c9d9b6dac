//! The rules of the trace on hand-made records.

use ebpf_probes::{CqPost, Header, Switch, Wake};

use super::*;

const PID: u32 = 100;
const CQ: u64 = 0xc0;

fn at(cpu: u32, ts_ns: u64, body: Body) -> Event {
    Event { header: Header { cpu, ts_ns, ..Header::default() }, body }
}

fn handler(cpu: u32, ts_ns: u64) -> Event {
    at(cpu, ts_ns, Body::CompHandler(CompHandler { cq: CQ, user_handle: 0x55, channel: 0xcc, owner_tgid: PID, restrack_id: 3 }))
}

fn waking(cpu: u32, ts_ns: u64, target_pid: u32) -> Event {
    at(cpu, ts_ns, Body::SchedWaking(Wake { target_pid, target_cpu: u32::MAX }))
}

fn wakeup(cpu: u32, ts_ns: u64) -> Event {
    at(cpu, ts_ns, Body::SchedWakeup(Wake { target_pid: PID, target_cpu: u32::MAX }))
}

fn switch(cpu: u32, ts_ns: u64, prev_pid: u32, next_pid: u32, preempted: u32) -> Event {
    at(cpu, ts_ns, Body::SchedSwitch(Switch { prev_pid, next_pid, preempted, ..Switch::default() }))
}

fn traced(events: &[Event]) -> CqTrace {
    let mut join = Join::new(PID, &[PID]);
    for event in events {
        join.event(event);
    }
    join.finish().pop().expect("one CQ")
}

#[test]
fn a_sleeper_is_followed_from_the_handler_to_its_run() {
    let cq = traced(&[switch(0, 5, PID, 0, 0), handler(1, 10), waking(1, 13, PID), wakeup(0, 20), switch(0, 30, 0, PID, 0)]);
    assert_eq!((cq.events, cq.woken, cq.running, cq.unresolved), (1, 1, 0, 0));
    assert_eq!((cq.handler_to_waking.max(), cq.waking_to_wakeup.max(), cq.wakeup_to_run.max(), cq.handler_to_run.max()), (3, 7, 10, 20));
    assert_eq!((cq.user_handle, cq.restrack_id), (0x55, Some(3)));
}

#[test]
fn a_waiter_on_its_cpu_needs_no_waking() {
    let cq = traced(&[switch(0, 5, 0, PID, 0), handler(0, 10), handler(1, 12)]);
    assert_eq!((cq.events, cq.running, cq.handler_to_run.len()), (2, 2, 0));
}

#[test]
fn a_second_event_joins_the_wake_up_of_the_first() {
    let cq =
        traced(&[switch(0, 5, PID, 0, 0), handler(1, 10), waking(1, 11, PID), handler(1, 15), wakeup(1, 16), switch(0, 30, 0, PID, 0)]);
    assert_eq!((cq.events, cq.woken, cq.runnable, cq.unresolved), (2, 1, 1, 0));
    assert_eq!((cq.handler_to_run.max(), cq.handler_to_run.min()), (20, 15));
}

#[test]
fn a_preempted_waiter_is_runnable() {
    let cq = traced(&[switch(0, 1, 0, PID, 0), switch(0, 5, PID, 7, 1), handler(0, 10), switch(0, 30, 7, PID, 0)]);
    assert_eq!((cq.runnable, cq.handler_to_run.max()), (1, 20));
}

#[test]
fn a_waking_on_another_cpu_belongs_to_something_else() {
    let cq = traced(&[switch(0, 5, PID, 0, 0), handler(1, 10), waking(0, 13, PID), wakeup(0, 20), switch(0, 30, 0, PID, 0)]);
    assert_eq!((cq.events, cq.woken, cq.unresolved, cq.handler_to_run.len()), (1, 0, 1, 0));
}

#[test]
fn an_event_that_never_runs_is_unresolved_and_not_zero() {
    let cq = traced(&[switch(0, 5, PID, 0, 0), handler(1, 10), waking(1, 11, PID)]);
    assert_eq!((cq.events, cq.woken, cq.unresolved, cq.handler_to_run.len()), (1, 0, 1, 0));
}

#[test]
fn other_processes_are_left_out_and_cqes_after_the_last_event_counted() {
    let mut foreign = handler(0, 8);
    if let Body::CompHandler(it) = &mut foreign.body {
        it.owner_tgid = 999;
        it.cq = 0xdd;
    }
    let post = |ts_ns| at(0, ts_ns, Body::CqPost(CqPost { cq: CQ, ..CqPost::default() }));
    let cq = traced(&[foreign, switch(0, 9, 0, PID, 0), handler(1, 10), post(11), post(12)]);
    assert_eq!((cq.events, cq.cqes, cq.cqes_since_event, cq.last_cqe_ns), (1, 2, 2, Some(12)));
}

#[test]
fn an_older_look_at_a_thread_does_not_undo_a_newer_switch() {
    let mut join = Join::new(PID, &[PID]);
    join.event(&switch(0, 50, 0, PID, 0));
    join.set_running(PID, Some(false), 40);
    join.event(&handler(1, 60));
    assert_eq!(join.finish()[0].running, 1);
}
