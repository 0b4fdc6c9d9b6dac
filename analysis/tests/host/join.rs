//! The joins and the chain against synthetic captures whose truth is known.
use analysis::join::flags::Flag;
use analysis::join::{Options, Outcome, run};
use analysis::stages::StageId;
use analysis::testing::{Fixture, Scenario, generate, ring_bytes};
use capture::{Record, Sample};
use ebpf_probes::{Body, CqPost, Header, Kind, Softirq};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn records(events: &[(Header, Body)]) -> Vec<Record> {
    let mut records = records_in_ring_order(events);
    records.sort_by_key(|record| record.header.ts_ns);
    records
}

fn join(fixture: &Fixture, options: Options) -> Vec<(Sample, Outcome)> {
    let mut all = Vec::new();
    let samples = Box::new(fixture.samples.clone().into_iter().map(Ok));
    let records = Box::new(records(&fixture.events).into_iter().map(Ok));
    run(&fixture.manifest, samples, records, options, &mut |sample, outcome| all.push((*sample, *outcome))).expect("joins");
    all
}

fn found_stages(outcome: &Outcome) -> BTreeMap<&'static str, i64> {
    let mut found = BTreeMap::new();
    for gap in outcome.joined.chain.gaps() {
        *found.entry(gap.stage.name()).or_insert(0) += gap.duration_ns;
    }
    found
}

#[test]
fn every_scenario_gives_back_its_truth() {
    for scenario in Scenario::ALL {
        let fixture = generate(*scenario, 4, 300, 7);
        let all = join(&fixture, Options::default());
        assert_eq!(all.len(), 600, "{scenario:?}");
        for (sample, outcome) in &all {
            let truth: BTreeMap<_, _> = fixture.truth[&sample.begin_wr_id].iter().map(|(name, ns)| (*name, *ns as i64)).collect();
            assert_eq!(found_stages(outcome), truth, "{scenario:?} {sample:?} {:?}", outcome.joined.chain);
            assert!(!outcome.joined.flags.has(Flag::Lost), "{scenario:?}");
        }
    }
}

fn agreement(all: &[(Sample, Outcome)]) -> (usize, usize) {
    let compared = all.iter().filter(|(_, it)| it.exact_trigger.is_some() || it.inferred_trigger.is_some());
    let agreed = compared.clone().filter(|(_, it)| it.exact_trigger == it.inferred_trigger).count();
    (compared.count(), agreed)
}

#[test]
fn the_inferred_join_agrees_everywhere_and_the_mutant_does_not() {
    for scenario in [Scenario::SendEvent61, Scenario::SendEvent612, Scenario::TwoGuests] {
        let fixture = generate(scenario, 4, 500, 11);
        let (compared, agreed) = agreement(&join(&fixture, Options::default()));
        assert_eq!((compared, agreed), (1000, 1000), "{scenario:?}");
        let (compared, agreed) = agreement(&join(&fixture, Options { mutant: true, ..Options::default() }));
        assert!(compared >= 1000 && agreed * 2 < compared, "{scenario:?}: the mutant agreed in {agreed} of {compared}");
    }
}

#[test]
fn the_inferred_join_never_reads_the_wr_id() {
    let fixture = generate(Scenario::SendEvent61, 2, 300, 3);
    let mut blind = fixture.clone();
    for (_, body) in &mut blind.events {
        if let Body::CqPost(post) = body {
            *post = CqPost { wr_id: 0, ..*post };
        }
    }
    let options = Options { inferred_only: true, ..Options::default() };
    let (seeing, blind) = (join(&fixture, options), join(&blind, options));
    assert_eq!(seeing.len(), blind.len());
    for ((sample, with), (_, without)) in seeing.iter().zip(&blind) {
        assert!(with.inferred_trigger.is_some(), "{sample:?}");
        assert_eq!(with.inferred_trigger, without.inferred_trigger);
        assert_eq!(with.joined.chain.gaps().collect::<Vec<_>>(), without.joined.chain.gaps().collect::<Vec<_>>());
    }
}

#[test]
fn one_lost_record_of_a_needed_kind_flags_its_sample_and_no_other() {
    for scenario in Scenario::ALL {
        let whole = generate(*scenario, 1, 40, 5);
        for kind in [Kind::RxePost, Kind::RxeXmit, Kind::CqPost, Kind::CompHandler, Kind::SchedWaking, Kind::SchedWakeup] {
            let victim = whole.samples[20];
            let belongs = |(header, body): &(Header, Body)| {
                body.kind() == kind
                    && header.ts_ns >= victim.post_begin_ns
                    && header.ts_ns <= victim.done_ns
                    && !matches!(body, Body::CqPost(post) if post.wr_id != victim.end_wr_id)
            };
            let mut lossy = whole.clone();
            lossy.events.retain(|event| !belongs(event));
            if lossy.events.len() == whole.events.len() {
                continue;
            }
            for (sample, outcome) in join(&lossy, Options::default()) {
                let lost = outcome.joined.flags.has(Flag::Lost);
                assert_eq!(lost, sample.begin_wr_id == victim.begin_wr_id, "{scenario:?} without {}: {outcome:?}", kind.name());
            }
        }
    }
}

#[test]
fn a_lost_switch_is_lost_not_awake() {
    let whole = generate(Scenario::SendEvent612, 1, 40, 5);
    let victim = whole.samples[7];
    let mut lossy = whole.clone();
    lossy.events.retain(|(header, body)| {
        !(matches!(body, Body::SchedSwitch(switch) if switch.prev_pid == 0)
            && (victim.post_begin_ns..victim.done_ns).contains(&header.ts_ns))
    });
    assert_eq!(lossy.events.len() + 1, whole.events.len());
    let lost: Vec<u64> = join(&lossy, Options::default())
        .iter()
        .filter(|(_, outcome)| outcome.joined.flags.has(Flag::Lost))
        .map(|(sample, _)| sample.begin_wr_id)
        .collect();
    assert_eq!(lost, [victim.begin_wr_id]);
}

#[test]
fn a_probe_that_was_never_attached_costs_its_stage_and_nothing_else() {
    let mut fixture = generate(Scenario::SendEvent612, 2, 100, 5);
    fixture.events.retain(|(_, body)| !matches!(body.kind(), Kind::SchedWakeup | Kind::CpuIdleExit));
    for row in &mut fixture.manifest.plan {
        row.gives.retain(|name| name != "sched_wakeup" && name != "cpu_idle_exit");
    }
    for (_, outcome) in join(&fixture, Options::default()) {
        let found = found_stages(&outcome);
        assert!(!outcome.joined.flags.has(Flag::Lost));
        assert!(found.contains_key("activation and run queue") && !found.contains_key("activation"), "{found:?}");
        assert!(!found.contains_key(StageId::Unattributed.name()), "{found:?}");
    }
}

#[test]
fn level_min_has_an_unsplit_middle_and_whole_wakeups() {
    let mut fixture = generate(Scenario::SendEvent612, 2, 100, 5);
    let keep = [Kind::CompHandler, Kind::SchedWaking, Kind::SchedSwitch];
    fixture.events.retain(|(_, body)| keep.contains(&body.kind()));
    for row in &mut fixture.manifest.plan {
        row.gives.retain(|name| keep.iter().any(|kind| kind.name() == name));
    }
    for (_, outcome) in join(&fixture, Options::default()) {
        let found = found_stages(&outcome);
        let names: Vec<&str> = found.keys().copied().collect();
        assert_eq!(names, ["activation and run queue", "device + network", "handler", "poll", "post", "return to user"]);
        assert!(!outcome.joined.flags.has(Flag::Lost));
    }
}

/// One sleeping sample with its events, to be changed by hand.
fn one_sample() -> Fixture {
    generate(Scenario::SendEvent612, 1, 1, 2)
}

#[test]
fn an_event_that_was_queued_before_the_read_has_no_wakeup_stages() {
    let mut fixture = one_sample();
    fixture
        .events
        .retain(|(_, body)| !matches!(body.kind(), Kind::SchedWaking | Kind::SchedWakeup | Kind::SchedSwitch | Kind::CpuIdleExit));
    let (_, outcome) = join(&fixture, Options::default())[0];
    let found = found_stages(&outcome);
    assert!(outcome.joined.flags.has(Flag::NoSleep) && !outcome.joined.flags.has(Flag::Lost));
    assert!(found.contains_key("event read without sleep") && !found.contains_key("run queue"), "{found:?}");
}

#[test]
fn a_thread_woken_before_it_left_its_cpu_is_told_apart() {
    let mut fixture = one_sample();
    fixture.events.retain(|(_, body)| !matches!(body.kind(), Kind::SchedSwitch | Kind::CpuIdleExit));
    let (_, outcome) = join(&fixture, Options::default())[0];
    let found = found_stages(&outcome);
    assert!(outcome.joined.flags.has(Flag::WokenOnCpu) && !outcome.joined.flags.has(Flag::Lost));
    assert!(found.contains_key("activation") && found.contains_key("return to user") && !found.contains_key("run queue"), "{found:?}");
}

#[test]
fn a_repeated_packet_is_a_retransmission() {
    let mut fixture = one_sample();
    let at = fixture.events.iter().position(|(_, body)| body.kind() == Kind::RxeXmit).expect("R2");
    let mut again = fixture.events[at];
    again.0.ts_ns += 300;
    fixture.events.push(again);
    let (_, outcome) = join(&fixture, Options::default())[0];
    assert!(outcome.joined.flags.has(Flag::Retransmit));
    assert_eq!(found_stages(&outcome)["retransmission"], 300);
}

#[test]
fn a_packet_taken_by_a_running_napi_poll_is_not_given_an_interrupt() {
    let mut fixture = generate(Scenario::TwoGuests, 1, 1, 2);
    fixture.events.retain(|(_, body)| !matches!(body.kind(), Kind::IrqEntry | Kind::IrqExit));
    fixture.events.retain(|(_, body)| body.kind() != Kind::SoftirqExit);
    let (_, outcome) = join(&fixture, Options::default())[0];
    let found = found_stages(&outcome);
    assert!(outcome.joined.flags.has(Flag::NapiPolled) && !outcome.joined.flags.has(Flag::Lost));
    assert!(!found.contains_key("rx interrupt") && found.contains_key("rx softirq"), "{found:?}");
}

#[test]
fn an_interrupt_within_the_softirq_of_another_device_is_the_packets_own() {
    let fixture = generate(Scenario::TwoGuests, 1, 1, 2);
    let at = |kind: Kind| *fixture.events.iter().find(|(_, body)| body.kind() == kind).expect("TwoGuests has it");
    let (irq, softirq) = (at(Kind::IrqEntry), at(Kind::SoftirqEntry));
    let mut busy = fixture.clone();
    busy.events.push((Header { ts_ns: irq.0.ts_ns - 50, ..irq.0 }, Body::SoftirqEntry(Softirq { vec: 3, reserved: 0 })));
    busy.events.push((Header { ts_ns: softirq.0.ts_ns - 1, ..softirq.0 }, Body::SoftirqExit(Softirq { vec: 3, reserved: 0 })));
    let ((_, quiet), (_, busy)) = (join(&fixture, Options::default())[0], join(&busy, Options::default())[0]);
    assert!(!busy.joined.flags.has(Flag::NapiPolled));
    assert_eq!(found_stages(&busy), found_stages(&quiet));
    assert!(found_stages(&busy)["rx interrupt"] > 0);
}

#[test]
fn softirqs_whose_ends_are_not_recorded_give_the_same_stages() {
    for scenario in [Scenario::TwoGuests, Scenario::SendEvent61] {
        let whole = generate(scenario, 1, 60, 8);
        let mut without = whole.clone();
        without.events.retain(|(_, body)| !matches!(body.kind(), Kind::SoftirqExit | Kind::IrqExit | Kind::NapiPoll));
        for ((_, a), (_, b)) in join(&whole, Options::default()).iter().zip(&join(&without, Options::default())) {
            assert_eq!(found_stages(a), found_stages(b), "{scenario:?}");
            assert_eq!(a.joined.flags, b.joined.flags, "{scenario:?}");
            assert_eq!(b.joined.flags.has(Flag::Loopback), scenario == Scenario::SendEvent61);
            assert!(!b.joined.flags.has(Flag::NapiPolled));
        }
    }
}

#[test]
fn a_clock_that_disagrees_is_flagged_and_its_negative_stage_kept() {
    let mut fixture = generate(Scenario::ReadPoll, 1, 1, 2);
    let done = fixture.samples[0].done_ns;
    for (header, body) in &mut fixture.events {
        if body.kind() == Kind::CqPost {
            header.ts_ns = done + 40;
        }
    }
    let (_, outcome) = join(&fixture, Options::default())[0];
    assert_eq!(found_stages(&outcome)["detect"], -40);
    assert!(outcome.joined.flags.has(Flag::ClockUnsure));
}

#[test]
fn a_read_that_took_the_event_of_an_earlier_cqe_is_not_lost() {
    let mut fixture = one_sample();
    // The handler call that wakes the thread comes before the CQE, which itself raises no event.
    let at = |fixture: &Fixture, kind| fixture.events.iter().position(|(_, body)| body.kind() == kind).expect("is there");
    let cqe = fixture.events.iter().position(|(_, body)| matches!(body, Body::CqPost(post) if post.wr_id == fixture.samples[0].end_wr_id));
    let (cqe, switch) = (cqe.expect("R6"), at(&fixture, Kind::SchedWakeup));
    fixture.events[cqe].0.ts_ns = fixture.events[switch].0.ts_ns + 1;
    let (sample, outcome) = join(&fixture, Options::default())[0];
    let flags = outcome.joined.flags;
    assert!(flags.has(Flag::Spurious) && !flags.has(Flag::Lost) && !outcome.joined.slept, "{sample:?} {outcome:?}");
    assert!(outcome.exact_trigger.is_none() && outcome.inferred_trigger.is_some());
    assert!(!found_stages(&outcome).contains_key(StageId::Unattributed.name()));
}

#[test]
fn memory_is_bounded_by_the_sample_not_by_the_capture() {
    let fixture = generate(Scenario::SendEvent612, 1, 100, 3);
    let span = fixture.samples[99].done_ns + 1_000 - fixture.samples[0].post_begin_ns;
    let repeats = 1_000;
    let base = records(&fixture.events);
    let samples = fixture.samples.clone();
    let samples = (0..repeats).flat_map(move |round| {
        let shift = round * span;
        let moved = move |ns: u64| if ns == 0 { 0 } else { ns + shift };
        samples
            .clone()
            .into_iter()
            .map(move |s| Sample {
                post_begin_ns: moved(s.post_begin_ns),
                post_end_ns: moved(s.post_end_ns),
                arm_ns: moved(s.arm_ns),
                wait_begin_ns: moved(s.wait_begin_ns),
                wait_end_ns: moved(s.wait_end_ns),
                done_ns: moved(s.done_ns),
                ..s
            })
            .map(Ok)
    });
    let records = (0..repeats).flat_map(move |round| {
        let shifted = move |mut record: Record| {
            record.header.ts_ns += round * span;
            Ok(record)
        };
        base.clone().into_iter().map(shifted)
    });
    let mut lost = 0;
    let mut manifest = fixture.manifest.clone();
    manifest.rounds.iter_mut().for_each(|round| round.end_ns = u64::MAX);
    let totals = run(&manifest, Box::new(samples), Box::new(records), Options::default(), &mut |_, outcome| {
        lost += u64::from(outcome.joined.flags.has(Flag::Lost));
    })
    .expect("joins");
    assert_eq!((totals.samples, lost), (100_000, 0));
    assert!(totals.events > 1_500_000 && totals.held_max < 60, "{totals:?}");
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    proptest::sample::select(Scenario::ALL)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Whatever is lost: the gaps add up to the latency, and what is attributed is never negative.
    #[test]
    fn sums_add_up_whatever_is_lost(scenario in scenarios(), seed in any::<u64>(), drop in proptest::collection::vec(any::<bool>(), 600)) {
        let mut fixture = generate(scenario, 2, 12, seed);
        let mut at = 0;
        fixture.events.retain(|_| { at += 1; at > drop.len() || !(drop[at - 1] && at % 3 == 0) });
        let all = join(&fixture, Options::default());
        prop_assert_eq!(all.len(), 12);
        for (sample, outcome) in all {
            let sum: i64 = outcome.joined.chain.gaps().map(|gap| gap.duration_ns).sum();
            prop_assert_eq!(sum as u64, sample.done_ns - sample.post_begin_ns);
            for gap in outcome.joined.chain.gaps() {
                prop_assert!(gap.duration_ns >= 0, "{:?} of {:?}", gap, outcome.joined);
            }
        }
    }

    /// The order in which the ring's CPUs were drained does not matter.
    #[test]
    fn the_order_of_equal_times_across_cpus_does_not_matter(scenario in scenarios(), seed in any::<u64>()) {
        use capture::order::{Sorter, Ties};
        let mut fixture = generate(scenario, 1, 10, seed);
        // Coarse clocks make many ties.
        for (header, _) in &mut fixture.events {
            header.ts_ns -= header.ts_ns % 400;
        }
        let sorted = |events: Vec<(Header, Body)>| {
            let mut sorter = Sorter::new(16);
            for record in records_in_ring_order(&events) { sorter.push(record).expect("temporary file"); }
            Ties::new(sorter.finish().expect("sorts")).collect::<Result<Vec<_>, _>>().expect("reads")
        };
        let ring = sorted(fixture.events.clone());
        let (first, second): (Vec<_>, Vec<_>) = fixture.events.iter().copied().partition(|(header, _)| header.cpu == 1);
        let by_cpu = sorted(first.into_iter().chain(second).collect());
        prop_assert_eq!(ring.len(), fixture.events.len());
        prop_assert_eq!(ring, by_cpu);
    }
}

fn records_in_ring_order(events: &[(Header, Body)]) -> Vec<Record> {
    let raw = ring_bytes(events);
    let mut rest = &raw[..];
    let mut records = Vec::new();
    while let capture::record::Split::Whole(record, behind) = capture::record::split(rest) {
        records.push(record);
        rest = behind;
    }
    records
}
