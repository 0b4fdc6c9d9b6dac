//! The rules of the trace on hand-made records.
use super::*;
use crate::trace::cq::Outcomes;
use ebpf_probes::{CqArm, CqDestroy, CqPost, Header, Switch, Wake};

const PID: u32 = 100;
const OTHER: u32 = 101;
const CQ: u64 = 0xc0;
const CHANNEL: u64 = 0xcc;

fn at(cpu: u32, ts_ns: u64, pid: u32, body: Body) -> Event {
    Event { header: Header { cpu, ts_ns, pid, tgid: PID, ..Header::default() }, body }
}

fn handler_of(cq: u64, cpu: u32, ts_ns: u64) -> Event {
    let user_handle = cq + 1;
    at(cpu, ts_ns, 7, Body::CompHandler(CompHandler { cq, user_handle, channel: CHANNEL, owner_tgid: PID, restrack_id: 3 }))
}

fn handler(cpu: u32, ts_ns: u64) -> Event {
    handler_of(CQ, cpu, ts_ns)
}

fn waking(cpu: u32, ts_ns: u64, target_pid: u32) -> Event {
    at(cpu, ts_ns, 7, Body::SchedWaking(Wake { target_pid, target_cpu: u32::MAX }))
}

fn wakeup(cpu: u32, ts_ns: u64) -> Event {
    at(cpu, ts_ns, 7, Body::SchedWakeup(Wake { target_pid: PID, target_cpu: u32::MAX }))
}

fn switch(cpu: u32, ts_ns: u64, prev_pid: u32, next_pid: u32, preempted: u32) -> Event {
    at(cpu, ts_ns, prev_pid, Body::SchedSwitch(Switch { prev_pid, next_pid, preempted, ..Switch::default() }))
}

fn read_on(channel: u64, cpu: u32, ts_ns: u64, thread: u32) -> Event {
    at(cpu, ts_ns, thread, Body::EventRead(EventRead { channel, result: 8 }))
}

fn read(cpu: u32, ts_ns: u64) -> Event {
    read_on(CHANNEL, cpu, ts_ns, PID)
}

fn joined(events: &[Event]) -> Join {
    let mut join = Join::default();
    events.iter().for_each(|event| join.event(event));
    join.end();
    join
}

fn traced(events: &[Event]) -> CqTrace {
    joined(events).cqs().first().expect("a CQ").clone()
}

fn max(cq: &CqTrace, stage: Stage) -> Option<u64> {
    cq.times(stage).max_ns()
}

#[test]
fn a_sleeper_is_followed_from_the_handler_to_its_read() {
    let cq = traced(&[switch(0, 5, PID, 0, 0), handler(1, 10), waking(1, 13, PID), wakeup(0, 20), switch(0, 30, 0, PID, 0), read(0, 34)]);
    assert_eq!((cq.events, cq.outcomes), (1, Outcomes { woken: 1, ..Outcomes::default() }));
    let stages =
        [Stage::HandlerToWaking, Stage::WakingToWakeup, Stage::WakeupToRun, Stage::HandlerToRun, Stage::RunToRead, Stage::HandlerToRead];
    assert_eq!(stages.map(|stage| max(&cq, stage)), [3, 7, 10, 20, 4, 24].map(Some));
    assert_eq!((cq.user_handle, cq.restrack_id, cq.waiters.len(), cq.readers.len()), (CQ + 1, Some(3), 1, 1));
}

#[test]
fn a_reader_on_its_cpu_needs_no_waking() {
    let cq = traced(&[switch(0, 5, 0, PID, 0), handler(0, 10), handler(1, 12), read(0, 15), read(0, 19)]);
    assert_eq!(cq.outcomes, Outcomes { running: 2, ..Outcomes::default() });
    assert_eq!((max(&cq, Stage::HandlerToRun), max(&cq, Stage::HandlerToRead)), (None, Some(7)));
}

#[test]
fn a_second_event_joins_the_wake_up_of_the_first() {
    let cq = traced(&[
        switch(0, 5, PID, 0, 0),
        handler(1, 10),
        waking(1, 11, PID),
        handler(1, 15),
        wakeup(1, 16),
        switch(0, 30, 0, PID, 0),
        read(0, 31),
        read(0, 32),
    ]);
    assert_eq!(cq.outcomes, Outcomes { woken: 1, runnable: 1, ..Outcomes::default() });
    assert_eq!(cq.times(Stage::HandlerToRun).n(), 2);
}

#[test]
fn a_preempted_reader_is_runnable() {
    let cq = traced(&[switch(0, 1, 0, PID, 0), switch(0, 5, PID, 7, 1), handler(0, 10), switch(0, 30, 7, PID, 0), read(0, 31)]);
    assert_eq!((cq.outcomes.runnable, max(&cq, Stage::HandlerToRun)), (1, Some(20)));
}

#[test]
fn a_waking_on_another_cpu_belongs_to_something_else() {
    let cq = traced(&[switch(0, 5, PID, 0, 0), handler(1, 10), waking(0, 13, PID), wakeup(0, 20), switch(0, 30, 0, PID, 0), read(0, 40)]);
    assert_eq!(cq.outcomes, Outcomes { elsewhere: 1, ..Outcomes::default() });
    assert_eq!(cq.times(Stage::HandlerToWaking).n(), 0);
}

#[test]
fn a_sleeper_that_runs_without_a_waking_is_incomplete() {
    let cq = traced(&[switch(0, 5, PID, 0, 0), handler(1, 10), switch(0, 30, 0, PID, 0), read(0, 40)]);
    assert_eq!((cq.outcomes.incomplete, cq.outcomes.complete(), cq.outcomes.due()), (1, 0, 1));
    // Woken, but its run was not seen.
    let cq = traced(&[switch(0, 5, PID, 0, 0), handler(1, 10), waking(1, 11, PID), read(0, 40)]);
    assert_eq!(cq.outcomes.incomplete, 1);
}

#[test]
fn an_event_that_nobody_reads_is_neither_complete_nor_incomplete() {
    let cq = traced(&[switch(0, 5, PID, 0, 0), handler(1, 10), waking(1, 11, PID)]);
    assert_eq!(cq.outcomes, Outcomes { unread: 1, ..Outcomes::default() });
    assert_eq!((cq.outcomes.due(), cq.outcomes.all()), (0, 1));
}

#[test]
fn a_thread_asleep_on_its_channel_proves_it_empty() {
    // The read of the first event was not seen (its probe was attached later): it must not shift those behind it.
    let cq = traced(&[
        handler(1, 10),
        switch(0, 20, PID, 0, 0),
        handler(1, 110),
        waking(1, 111, PID),
        wakeup(1, 112),
        switch(0, 120, 0, PID, 0),
        read(0, 125),
    ]);
    assert_eq!(cq.outcomes, Outcomes { woken: 1, unmatched: 1, ..Outcomes::default() });
    assert_eq!(max(&cq, Stage::HandlerToRead), Some(15));
}

#[test]
fn events_of_two_cqs_leave_their_channel_in_order() {
    let join = joined(&[switch(0, 5, 0, PID, 0), handler_of(0xa0, 1, 10), handler_of(0xb0, 1, 20), read(0, 25), read(0, 100)]);
    let maxima: Vec<_> = join.cqs().iter().map(|cq| (cq.user_handle, max(cq, Stage::HandlerToRead))).collect();
    assert_eq!(maxima, [(0xa1, Some(15)), (0xb1, Some(80))]);
}

#[test]
fn a_destroyed_cq_takes_its_events_along_and_its_address_is_free() {
    let gone = CqDestroy { cq: CQ, user_handle: CQ + 1, channel: CHANNEL, owner_tgid: PID, restrack_id: 3 };
    let next = CqCreate { cq: CQ, user_handle: 0x77, channel: CHANNEL, restrack_id: 4, depth: 16 };
    let join = joined(&[handler(1, 10), at(0, 20, PID, Body::CqDestroy(gone)), at(0, 30, PID, Body::CqCreate(next)), read(0, 40)]);
    assert_eq!((join.cqs().len(), join.early_reads), (2, 1));
    assert_eq!((join.cqs()[0].outcomes.discarded, join.cqs()[0].destroyed_ns), (1, Some(20)));
    assert_eq!((join.cqs()[1].depth, join.cqs()[1].created_ns, join.cqs()[1].tgid), (Some(16), Some(30), PID));
}

#[test]
fn a_read_that_began_before_the_probe_is_of_the_channel_that_woke_the_thread() {
    let cq = traced(&[
        switch(0, 5, PID, 0, 0),
        handler(1, 10),
        waking(1, 11, PID),
        wakeup(1, 12),
        switch(0, 20, 0, PID, 0),
        read_on(0, 0, 25, PID),
        handler(1, 30),
        read_on(0, 0, 35, PID),
    ]);
    assert_eq!(cq.outcomes, Outcomes { woken: 1, running: 1, ..Outcomes::default() });
}

#[test]
fn a_woken_thread_that_gets_nothing_does_not_take_the_event() {
    // Two threads sleep on the channel; both are woken, one gets the event.
    let cq = traced(&[
        switch(0, 5, PID, 0, 0),
        switch(1, 6, OTHER, 0, 0),
        handler(1, 10),
        waking(1, 11, OTHER),
        waking(1, 12, PID),
        switch(1, 20, 0, OTHER, 0),
        switch(0, 21, 0, PID, 0),
        read(0, 25),
        switch(1, 26, OTHER, 0, 0),
    ]);
    assert_eq!((cq.outcomes.woken, cq.waiters.len(), cq.readers.len()), (1, 2, 1));
}

#[test]
fn cqes_and_arming_are_counted_on_soft_roce() {
    let post = |ts_ns| at(0, ts_ns, 7, Body::CqPost(CqPost { cq: CQ, ..CqPost::default() }));
    let arm = |ts_ns, unread| at(0, ts_ns, PID, Body::CqArm(CqArm { cq: CQ, flags: 2, unread }));
    let cq = traced(&[handler(1, 10), arm(15, 0), arm(16, 2), handler(1, 17), post(18), post(19)]);
    assert_eq!((cq.cqes, cq.cqes_since_event, cq.arms, cq.arms_over_unread, cq.is_armed), (2, 2, 2, 1, false));
    assert!(cq.shows_cqes());
}

#[test]
fn a_listed_cq_is_the_one_of_its_first_event() {
    let mut join = Join::default();
    join.know(&KnownCq { tgid: PID, restrack_id: 3, depth: Some(500), device: "rxe0".into() });
    join.know(&KnownCq { tgid: PID, restrack_id: 9, depth: Some(1), device: "rxe0".into() });
    join.event(&handler(0, 10));
    assert_eq!((join.cqs().len(), join.cqs()[0].depth, join.cqs()[0].events), (2, Some(500), 1));
}
