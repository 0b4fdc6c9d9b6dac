//! The sweep against made-up events whose truth is known.
use super::*;
use ebpf_probes::{Header, Irq, PageFault, Softirq, Switch, Timer};
use proptest::prelude::*;

const TID: u32 = 100;
const HOG: u32 = 321;

fn sample(begin_ns: u64, done_ns: u64) -> Sample {
    Sample { post_begin_ns: begin_ns, post_end_ns: begin_ns + 1, done_ns, ..Sample::default() }
}

fn at(ts_ns: u64, body: Body) -> Event {
    on(0, TID, ts_ns, body)
}

fn on(cpu: u32, pid: u32, ts_ns: u64, body: Body) -> Event {
    Event { header: Header { cpu, ts_ns, pid, tgid: pid, ..Header::default() }, body }
}

fn irq(irq: u32) -> Irq {
    Irq { irq, reserved: 0 }
}

fn softirq(vec: u32) -> Softirq {
    Softirq { vec, reserved: 0 }
}

fn out(cpu: u32, ts_ns: u64, next_pid: u32, preempted: u32) -> Event {
    on(cpu, TID, ts_ns, Body::SchedSwitch(Switch { prev_pid: TID, next_pid, preempted, ..Switch::default() }))
}

fn back(cpu: u32, ts_ns: u64, prev_pid: u32) -> Event {
    on(cpu, prev_pid, ts_ns, Body::SchedSwitch(Switch { prev_pid, next_pid: TID, ..Switch::default() }))
}

fn items(overlay: &Overlay) -> Vec<(What, u64, Option<u64>)> {
    overlay.items.iter().map(|item| (item.what, item.start_ns, item.duration_ns)).collect()
}

#[test]
fn an_irq_in_a_softirq_is_counted_once() {
    let events = [
        at(110, Body::SoftirqEntry(softirq(3))),
        at(120, Body::IrqEntry(irq(27))),
        at(150, Body::IrqExit(irq(27))),
        at(200, Body::SoftirqExit(softirq(3))),
    ];
    let found = overlay(&events, &sample(100, 300), TID);
    assert_eq!(items(&found), [(What::Softirq(3), 110, Some(60)), (What::Irq(27), 120, Some(30))]);
    assert_eq!((found.taken_ns, found.unknown), (90, 0));
}

#[test]
fn a_tick_inside_a_page_fault_keeps_its_time_and_the_fault_has_none() {
    let fault = PageFault { address: 0x1000, error_code: 6, reserved: 0 };
    let events = [
        at(110, Body::PageFault(fault)),
        at(115, Body::TimerEntry(Timer { vector: 236, reserved: 0 })),
        at(125, Body::TimerExit(Timer { vector: 236, reserved: 0 })),
    ];
    let found = overlay(&events, &sample(100, 300), TID);
    assert_eq!(items(&found), [(What::PageFault, 110, None), (What::Tick, 115, Some(10))]);
    assert_eq!((found.taken_ns, found.unknown), (10, 0), "a fault without an end is no lost record");
}

#[test]
fn a_preemption_over_the_end_is_cut_there() {
    let events = [out(0, 150, HOG, 1), back(0, 900, HOG)];
    let found = overlay(&events, &sample(100, 300), TID);
    assert_eq!(items(&found), [(What::Preempted { by: HOG, last: HOG }, 150, Some(150))]);
    // Without its return nothing says how long it was.
    let found = overlay(&events[..1], &sample(100, 300), TID);
    assert_eq!(items(&found), [(What::Preempted { by: HOG, last: HOG }, 150, None)]);
    assert_eq!((found.taken_ns, found.unknown), (0, 1));
}

#[test]
fn lost_ends_take_no_time_and_lost_begins_are_left_out() {
    let events = [
        at(110, Body::IrqEntry(irq(27))),
        at(130, Body::SoftirqExit(softirq(1))),
        at(140, Body::IrqEntry(irq(27))),
        at(160, Body::IrqExit(irq(27))),
        at(200, Body::SoftirqEntry(softirq(9))),
    ];
    let found = overlay(&events, &sample(100, 300), TID);
    assert_eq!(items(&found), [(What::Irq(27), 110, None), (What::Irq(27), 140, Some(20)), (What::Softirq(9), 200, None)]);
    assert_eq!((found.taken_ns, found.unknown), (20, 2));
}

#[test]
fn a_lost_return_is_noticed_by_what_the_thread_does_next() {
    let events = [out(0, 110, HOG, 1), at(150, Body::IrqEntry(irq(5))), at(155, Body::IrqExit(irq(5)))];
    let found = overlay(&events, &sample(100, 300), TID);
    assert_eq!(items(&found), [(What::Preempted { by: HOG, last: HOG }, 110, None), (What::Irq(5), 150, Some(5))]);
}

#[test]
fn a_thread_that_goes_on_elsewhere_has_migrated() {
    let events = [out(0, 110, 17, 1), back(1, 180, 0), out(1, 200, HOG, 1), back(1, 230, 44)];
    let found = overlay(&events, &sample(100, 300), TID);
    let expected = [(What::Migrated { from: 0, to: 1, by: 17 }, 110, Some(70)), (What::Preempted { by: HOG, last: 44 }, 200, Some(30))];
    assert_eq!(items(&found), expected);
}

#[test]
fn each_thread_that_ran_meanwhile_has_its_own_time() {
    let hand_on =
        |ts, prev_pid, next_pid, cpu| on(cpu, prev_pid, ts, Body::SchedSwitch(Switch { prev_pid, next_pid, ..Switch::default() }));
    let events = [out(0, 110, 44, 1), hand_on(120, 44, HOG, 0), hand_on(130, 7, 8, 1), hand_on(190, HOG, 0, 0), back(0, 200, 0)];
    let found = overlay(&events, &sample(100, 300), TID);
    let by = |by, start, ns| (What::Preempted { by, last: by }, start, Some(ns));
    assert_eq!(items(&found), [by(44, 110, 10), by(HOG, 120, 70), by(0, 190, 10)]);
    // Gone on elsewhere: one absence, by whoever took the CPU first.
    let moved = [out(0, 110, 17, 1), hand_on(120, 17, HOG, 0), back(1, 150, 0)];
    let found = overlay(&moved, &sample(100, 300), TID);
    assert_eq!(items(&found), [(What::Migrated { from: 0, to: 1, by: 17 }, 110, Some(40))]);
    assert_eq!(found.taken_ns, 40);
}

#[test]
fn a_wait_for_an_event_is_no_interference_and_another_sleep_is() {
    let events = [out(0, 120, 0, 0), back(0, 200, 0), out(0, 210, HOG, 1), back(0, 250, HOG)];
    let waiting = Sample { arm_ns: 110, wait_begin_ns: 115, wait_end_ns: 205, ..sample(100, 300) };
    assert_eq!(items(&overlay(&events, &waiting, TID)), [(What::Preempted { by: HOG, last: HOG }, 210, Some(40))]);
    let found = overlay(&events, &sample(100, 300), TID);
    assert_eq!(found.items[0], Taken { what: What::Blocked, start_ns: 120, duration_ns: Some(80) });
}

#[test]
fn what_interrupts_other_threads_is_not_ours() {
    let events = [on(0, HOG, 110, Body::IrqEntry(irq(27))), on(0, HOG, 150, Body::IrqExit(irq(27)))];
    assert_eq!(overlay(&events, &sample(100, 300), TID), Overlay::default());
}

#[test]
fn a_part_of_a_sample_gets_its_part() {
    let found = overlay(&[out(0, 150, HOG, 1), back(0, 250, HOG)], &sample(100, 300), TID);
    let within = |from, to| found.within(from, to).map(|(_, ns)| ns).sum::<u64>();
    assert_eq!((within(100, 300), within(200, 300), within(0, 160), within(260, 300)), (100, 50, 10, 0));
}

proptest! {
    #[test]
    fn whatever_comes_the_sum_fits_into_the_sample(raw in proptest::collection::vec((0u64..400, 0u8..10, 0u32..3), 0..60)) {
        let mut raw = raw;
        raw.sort_by_key(|it| it.0);
        let events: Vec<Event> = raw
            .into_iter()
            .map(|(ts, kind, number)| match kind {
                0 => at(ts, Body::IrqEntry(irq(number))),
                1 => at(ts, Body::IrqExit(irq(number))),
                2 => at(ts, Body::SoftirqEntry(softirq(number))),
                3 => at(ts, Body::SoftirqExit(softirq(number))),
                4 => at(ts, Body::TimerEntry(Timer::default())),
                5 => at(ts, Body::TimerExit(Timer::default())),
                6 => out(number, ts, HOG, u32::from(number > 0)),
                7 => back(number, ts, HOG),
                8 => on(number, HOG, ts, Body::SchedSwitch(Switch { prev_pid: HOG, next_pid: number, ..Switch::default() })),
                _ => at(ts, Body::PageFault(PageFault::default())),
            })
            .collect();
        let found = overlay(&events, &sample(100, 300), TID);
        prop_assert!(found.taken_ns <= 200);
        prop_assert_eq!(found.taken_ns, found.items.iter().filter_map(|item| item.duration_ns).sum::<u64>());
        for item in &found.items {
            prop_assert!((100..=300).contains(&item.start_ns));
        }
    }
}
