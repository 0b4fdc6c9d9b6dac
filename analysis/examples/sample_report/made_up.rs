//! Made-up numbers for looking at charts and for drawing tests. Nothing here was measured, and the report that comes of it says so.
use analysis::join::flags::Flag;
use analysis::report::model::{
    Agreement, Band, Breakdown, Cause, Comparison, CpuCost, Culprit, Interference, Latency, ObserverCost, OverlayItem, Quantile, Report,
    Residency, RunReport, SilentHook, SlowCauses, SlowSample, SlowStage, Source, StageStat, Verdict,
};
use analysis::stages::{Place, StageId};
use capture::manifest::costs::{Absent, DetectionWindow, HitPoll, PollCosts, Spread};
use capture::manifest::{Device, Host, LossRow, Outcome, Placement, PlanRow, Round, Run, SCHEMA_VERSION};
use capture::{CompletionShape, Level, Manifest, Metric, Mode, Operation, Transport};

/// Marks every page that is made of these numbers.
pub const MARK: &str = "MADE-UP NUMBERS for looking at charts: nothing in this report was measured.";

/// A small generator (splitmix64), so that the pictures are the same every time.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A value with a long tail around `median`.
    fn tailed(&mut self, median: f64, spread: f64) -> f64 {
        let normal: f64 = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        median * (spread * normal).exp()
    }
}

/// A distribution out of samples, as the analysis would hand it over.
pub fn latency(metric: Metric, mut samples: Vec<u64>, failed: u64) -> Latency {
    samples.sort_unstable();
    let n = samples.len() as u64;
    let mean_ns = samples.iter().map(|&ns| ns as f64).sum::<f64>() / n.max(1) as f64;
    let variance = samples.iter().map(|&ns| (ns as f64 - mean_ns).powi(2)).sum::<f64>() / n.max(1) as f64;
    let at = |q: f64| samples[((q * n as f64).ceil() as usize).clamp(1, samples.len()) - 1];
    let quantiles =
        [0.5, 0.9, 0.99, 0.999, 0.9999].map(|q| Quantile { q, value_ns: (n as f64 * (1.0 - q) >= 10.0 - 1e-6).then(|| at(q)) }).to_vec();
    let thin = (samples.len() / 2000).max(1);
    let mut steps: Vec<(u64, u64)> = Vec::new();
    for (rank, &ns) in samples.iter().enumerate() {
        if rank % thin == 0 || rank + 500 > samples.len() {
            steps.push((ns, rank as u64 + 1));
        }
    }
    Latency {
        metric,
        n,
        failed,
        min_ns: samples.first().copied().unwrap_or(0),
        mean_ns,
        stddev_ns: variance.sqrt(),
        quantiles,
        max_ns: samples.last().copied().unwrap_or(0),
        steps,
        bins: bins(&samples),
    }
}

fn bins(samples: &[u64]) -> Vec<(u64, u64, u64)> {
    let mut bins: Vec<(u64, u64, u64)> = Vec::new();
    for &ns in samples {
        let slot = ((ns.max(1) as f64).log10() * 30.0).floor();
        let (lower, upper) = (10f64.powf(slot / 30.0) as u64, 10f64.powf((slot + 1.0) / 30.0) as u64);
        match bins.last_mut() {
            Some(last) if last.0 == lower => last.2 += 1,
            _ => bins.push((lower, upper.max(lower + 1), 1)),
        }
    }
    bins
}

/// Samples of one mode: two humps and a tail.
pub fn samples(seed: u64, n: usize, base_ns: f64) -> Vec<u64> {
    let mut random = Random(seed);
    (0..n)
        .map(|_| {
            let kind = random.unit();
            let ns = match kind {
                k if k < 0.80 => random.tailed(base_ns, 0.08),
                k if k < 0.985 => random.tailed(base_ns * 1.7, 0.12),
                _ => random.tailed(base_ns * 4.0, 0.7),
            };
            ns as u64
        })
        .collect()
}

const EVENT_STAGES: [(StageId, &str, f64); 14] = [
    (StageId::Post, "ibv_post_send until the kernel takes over", 0.07),
    (StageId::Requester, "rxe builds and sends the packets", 0.09),
    (StageId::TxStack, "the network stack's transmit path", 0.06),
    (StageId::WirePeer, "on the wire and in the peer", 0.17),
    (StageId::RxSoftirq, "receive softirq until rxe has the packet", 0.06),
    (StageId::TaskQueue, "waiting for rxe's completer task", 0.05),
    (StageId::Protocol, "rxe's completer until the CQE is written", 0.04),
    (StageId::NotifyDelay, "until ib_uverbs_comp_handler is called", 0.02),
    (StageId::Handler, "ib_uverbs_comp_handler until the wake-up", 0.03),
    (StageId::Activation, "waking until the thread is on a run queue", 0.05),
    (StageId::RunQueue, "waiting for the CPU", 0.19),
    (StageId::ReturnToUser, "from the switch to the return of read()", 0.10),
    (StageId::Poll, "until ibv_poll_cq returned the CQE", 0.04),
    (StageId::Unattributed, "what no stage covers", 0.03),
];

fn breakdown(seed: u64, n: u64, mean_ns: f64, event: bool) -> Breakdown {
    let mut random = Random(seed);
    let shares: Vec<(StageId, &'static str, f64)> =
        EVENT_STAGES.iter().filter(|stage| event || stage.0.row().place != Place::Event || stage.0 == StageId::Poll).copied().collect();
    let whole: f64 = shares.iter().map(|stage| stage.2).sum();
    let stages = shares
        .iter()
        .map(|&(stage, meaning, share)| {
            let mean_of_all_ns = mean_ns * share / whole;
            let mut values: Vec<u64> = (0..400).map(|_| random.tailed(mean_of_all_ns, 0.35) as u64).collect();
            values.sort_unstable();
            StageStat {
                stage,
                meaning,
                n,
                mean_of_all_ns,
                p50_ns: Some(values[200]),
                p99_ns: Some(values[396]),
                max_ns: values[399],
                share: share / whole,
                negative: u64::from(stage == StageId::NotifyDelay) * 3,
                steps: values.iter().enumerate().map(|(rank, &ns)| (ns, n * (rank as u64 + 1) / 400)).collect(),
            }
        })
        .collect();
    let bands =
        [("p0-p50", 0.5, 0.8), ("p50-p90", 0.4, 1.1), ("p90-p99", 0.09, 1.9), ("p99-p99.9", 0.009, 4.0), ("above p99.9", 0.001, 9.0)]
            .iter()
            .map(|&(name, part, factor)| {
                let weight = |stage: StageId, share: f64| if stage == StageId::RunQueue { share * f64::powf(factor, 1.4) } else { share };
                let sum: f64 = shares.iter().map(|stage| weight(stage.0, stage.2)).sum();
                let mean = mean_ns * factor;
                let stages = shares.iter().map(|stage| (stage.0, mean * weight(stage.0, stage.2) / sum)).collect();
                Band { name: name.into(), n: (n as f64 * part) as u64, mean_ns: mean, stages }
            })
            .collect();
    let slow = (0..6)
        .map(|k| {
            let total = mean_ns * (14.0 - k as f64);
            let mut start = 0.0;
            let rows = shares
                .iter()
                .map(|&(stage, _, share)| {
                    let median = mean_ns * share / whole;
                    let duration = if stage == StageId::RunQueue { total - mean_ns * (1.0 - share / whole) } else { median };
                    let bar = SlowStage { stage, start_ns: start as u64, duration_ns: duration as u64, median_ns: Some(median as u64) };
                    start += duration;
                    bar
                })
                .collect();
            SlowSample {
                wr_id: 0x1000_0000_0000_0042 + k,
                round: 3 + k as u32,
                total_ns: total as u64,
                stages: rows,
                flags: vec![Flag::WokenOnCpu, Flag::ReaderPreempted],
                verdict: "the run queue took 12 times its median: kworker/1:2 (pid 77) held CPU 1 for most of it; all events are there. \
                          Pin the waiter to a CPU that runs no interrupts of this device and try again."
                    .into(),
                culprit_stage: Some(StageId::RunQueue),
                culprit: Some(Culprit { kind: Cause::RunQueue, name: "kworker/1:2".into(), pid: Some(77), taken_ns: Some(total as u64) }),
                overlay: vec![
                    taken(Cause::Irq, "irq 24 (virtio1-input.0)", total * 0.97, 2_100),
                    taken(Cause::Tick, "timer tick", total * 0.98, 900),
                ],
                taken_ns: 3_000,
                explained_share: (!event).then_some(0.02),
            }
        })
        .collect();
    Breakdown {
        joined: n,
        samples: n,
        lost: 0,
        coverage: 0.974,
        covered_samples: 0.996,
        stages,
        bands,
        flags: vec![(Flag::NoSleep, 812), (Flag::TaskBusy, 31)],
        agreement: Some(Agreement { compared: n, agreed: n }),
        slow,
        interference: interference(n, mean_ns, event),
    }
}

fn taken(kind: Cause, name: &str, start: f64, duration_ns: u64) -> OverlayItem {
    OverlayItem { kind, name: name.into(), pid: None, start_ns: start as u64, duration_ns: Some(duration_ns) }
}

fn interference(n: u64, mean_ns: f64, event: bool) -> Interference {
    let source = |kind: Cause, name: &str, pid, times: u64, each_ns: u64| Source {
        kind,
        name: name.into(),
        pid,
        times,
        samples: times,
        total_ns: times * each_ns,
        max_ns: each_ns * 3,
        unknown: 0,
    };
    Interference {
        samples: n,
        touched: n / 50,
        share: 0.004,
        usual_ns: 0,
        sources: vec![
            source(Cause::Preempted, "preempted by busy (thread 321)", Some(321), 3, (mean_ns * 40.0) as u64),
            source(Cause::Tick, "timer tick", None, n / 60, 900),
            source(Cause::Irq, "irq 24 (virtio1-input.0)", None, n / 900, 2_100),
        ],
        slow: (!event).then_some(SlowCauses {
            above_ns: (mean_ns * 3.0) as u64,
            n: n / 100,
            explained: n / 150,
            partly: 3,
            none_seen: n / 400,
        }),
        ..Interference::default()
    }
}

/// One run.
pub fn run(index: u32, op: Operation, mode: Mode, n: usize, base_ns: f64) -> RunReport {
    let metric = op.metric();
    let event = mode.may_sleep();
    let seed = u64::from(index) * 1000 + 7;
    let untraced = latency(metric, samples(seed, n, base_ns), 0);
    let traced = latency(metric, samples(seed + 1, n, base_ns * 1.06), 0);
    RunReport {
        bypass: None,
        two_sides: None,
        two_sides_absent: Some("made up: no server".into()),
        path: format!("host=guest/run={index:03}-{op}-{mode}"),
        name: format!("{op} {mode}"),
        has_twin: false,
        manifest: manifest(index, op, mode, n as u64),
        breakdown: Some(breakdown(seed + 2, n as u64, traced.mean_ns, event)),
        post: Some(spread(n as u64, 650.0)),
        server_residency: (metric == Metric::Rtt).then_some(Residency {
            rounds: 5,
            n: n as u64,
            min_ns: 180.0,
            p50_ns: Some((240.0, 260.0)),
            p99_ns: Some((900.0, 1_400.0)),
            max_ns: 31_000.0,
        }),
        cpu: CpuCost {
            thread_ns_per_op: Some(if event { base_ns * 0.45 } else { base_ns }),
            thread_share: Some(if event { 0.43 } else { 1.0 }),
            server_ns_per_op: Some(base_ns * 0.5),
            machine_ns_per_op: Some(base_ns * 1.6),
        },
        observer: Some(ObserverCost {
            p50_diff_ns: base_ns * 0.06,
            p50_interval_ns: (base_ns * 0.045, base_ns * 0.074),
            p99_diff_ns: Some(base_ns * 0.2),
            p99_interval_ns: Some((-base_ns * 0.05, base_ns * 0.5)),
            rounds: (5, 5),
        }),
        slept_share: event.then_some(0.919),
        silent: if event {
            Vec::new()
        } else {
            vec![
                SilentHook {
                    hook: "K5 completion handler".into(),
                    symbol: "ib_uverbs_comp_handler".into(),
                    hits: 0,
                    meaning: "polling asks for no event; the same attached probe fired 10,000 times in the event rounds".into(),
                },
                SilentHook {
                    hook: "mlx5 poll".into(),
                    symbol: "mlx5_ib_poll_cq".into(),
                    hits: 0,
                    meaning: "kernel consumers only; no control possible here".into(),
                },
            ]
        },
        warnings: if event { vec!["8.1 % of the samples did not sleep (NO_SLEEP)".into()] } else { Vec::new() },
        loss_share: 0.0,
        untraced: Some(untraced),
        traced: Some(traced),
    }
}

fn spread(n: u64, median_ns: f64) -> Spread {
    Spread {
        n,
        min_ns: median_ns * 0.8,
        p50_ns: Some(median_ns),
        p90_ns: Some(median_ns * 1.2),
        p99_ns: (n >= 1000).then_some(median_ns * 2.0),
        max_ns: median_ns * 9.0,
    }
}

fn poll_costs(op: Operation, mode: Mode) -> PollCosts {
    let mut costs = PollCosts {
        calls_per_block: 100,
        clock_read: Some(spread(1000, 21.0)),
        empty_poll: Some(spread(1000, 34.5)),
        ..PollCosts::default()
    };
    let mut absent = |what: &str| costs.absent.push(Absent { what: what.into(), why: format!("made up: {op} {mode} has none") });
    match op {
        Operation::Read => {
            costs.hit_poll = Some(HitPoll { waited_ns: 54_000, operations: 1100, came_back_empty: 3, poll: Some(spread(1097, 130.0)) });
        }
        _ => absent("hit_poll"),
    }
    match mode {
        Mode::Poll => {
            costs.detection_window = Some(DetectionWindow { operations: 1100, first_poll_hits: 0, window: Some(spread(1100, 170.0)) });
        }
        Mode::Event => absent("detection_window"),
    }
    costs
}

fn manifest(index: u32, op: Operation, mode: Mode, n: u64) -> Manifest {
    Manifest {
        schema_version: SCHEMA_VERSION,
        tool_version: "0.1.0".into(),
        tool_revision: Some("made-up".into()),
        started_unix_s: 1_700_000_000,
        side: Default::default(),
        kernel_threads: Vec::new(),
        server_side: Default::default(),
        host: Host {
            kernel: "6.1.0-made-up".into(),
            cpu_model: "Made-up CPU".into(),
            cpus: 2,
            memory_bytes: 2 << 30,
            boot_id: "00000000-made-up".into(),
            clocksource: Some("tsc".into()),
            governor: None,
            hypervisor: Some("kvm".into()),
            emulated: false,
            realtime: false,
            interrupts: Vec::new(),
        },
        device: Device {
            name: "rxe0".into(),
            driver: "rdma_rxe".into(),
            completion_shape: Some(CompletionShape::Anywhere),
            board: None,
            firmware: String::new(),
            port: 1,
            netdev: Some("eth0".into()),
            gid_index: 1,
            gid: "0000:0000:0000:0000:0000:ffff:c0a8:0001".into(),
            gid_type: "RoCE v2".into(),
            gid_reason: "RoCE v2 with an IPv4 address of the same subnet as the peer".into(),
            mtu_bytes: 1024,
            rate_gbps: None,
        },
        run: Run {
            index,
            op,
            mode,
            server_mode: Some(mode),
            transport: Some(Transport::Rc),
            size_bytes: 64,
            samples: n,
            metric: op.metric(),
            depth: 1,
            inline_bytes: 0,
            cq_depth: 16,
            level: Level::Std,
            same_kernel: true,
        },
        placement: Placement {
            tgid: 100,
            tid: 101,
            cq_handle: 0x7f00_dead_0000,
            qpn: 17,
            peer_qpn: 18,
            cpu: Some(1),
            server_cpu: Some(0),
            comp_vector: 0,
            irq: None,
            irq_cpus: None,
            text: "vector 0 has no interrupt of its own (soft-RoCE); the waiter runs on CPU 1".into(),
        },
        workers: Vec::new(),
        rounds: vec![Round { index: 0, traced: true, begin_ns: 1, end_ns: 2, samples: n, thread_cpu_ns: 5, ..Round::default() }],
        plan: vec![
            PlanRow {
                hook: "K5 completion handler".into(),
                kind: "kprobe".into(),
                symbol: Some("ib_uverbs_comp_handler".into()),
                program: "uverbs_comp_handler".into(),
                gives: vec!["CompHandler".into()],
                reason: "exported by ib_uverbs".into(),
                attached: true,
                hits: Some(if mode.may_sleep() { 10_000 } else { 0 }),
                silence: None,
            },
            PlanRow {
                hook: "Rq work queued".into(),
                kind: "kprobe".into(),
                reason: "rxe of this kernel has tasklets, no workqueue".into(),
                ..PlanRow::default()
            },
        ],
        losses: vec![LossRow { kind: "CompHandler".into(), attempted: 10_000, delivered: 10_000, lost: 0 }],
        missed_probes: None,
        clock_check: None,
        poll_costs: Some(poll_costs(op, mode)),
        syscalls: None,
        sealed: None,
        trace: None,
        notes: vec!["made up".into()],
        outcome: Outcome::Complete,
    }
}

/// A report over these operations, each in poll and event mode.
pub fn report(ops: &[Operation], n: usize) -> Report {
    let mut runs = Vec::new();
    for (at, op) in ops.iter().enumerate() {
        let base = 18_000.0 * (1.0 + at as f64 * 0.15);
        runs.push(run(2 * at as u32, *op, Mode::Poll, n, base));
        runs.push(run(2 * at as u32 + 1, *op, Mode::Event, n, base * 1.55));
    }
    let comparisons = ops
        .iter()
        .enumerate()
        .map(|(at, op)| Comparison {
            op: *op,
            size_bytes: 64,
            runs: (runs[2 * at].path.clone(), runs[2 * at + 1].path.clone()),
            name: format!("{op} 64 B"),
            p50_ratio: (at == 0).then_some(1.55),
            p50_ratio_interval: (at == 0).then_some((1.51, 1.6)),
            p99_ratio: (at == 0).then_some(1.62),
            cpu_ratio: (at == 0).then_some(0.45),
            verdict: if at == 0 {
                Verdict::Given("an event costs 55 % more latency at the median and saves 55 % of the thread's CPU".into())
            } else {
                Verdict::Withheld("97 % of the event samples completed inside their own post (INLINE), so no wake-up was measured".into())
            },
        })
        .collect();
    Report { schema_version: 1, runs, comparisons, traces: Vec::new(), unreadable: Vec::new(), warnings: vec![MARK.into()] }
}

/// The same report as if it had been made under emulation.
pub fn emulated(mut report: Report) -> Report {
    for run in &mut report.runs {
        run.manifest.host.emulated = true;
        run.manifest.host.hypervisor = Some("qemu".into());
    }
    report.warnings.push("Instructions were emulated (TCG): order, counts and shares hold, durations are the emulator's.".into());
    report
}
