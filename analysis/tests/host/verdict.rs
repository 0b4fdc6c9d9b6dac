//! The verdict against synthetic captures in which one sample was delayed at a known place.
use analysis::explain::{SampleVerdict, verdicts};
use analysis::report::of_capture;
use analysis::stages::StageId;
use analysis::testing::{Fixture, Scenario, generate, write_log};
use capture::Sample;
use ebpf_probes::{Body, Header, RxeRcv, Switch, Timer, Wake, path};

/// The delay: far above every stage of the fixtures.
const DELAY_NS: u64 = 5_000_000;
const TID: u32 = 1000;
const HOG: u32 = 321;
/// Which sample is delayed; its round is a traced one.
const VICTIM: usize = 150;

fn named(comm: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..comm.len()].copy_from_slice(comm.as_bytes());
    bytes
}

/// A fixture with a victim.
struct Case(Fixture);

impl Case {
    fn of(scenario: Scenario) -> Case {
        Case(generate(scenario, 2, 300, 5))
    }

    fn victim(&self) -> Sample {
        self.0.samples[VICTIM]
    }

    /// Time of the first event of the victim that is asked for.
    fn time(&self, is_it: impl Fn(&Body) -> bool) -> u64 {
        let victim = self.victim();
        let inside = |header: &Header| (victim.post_begin_ns..=victim.done_ns).contains(&header.ts_ns);
        let found = self.0.events.iter().find(|(header, body)| inside(header) && is_it(body));
        found.expect("the victim has such an event").0.ts_ns
    }

    /// Everything from `at_ns` on happens later.
    fn delay(&mut self, at_ns: u64) {
        let later = |time: &mut u64| *time += if *time >= at_ns { DELAY_NS } else { 0 };
        self.0.events.iter_mut().for_each(|(header, _)| later(&mut header.ts_ns));
        for sample in &mut self.0.samples {
            for time in [&mut sample.post_begin_ns, &mut sample.post_end_ns, &mut sample.arm_ns, &mut sample.wait_begin_ns] {
                later(time);
            }
            later(&mut sample.wait_end_ns);
            later(&mut sample.done_ns);
        }
        for round in &mut self.0.manifest.rounds {
            later(&mut round.begin_ns);
            later(&mut round.end_ns);
        }
    }

    fn add(&mut self, cpu: u32, pid: u32, ts_ns: u64, body: Body) {
        self.0.events.push((Header { cpu, ts_ns, pid, tgid: pid, ..Header::default() }, body));
    }

    /// The hog gets the thread's CPU `cpu` for the delay; the thread goes on on `to`.
    fn preempt(&mut self, at_ns: u64, cpu: u32, to: u32) {
        let out = Switch { prev_pid: TID, next_pid: HOG, prev_comm: named("poller"), preempted: 1, reserved: 0 };
        let back = Switch { prev_pid: HOG, next_pid: TID, prev_comm: named("busyhog"), ..Switch::default() };
        self.add(cpu, TID, at_ns, Body::SchedSwitch(out));
        if cpu != to {
            self.add(cpu, HOG, at_ns + 10, Body::SchedMigrate(Wake { target_pid: TID, target_cpu: to }));
        }
        self.add(to, HOG, at_ns + DELAY_NS - 20, Body::SchedSwitch(back));
    }

    /// Stage, kind, name and pid of the culprit, and the whole verdict.
    fn verdict(self) -> (SampleVerdict, String) {
        let folder = tempfile::tempdir().expect("a folder");
        write_log(&self.0, folder.path()).expect("writes");
        let all = verdicts(folder.path()).expect("opens");
        assert_eq!(all.len(), 300, "the traced round");
        let found = all.into_iter().find(|it| it.wr_id == self.victim().begin_wr_id).expect("the victim");
        assert!(found.taken_ns <= found.total_ns && !found.is_lost(), "{found:?}");
        let report = of_capture(folder.path(), "x".into()).expect("opens").report;
        let breakdown = report.breakdown.expect("stages");
        let slowest = &breakdown.slow[0];
        assert_eq!(slowest.wr_id, found.wr_id, "the victim is the slowest");
        assert_eq!((slowest.culprit_stage, &slowest.culprit), (found.stage, &found.culprit), "one verdict");
        (found, slowest.verdict.clone())
    }

    fn assert(self, stage: &str, kind: &str, pid: Option<u32>, words: &str) {
        let (found, sentence) = self.verdict();
        let culprit = found.culprit.clone().expect("a culprit");
        assert_eq!((found.stage.map(StageId::name), culprit.kind.name(), culprit.pid), (Some(stage), kind, pid), "{sentence}");
        assert!(found.grown_ns as u64 > DELAY_NS * 9 / 10, "{found:?}");
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn a_wait_in_the_run_queue_names_who_was_before() {
    let mut case = Case::of(Scenario::SendEvent61);
    case.delay(case.time(|body| matches!(body, Body::SchedWakeup(_))) + 1);
    let at = case.time(|body| matches!(body, Body::SchedSwitch(switch) if switch.next_pid == TID));
    for (header, body) in &mut case.0.events {
        if let (true, Body::SchedSwitch(switch)) = (header.ts_ns == at, body) {
            (switch.prev_pid, switch.prev_comm) = (HOG, named("busyhog"));
        }
    }
    case.assert("run queue", "run_queue", Some(HOG), "behind busyhog (thread 321)");
}

#[test]
fn a_late_bottom_half_is_named() {
    let mut case = Case::of(Scenario::SendEvent61);
    let victim = case.victim();
    let posted = case.time(|body| matches!(body, Body::CqPost(post) if post.wr_id == victim.end_wr_id));
    case.delay(posted + 1);
    for n in 0..3 {
        case.add(1, 15, posted + 100 + n, Body::SoftirqEntry(ebpf_probes::Softirq { vec: 3, reserved: 0 }));
    }
    case.assert("notify delay", "bottom_half", None, "before it CPU 1 ran NET_RX softirq (3 times)");
}

#[test]
fn a_wait_for_a_kernel_worker_is_named() {
    let mut case = Case::of(Scenario::SendEvent612);
    case.delay(case.time(|body| matches!(body, Body::WorkQueue(_))) + 1);
    case.assert("requester workqueue", "worker", Some(300), "to get CPU 1");
    let mut case = Case::of(Scenario::SendEvent612);
    let first = case.time(|body| matches!(body, Body::WorkStart(_)));
    let victim = case.victim();
    let second = case
        .0
        .events
        .iter()
        .find(|(header, body)| header.ts_ns > first && header.ts_ns < victim.done_ns && matches!(body, Body::WorkQueue(_)));
    case.delay(second.expect("the responder's").0.ts_ns + 1);
    case.assert("task workqueue", "worker", Some(300), "the work waited");
}

#[test]
fn the_wire_is_named() {
    let mut case = Case::of(Scenario::SendEvent61);
    case.delay(case.time(|body| matches!(body, Body::RxeRcv(RxeRcv { path: path::RESPONDER, .. }))));
    case.assert("wire + peer", "peer", None, "at the peer");
}

#[test]
fn the_threads_own_code_is_named() {
    let mut case = Case::of(Scenario::SendEvent61);
    case.delay(case.victim().wait_end_ns + 1);
    case.assert("poll", "own_code", None, "its own code");
}

#[test]
fn a_preemption_after_the_wake_up_is_named() {
    let mut case = Case::of(Scenario::SendEvent61);
    let at = case.time(|body| matches!(body, Body::SchedSwitch(switch) if switch.next_pid == TID)) + 10;
    case.delay(at);
    case.preempt(at, 0, 0);
    case.assert("return to user", "preempted", Some(HOG), "busyhog (thread 321) had its CPU for 5.00 ms");
}

fn preempted_poller(to: u32) -> Case {
    let mut case = Case::of(Scenario::ReadPoll);
    let at = case.time(|body| matches!(body, Body::CqPost(_))) + 5;
    case.delay(at);
    case.preempt(at, 0, to);
    case
}

#[test]
fn a_preempted_poller_names_who_ran_and_how_much_it_explains() {
    preempted_poller(0).assert("detect", "preempted", Some(HOG), "busyhog (thread 321) had its CPU for 5.00 ms");
    let (_, sentence) = preempted_poller(0).verdict();
    let explained = sentence.split("explains ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a share").to_string();
    assert!(explained.trim_start_matches('>').parse::<f64>().expect("a number") > 99.0, "{sentence}");
}

#[test]
fn a_poller_that_was_moved_says_so() {
    preempted_poller(1).assert("detect", "migrated", Some(HOG), "moved from CPU 0 to CPU 1");
}

#[test]
fn what_nothing_explains_is_said() {
    let mut case = Case::of(Scenario::ReadPoll);
    let at = case.time(|body| matches!(body, Body::CqPost(_))) + 5;
    case.delay(at);
    // A tick is seen, and explains next to nothing.
    case.add(0, TID, at + 1000, Body::TimerEntry(Timer::default()));
    case.add(0, TID, at + 3000, Body::TimerExit(Timer::default()));
    case.assert("detect", "none_seen", None, "no kernel cause seen (hypervisor, SMI, memory or the device)");
}

#[test]
fn what_was_not_recorded_is_not_called_unseen() {
    let mut case = Case::of(Scenario::ReadPoll);
    let at = case.time(|body| matches!(body, Body::CqPost(_))) + 5;
    case.delay(at);
    for row in &mut case.0.manifest.plan {
        row.gives.retain(|kind| kind != "timer_exit" && kind != "page_fault");
    }
    case.assert("detect", "not_recorded", None, "ticks, page faults were not recorded");
}

#[test]
fn the_totals_of_a_run_name_their_sources() {
    let mut case = preempted_poller(0);
    for sample in case.0.samples.clone().iter().take(300).step_by(3) {
        case.add(0, TID, sample.post_begin_ns + 10, Body::TimerEntry(Timer::default()));
        case.add(0, TID, sample.post_begin_ns + 40, Body::TimerExit(Timer::default()));
    }
    let folder = tempfile::tempdir().expect("a folder");
    write_log(&case.0, folder.path()).expect("writes");
    let breakdown = of_capture(folder.path(), "x".into()).expect("opens").report.breakdown.expect("stages");
    let it = breakdown.interference;
    assert_eq!((it.samples, it.usual_ns, it.sources.len()), (300, 0, 2), "{it:?}");
    assert_eq!((it.sources[0].name.as_str(), it.sources[0].times), ("preempted by busyhog (thread 321)", 1));
    assert_eq!((it.sources[1].kind.name(), it.sources[1].samples, it.sources[1].total_ns), ("tick", 100, 3000));
    // 300 samples are too few for a 99th percentile: nothing is said of the slow ones.
    assert_eq!(it.slow, None);
}
