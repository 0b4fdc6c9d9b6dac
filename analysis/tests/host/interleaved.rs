//! Two CQs, two CPUs, interrupts of strangers, in any order: a small machine plays mlx5's interrupt, tasklet and callback (and, on
//! PREEMPT_RT, their threads), knows the truth, and the join must find it.
use crate::stream::{Stream, TID};
use analysis::join::flags::Flag;
use analysis::join::{Options, Outcome, run};
use analysis::stages::Point;
use analysis::stats::Rng;
use capture::{Record, Sample};
use ebpf_probes::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const IRQ_THREAD: u32 = 412;
/// Of CPU 0.
const KSOFTIRQD: u32 = 22;
const FIRST_IRQ: u32 = 61;
const A: u64 = 0xa000;
const B: u64 = 0xb000;

/// A completion that the device reports.
#[derive(Clone, Copy)]
struct Arrival {
    at: u64,
    cq: u64,
    queue: u32,
}

/// What the join must find of a sample.
type Truth = BTreeMap<&'static str, u64>;

/// One CPU with its event queues.
struct Cpu {
    number: u32,
    now: u64,
    arrivals: Vec<Arrival>,
    /// Event queues with CQs on their list, in the order in which their tasklets were asked for.
    pending: Vec<(u32, Vec<u64>)>,
}

struct Machine {
    rng: Rng,
    realtime: bool,
    handle: u64,
    tgid: u32,
    events: Vec<(Header, Body)>,
    truth: Truth,
}

impl Machine {
    fn emit(&mut self, cpu: &Cpu, pid: u32, body: Body) {
        let tgid = if pid == TID { self.tgid } else { pid };
        self.events.push((Header { cpu: cpu.number, pid, tgid, ts_ns: cpu.now, ..Header::default() }, body));
    }

    fn pass(&mut self, cpu: &mut Cpu) {
        cpu.now += 1 + self.rng.below(200);
    }

    /// Plays everything that arrives at a CPU.
    fn play(&mut self, mut cpu: Cpu) {
        cpu.arrivals.sort_by_key(|arrival| arrival.at);
        loop {
            let due = cpu.arrivals.first().is_some_and(|arrival| arrival.at <= cpu.now);
            if due || (cpu.pending.is_empty() && !cpu.arrivals.is_empty()) {
                self.interrupt(&mut cpu, 0);
            } else if cpu.pending.is_empty() {
                return;
            } else {
                self.softirq(&mut cpu);
            }
        }
    }

    /// One interrupt of the queue whose entry is the oldest, on top of `under`.
    fn interrupt(&mut self, cpu: &mut Cpu, under: u32) {
        let first = cpu.arrivals[0];
        cpu.now = cpu.now.max(first.at) + self.rng.below(100);
        if self.rng.below(4) == 0 {
            self.emit(cpu, under, Body::IrqEntry(Irq { irq: 33, reserved: 0 }));
            self.pass(cpu);
        }
        let irq = FIRST_IRQ + first.queue;
        let begin = cpu.now;
        self.emit(cpu, under, Body::IrqEntry(Irq { irq, reserved: 0 }));
        let mut pid = under;
        let mut thread = None;
        if self.realtime {
            self.pass(cpu);
            pid = IRQ_THREAD + first.queue;
            let waking = cpu.now;
            self.emit(cpu, under, Body::SchedWaking(Wake { target_pid: pid, target_cpu: u32::MAX }));
            self.pass(cpu);
            thread = Some((waking, cpu.now));
            self.emit(cpu, under, Body::SchedSwitch(Switch { prev_pid: under, next_pid: pid, preempted: 1, ..Switch::default() }));
            self.pass(cpu);
            self.emit(cpu, pid, Body::DriverIrq(DriverEntry { object: u64::from(irq), irq, reserved: 0 }));
        }
        self.pass(cpu);
        // Everything that has come until now goes with this interrupt; an entry that comes while it works may too.
        let mut index = 0;
        while index < cpu.arrivals.len() {
            let arrival = cpu.arrivals[index];
            if arrival.queue != first.queue || arrival.at > cpu.now {
                index += 1;
                continue;
            }
            cpu.arrivals.remove(index);
            if arrival.cq == A {
                self.truth.insert("K1", begin);
                self.truth.insert("K3", cpu.now);
                if let Some((waking, switch)) = thread {
                    self.truth.insert("waking", waking);
                    self.truth.insert("switch", switch);
                }
            }
            self.emit(cpu, pid, Body::DriverEnqueue(DriverCq { driver_cq: arrival.cq + 224, cqn: 1, irq }));
            self.pass(cpu);
            let list = match cpu.pending.iter().position(|(queue, _)| *queue == first.queue) {
                Some(at) => &mut cpu.pending[at].1,
                None => {
                    cpu.pending.push((first.queue, Vec::new()));
                    let last = cpu.pending.len() - 1;
                    &mut cpu.pending[last].1
                }
            };
            if !list.contains(&arrival.cq) {
                list.push(arrival.cq);
            }
        }
        if self.realtime {
            self.emit(cpu, pid, Body::SchedSwitch(Switch { prev_pid: pid, next_pid: under, ..Switch::default() }));
            self.pass(cpu);
        }
    }

    /// One run of the tasklet softirq: each queue's tasklet once; interrupts come in between.
    fn softirq(&mut self, cpu: &mut Cpu) {
        let pid = if self.realtime || self.rng.below(3) == 0 { KSOFTIRQD + cpu.number } else { 0 };
        if pid != 0 {
            self.emit(cpu, 0, Body::SchedWaking(Wake { target_pid: pid, target_cpu: u32::MAX }));
            self.pass(cpu);
            self.emit(cpu, 0, Body::SchedSwitch(Switch { prev_pid: 0, next_pid: pid, ..Switch::default() }));
            self.pass(cpu);
        }
        self.emit(cpu, pid, Body::SoftirqEntry(Softirq { vec: 6, reserved: 0 }));
        for (queue, list) in std::mem::take(&mut cpu.pending) {
            self.pass(cpu);
            if list.contains(&A) {
                self.truth.insert("K4", cpu.now);
            }
            self.emit(cpu, pid, Body::TaskletEntry(Tasklet { tasklet: u64::from(queue), func: 1 }));
            for cq in list {
                self.maybe_interrupt(cpu, pid);
                self.pass(cpu);
                let irq = FIRST_IRQ + queue;
                self.emit(cpu, pid, Body::DriverComp(DriverCq { driver_cq: cq + 224, cqn: 1, irq }));
                self.maybe_interrupt(cpu, pid);
                self.pass(cpu);
                self.handler(cpu, pid, cq);
            }
        }
        self.pass(cpu);
        if pid != 0 {
            self.emit(cpu, pid, Body::SchedSwitch(Switch { prev_pid: pid, next_pid: 0, ..Switch::default() }));
            self.pass(cpu);
        }
    }

    fn maybe_interrupt(&mut self, cpu: &mut Cpu, under: u32) {
        if cpu.arrivals.first().is_some_and(|arrival| arrival.at <= cpu.now) {
            self.interrupt(cpu, under);
        }
    }

    fn handler(&mut self, cpu: &mut Cpu, pid: u32, cq: u64) {
        let user_handle = if cq == A { self.handle } else { 5 };
        let body = CompHandler { cq, user_handle, channel: cq + 96, owner_tgid: self.tgid, restrack_id: 1 };
        self.emit(cpu, pid, Body::CompHandler(body));
        if cq == A {
            self.truth.insert("K5", cpu.now);
        }
        self.pass(cpu);
        let target_pid = if cq == A { TID } else { 77 };
        // A thread that is not tracked has no record of its wake-up.
        if cq == A {
            self.emit(cpu, pid, Body::SchedWaking(Wake { target_pid, target_cpu: u32::MAX }));
            self.truth.insert("K6", cpu.now);
        }
        self.pass(cpu);
    }
}

/// A run of samples with its truth.
fn play(seed: u64, realtime: bool) -> (Stream, Vec<Truth>) {
    let mut text = String::from("driver mlx5_core\nthread 23 ksoftirqd/1\nthread 24 ksoftirqd/2\n");
    if realtime {
        text.push_str("realtime\nthread 412 irq/61-mlx5_comp0\nthread 413 irq/62-mlx5_comp1\n");
    }
    let mut stream = Stream::parse(&text);
    let placement = stream.manifest.placement.clone();
    let mut machine = Machine {
        rng: Rng::new(seed),
        realtime,
        handle: placement.cq_handle,
        tgid: placement.tgid,
        events: Vec::new(),
        truth: Truth::new(),
    };
    let (mut now, mut truths) = (1_000_000, Vec::new());
    // The other CQ's queue: the same one, another one on the same CPU, or another one on another CPU.
    let (other_queue, other_cpu) = [(0, 1), (1, 1), (1, 2)][machine.rng.below(3) as usize];
    for index in 0..12 {
        let mut sample = Sample { begin_wr_id: index, end_wr_id: index, qpn: placement.qpn, waits: 1, ..Sample::default() };
        sample.post_begin_ns = now;
        sample.post_end_ns = now + 300;
        sample.arm_ns = now + 350;
        sample.wait_begin_ns = now + 500;
        machine.truth.clear();
        let sleep = Body::SchedSwitch(Switch { prev_pid: TID, next_pid: 0, ..Switch::default() });
        machine.events.push((Header { cpu: 0, pid: TID, tgid: placement.tgid, ts_ns: now + 600, ..Header::default() }, sleep));
        let mut arrivals = vec![Arrival { at: now + 700 + machine.rng.below(2000), cq: A, queue: 0 }];
        for _ in 0..machine.rng.below(5) {
            arrivals.push(Arrival { at: now + 310 + machine.rng.below(3000), cq: B, queue: other_queue });
        }
        for number in [1, 2] {
            let here = |arrival: &Arrival| if arrival.cq == A { number == 1 } else { number == other_cpu };
            let arrivals: Vec<Arrival> = arrivals.iter().copied().filter(here).collect();
            machine.play(Cpu { number, now: now + 310, arrivals, pending: Vec::new() });
        }
        let waking = machine.truth["K6"];
        let (wakeup, switch) = (waking + 1 + machine.rng.below(300), waking + 400 + machine.rng.below(900));
        let header = Header { cpu: 0, ts_ns: wakeup, ..Header::default() };
        machine.events.push((header, Body::SchedWakeup(Wake { target_pid: TID, target_cpu: u32::MAX })));
        let header = Header { cpu: 0, ts_ns: switch, ..Header::default() };
        machine.events.push((header, Body::SchedSwitch(Switch { prev_pid: 0, next_pid: TID, ..Switch::default() })));
        sample.wait_end_ns = switch + 100 + machine.rng.below(500);
        sample.done_ns = sample.wait_end_ns + 50 + machine.rng.below(100);
        let last = machine.events.iter().map(|(header, _)| header.ts_ns).max().unwrap_or(now);
        now = last.max(sample.done_ns) + 1_000 + machine.rng.below(2_000);
        truths.push(machine.truth.clone());
        stream.samples.push(sample);
    }
    (stream.manifest.rounds[0].begin_ns, stream.manifest.rounds[0].end_ns) = (0, now);
    stream.events = machine.events;
    // Stable: what happened at one time on one CPU stays in its order.
    stream.events.sort_by_key(|(header, _)| header.ts_ns);
    (stream, truths)
}

fn join(stream: &Stream, records: Vec<Record>) -> Vec<(Sample, Outcome)> {
    let mut all = Vec::new();
    let samples = Box::new(stream.samples.clone().into_iter().map(Ok));
    let records = Box::new(records.into_iter().map(Ok));
    run(&stream.manifest, samples, records, Options::default(), &mut |sample, outcome| all.push((*sample, *outcome))).expect("joins");
    all
}

fn adds_up(sample: &Sample, outcome: &Outcome) -> Result<(), TestCaseError> {
    let sum: i64 = outcome.joined.chain.gaps().map(|gap| gap.duration_ns).sum();
    prop_assert_eq!(Some(sum as u64), sample.latency_ns());
    let mut at = 0;
    for gap in outcome.joined.chain.gaps() {
        prop_assert_eq!(gap.start_ns, at, "a hole before {:?}", gap);
        at += gap.duration_ns;
        let flagged = outcome.joined.flags.has(Flag::ClockUnsure) || outcome.joined.flags.has(Flag::Lost);
        prop_assert!(gap.duration_ns >= 0 || flagged, "{:?} of {:?}", gap, outcome.joined);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn the_truth_is_found_in_any_interleaving(seed in any::<u64>(), realtime in any::<bool>()) {
        let (stream, truths) = play(seed, realtime);
        let all = join(&stream, stream.records());
        prop_assert_eq!(all.len(), truths.len());
        for ((sample, outcome), truth) in all.iter().zip(&truths) {
            adds_up(sample, outcome)?;
            let chain = &outcome.joined.chain;
            prop_assert!(!outcome.joined.flags.has(Flag::Lost) && !outcome.joined.flags.has(Flag::NotIrq), "{:?}", outcome.joined);
            let points = [("K1", Point::CompIrq), ("waking", Point::CompIrqWaking), ("switch", Point::CompIrqThread), ("K3", Point::DriverEnqueue),
                ("K4", Point::BottomHalf), ("K5", Point::Handler), ("K6", Point::Waking)];
            for (name, point) in points {
                prop_assert_eq!(chain.get(point), truth.get(name).copied(), "{} of {:?}", name, outcome.joined);
            }
            for gap in chain.gaps() {
                prop_assert!(!gap.stage.is_unattributed(), "{:?} has no stage", gap);
            }
            let deferred = chain.has(Point::SoftirqThread);
            prop_assert!(!deferred || outcome.joined.flags.has(Flag::BhDeferred));
        }
    }

    #[test]
    fn what_is_lost_is_flagged_and_never_negative(seed in any::<u64>(), realtime in any::<bool>(), drop in 2..40usize) {
        let (stream, truths) = play(seed, realtime);
        let mut records = stream.records();
        let mut at = seed as usize % drop;
        records.retain(|_| { at += 1; !at.is_multiple_of(drop) });
        for ((sample, outcome), truth) in join(&stream, records).iter().zip(&truths) {
            adds_up(sample, outcome)?;
            // A handler that was found is the right one, or its sample is flagged.
            let handler = outcome.joined.chain.get(Point::Handler);
            prop_assert!(handler.is_none() || handler == truth.get("K5").copied() || outcome.joined.flags.has(Flag::Lost), "{:?}", outcome.joined);
        }
    }
}
