//! Synthetic captures with a known truth, for tests and for trying charts. The event orders are those of real kernels
//! (6.1: tasklet and inline completion; 6.12: workqueue and nested handler; two guests: interrupt and NAPI); the durations are made up.
use crate::capture::manifest::{
    ClockCheck, Device, Host, LossRow, Metric, Outcome, Placement, PlanRow, Round, Run, SCHEMA_VERSION, ServerSide, Side,
};
use crate::capture::{self, LogWriter, Manifest, Sample};
use crate::stats::Rng;
use ebpf_probes::*;
use std::collections::BTreeMap;
use std::path::Path;

/// What is imitated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// 6.1, one guest, `send` with completion events.
    SendEvent61,
    /// 6.12, one guest, `send` with completion events.
    SendEvent612,
    /// `read` by polling on 6.12.
    ReadPoll,
    /// 6.1, one guest, `read` with completion events: the CQE comes inside the post.
    ReadInline61,
    /// 6.1, two guests, `read` with completion events: interrupt, NAPI, softirq.
    TwoGuests,
}

impl Scenario {
    /// All of them.
    pub const ALL: &'static [Scenario] =
        &[Scenario::SendEvent61, Scenario::SendEvent612, Scenario::ReadPoll, Scenario::ReadInline61, Scenario::TwoGuests];

    /// Operation and mode.
    pub fn op_mode(self) -> (&'static str, &'static str) {
        match self {
            Scenario::SendEvent61 | Scenario::SendEvent612 => ("send", "event"),
            Scenario::ReadPoll => ("read", "poll"),
            Scenario::ReadInline61 | Scenario::TwoGuests => ("read", "event"),
        }
    }
}

/// The stages of one sample by name, in ns.
pub type Truth = BTreeMap<&'static str, u64>;

/// A synthetic capture.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// Its manifest.
    pub manifest: Manifest,
    /// The samples, by time.
    pub samples: Vec<Sample>,
    /// The records as the ring gave them.
    pub events: Vec<(Header, Body)>,
    /// For each sample of a traced round, by `begin_wr_id`: the true stages.
    pub truth: BTreeMap<u64, Truth>,
}

const TID: u32 = 1000;
const TGID: u32 = 999;
const SERVER: u32 = 2000;
const WORKER: u32 = 300;
const QPN: u32 = 17;
const CQ_HANDLE: u64 = 0x7f00_0000_1000;
const CQ: u64 = 0xffff_8880_0100_0000;
const SEND_CQ: u64 = 0xffff_8880_0200_0000;
const CHANNEL: u64 = 0xffff_8880_0300_0060;
const QP: u64 = 0xffff_8880_0400_0000;
const WORK: u64 = 0xffff_8880_0400_0400;
const IRQ: u32 = 25;

/// Makes a capture of `rounds` rounds (every second one untraced) with `per_round` samples each.
pub fn generate(scenario: Scenario, rounds: u32, per_round: u32, seed: u64) -> Fixture {
    let mut maker = Maker { rng: Rng::new(seed), now: 1_000_000_000, events: Vec::new(), truth: Truth::new(), traced: true };
    let mut fixture = Fixture { manifest: manifest(scenario, per_round), samples: Vec::new(), events: Vec::new(), truth: BTreeMap::new() };
    let mut wr_id = 1u64 << 40;
    for index in 0..rounds {
        maker.traced = index % 2 == 0;
        let begin_ns = maker.now;
        for _ in 0..per_round {
            wr_id += 2;
            let mut sample = Sample { begin_wr_id: wr_id, end_wr_id: wr_id, qpn: QPN, round: index, ..Sample::default() };
            maker.truth.clear();
            match scenario {
                Scenario::SendEvent61 | Scenario::SendEvent612 => maker.send_event(&mut sample, scenario == Scenario::SendEvent612),
                Scenario::ReadPoll => maker.read_poll(&mut sample),
                Scenario::ReadInline61 => maker.read_inline(&mut sample),
                Scenario::TwoGuests => maker.two_guests(&mut sample),
            }
            maker.now = sample.done_ns + 300;
            if maker.traced {
                fixture.truth.insert(sample.begin_wr_id, maker.truth.clone());
            }
            fixture.samples.push(sample);
        }
        let elapsed = maker.now - begin_ns;
        let event = scenario.op_mode().1 == "event";
        fixture.manifest.rounds.push(Round {
            index,
            traced: maker.traced,
            begin_ns,
            end_ns: maker.now,
            samples: per_round.into(),
            thread_cpu_ns: if event { elapsed / 3 } else { elapsed },
            machine_busy_ns: Some(elapsed),
            events: if event { per_round.into() } else { 0 },
            hits: if maker.traced { vec![("K5 completion handler".into(), if event { per_round.into() } else { 0 })] } else { vec![] },
            ..Round::default()
        });
        maker.now += 50_000;
    }
    fixture.events = maker.events;
    fixture
}

/// Writes a fixture as the log of a capture, samples and events interleaved in blocks.
///
/// # Errors
/// Those of the writer.
pub fn write_log(fixture: &Fixture, dir: &Path) -> capture::Result<()> {
    let mut writer = LogWriter::create(dir, &fixture.manifest)?;
    let raw = ring_bytes(&fixture.events);
    let half = fixture.samples.len() / 2;
    writer.samples(&fixture.samples[..half])?;
    writer.events(&raw)?;
    writer.samples(&fixture.samples[half..])?;
    writer.finish(&fixture.manifest)?;
    Ok(())
}

/// The records back to back, as the ring gives them.
pub fn ring_bytes(events: &[(Header, Body)]) -> Vec<u8> {
    let mut raw = Vec::new();
    let mut one = [0; layout::RECORD_MAX_BYTES];
    for (header, body) in events {
        let size = encode(*header, body, &mut one);
        raw.extend_from_slice(&one[..size]);
    }
    raw
}

struct Maker {
    rng: Rng,
    now: u64,
    events: Vec<(Header, Body)>,
    truth: Truth,
    traced: bool,
}

impl Maker {
    fn wait(&mut self, stage: &'static str, around_ns: u64) {
        let spent = around_ns / 2 + self.rng.below(around_ns) + if self.rng.below(200) == 0 { around_ns * 20 } else { 0 };
        *self.truth.entry(stage).or_default() += spent;
        self.now += spent;
    }

    fn emit(&mut self, cpu: u32, pid: u32, body: Body) {
        if self.traced {
            let tgid = if pid == TID { TGID } else { pid };
            self.events.push((Header { cpu, ts_ns: self.now, pid, tgid, ..Header::default() }, body));
        }
    }

    fn post(&mut self, sample: &mut Sample) {
        sample.post_begin_ns = self.now;
        self.wait("post", 400);
        self.emit(0, TID, Body::RxePost(RxePost { qp: QP, qpn: QPN, reserved: 0 }));
    }

    fn task(&mut self, cpu: u32, pid: u32, which: u32) {
        self.emit(cpu, pid, Body::RxeTask(RxeTask { qp: QP, qpn: QPN, path: which }));
    }

    fn xmit(&mut self, cpu: u32, pid: u32, wr_id: u64) {
        let psn = (wr_id & 0xff_ffff) as u32;
        self.emit(cpu, pid, Body::RxeXmit(RxeXmit { qp: QP, wr_id, qpn: QPN, psn, opcode: 4, reserved: 0 }));
    }

    fn requester(&mut self, wr_id: u64, workqueue: bool) {
        let (cpu, pid) = if workqueue { (1, WORKER) } else { (0, TID) };
        self.wait("requester queue", 40);
        if workqueue {
            self.emit(0, TID, Body::WorkQueue(Work { work: WORK, func: 1 }));
            self.wait("requester workqueue", 2_000);
            self.emit(1, WORKER, Body::WorkStart(Work { work: WORK, func: 1 }));
            self.wait("requester queue", 30);
        }
        self.task(cpu, pid, if workqueue { path::SENDER } else { path::REQUESTER });
        self.wait("requester", 600);
        self.xmit(cpu, pid, wr_id);
    }

    /// The client arms, polls once, finds nothing and falls asleep; in the meantime the peer works.
    fn sleep(&mut self, sample: &mut Sample) {
        let sent = self.now;
        sample.post_end_ns = self.now + 100;
        sample.arm_ns = sample.post_end_ns + 50;
        sample.wait_begin_ns = sample.arm_ns + 400;
        self.now = sample.wait_begin_ns + 700;
        self.emit(0, TID, Body::SchedSwitch(Switch { prev_pid: TID, next_pid: 0, ..Switch::default() }));
        *self.truth.entry("wire + peer").or_default() += self.now - sent;
    }

    fn cq_post(&mut self, cpu: u32, pid: u32, cq: u64, wr_id: u64) {
        self.emit(cpu, pid, Body::CqPost(CqPost { cq, wr_id, qpn: QPN, status: 0, opcode: 0, byte_len: 64 }));
    }

    fn rcv(&mut self, cpu: u32, pid: u32, path: u32) {
        self.emit(cpu, pid, Body::RxeRcv(RxeRcv { qp: QP, skb: 0xabc, qpn: QPN, path }));
    }

    fn tasklet_on(&mut self, cpu: u32, pid: u32) {
        self.wait("notify delay", 300);
        self.emit(cpu, pid, Body::SoftirqEntry(Softirq { vec: 6, reserved: 0 }));
        self.wait("notify delay", 60);
        self.emit(cpu, pid, Body::TaskletEntry(Tasklet { tasklet: 1, func: 2 }));
        self.wait("bottom half", 60);
    }

    /// Handler, wake-up, switch, return, poll. The waker runs on CPU 1, the client on CPU 0.
    fn wake(&mut self, sample: &mut Sample, pid: u32, in_softirq: bool) {
        let body = CompHandler { cq: CQ, user_handle: CQ_HANDLE, channel: CHANNEL, owner_tgid: TGID, restrack_id: 4 };
        self.emit(1, pid, Body::CompHandler(body));
        self.wait("handler", 200);
        self.emit(1, pid, Body::SchedWaking(Wake { target_pid: TID, target_cpu: u32::MAX }));
        let idle = self.rng.below(2) == 0;
        if idle {
            self.wait("idle exit", 900);
            self.emit(0, 0, Body::CpuIdleExit(CpuIdle { state: 1, reserved: 0 }));
        }
        self.wait("activation", 500);
        self.emit(if idle { 0 } else { 1 }, 0, Body::SchedWakeup(Wake { target_pid: TID, target_cpu: u32::MAX }));
        self.wait("run queue", 700);
        let mut comm = [0; 16];
        comm[..9].copy_from_slice(b"swapper/0");
        self.emit(0, 0, Body::SchedSwitch(Switch { prev_pid: 0, next_pid: TID, prev_comm: comm, ..Switch::default() }));
        if in_softirq {
            let now = self.now;
            self.now += 10;
            self.emit(1, pid, Body::SoftirqExit(Softirq { vec: 6, reserved: 0 }));
            self.now = now;
        }
        self.wait("return to user", 800);
        sample.wait_end_ns = self.now;
        sample.waits = 1;
        self.wait("poll", 200);
        sample.done_ns = self.now;
    }

    fn send_event(&mut self, sample: &mut Sample, new_kernel: bool) {
        sample.end_wr_id = sample.begin_wr_id + 1;
        self.post(sample);
        self.requester(sample.begin_wr_id, new_kernel);
        // The acknowledgement of the send: its CQE goes to another CQ and must not be taken for the end.
        let sent = self.now;
        self.now += 90;
        self.rcv(1, SERVER, path::COMPLETER);
        self.now += 20;
        self.task(1, SERVER, path::COMPLETER);
        self.now += 20;
        self.cq_post(1, SERVER, SEND_CQ, sample.begin_wr_id);
        *self.truth.entry("wire + peer").or_default() += self.now - sent;
        self.sleep(sample);
        self.wait("wire + peer", 3_000);
        let pid = if new_kernel { WORKER } else { SERVER };
        self.rcv(1, SERVER, path::RESPONDER);
        self.wait("task queue", 50);
        if new_kernel {
            self.emit(1, SERVER, Body::WorkQueue(Work { work: WORK + 64, func: 1 }));
            self.wait("task workqueue", 1_500);
            self.emit(1, WORKER, Body::WorkStart(Work { work: WORK + 64, func: 1 }));
            self.wait("task queue", 40);
        }
        self.task(1, pid, if new_kernel { path::RECEIVER } else { path::RESPONDER });
        self.wait("protocol", 400);
        self.cq_post(1, pid, CQ, sample.end_wr_id);
        if new_kernel {
            self.wait("notify delay", 30);
        } else {
            self.tasklet_on(1, pid);
        }
        self.wake(sample, pid, !new_kernel);
    }

    fn read_poll(&mut self, sample: &mut Sample) {
        self.post(sample);
        self.requester(sample.begin_wr_id, true);
        sample.post_end_ns = self.now.saturating_sub(100).max(sample.post_begin_ns);
        self.wait("wire + peer", 2_000);
        // The sender task is still running and takes the answer along.
        self.rcv(1, WORKER, path::COMPLETER);
        self.wait("protocol (start not seen)", 500);
        self.cq_post(1, WORKER, CQ, sample.end_wr_id);
        self.wait("detect", 150);
        sample.done_ns = self.now;
    }

    fn read_inline(&mut self, sample: &mut Sample) {
        self.post(sample);
        self.requester(sample.begin_wr_id, false);
        self.wait("wire + peer", 900);
        self.rcv(0, TID, path::COMPLETER);
        self.wait("task queue", 40);
        self.task(0, TID, path::COMPLETER);
        self.wait("protocol", 300);
        self.cq_post(0, TID, CQ, sample.end_wr_id);
        self.wait("post return after completion", 300);
        sample.post_end_ns = self.now;
        sample.arm_ns = self.now + 30;
        self.wait("detect", 500);
        sample.done_ns = self.now.max(sample.arm_ns);
    }

    fn two_guests(&mut self, sample: &mut Sample) {
        self.post(sample);
        self.requester(sample.begin_wr_id, false);
        self.sleep(sample);
        self.wait("wire + peer", 20_000);
        self.emit(1, 0, Body::IrqEntry(Irq { irq: IRQ, reserved: 0 }));
        self.wait("rx interrupt", 250);
        self.emit(1, 0, Body::IrqExit(Irq { irq: IRQ, reserved: 0 }));
        self.wait("rx interrupt", 50);
        self.emit(1, 0, Body::SoftirqEntry(Softirq { vec: 3, reserved: 0 }));
        self.wait("rx softirq", 900);
        self.rcv(1, 0, path::COMPLETER);
        self.wait("task queue", 40);
        self.task(1, 0, path::COMPLETER);
        self.wait("protocol", 300);
        self.cq_post(1, 0, CQ, sample.end_wr_id);
        self.wait("notify delay", 100);
        self.emit(1, 0, Body::NapiPoll(Napi { work: 1, budget: 64 }));
        self.emit(1, 0, Body::SoftirqExit(Softirq { vec: 3, reserved: 0 }));
        self.tasklet_on(1, 0);
        self.wake(sample, 0, true);
    }
}

fn manifest(scenario: Scenario, per_round: u32) -> Manifest {
    let (op, mode) = scenario.op_mode();
    let gives = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name().to_string()).collect::<Vec<_>>();
    let all = Kind::ALL.iter().copied().filter(|kind| !matches!(kind, Kind::EventRead | Kind::NetPacket)).collect::<Vec<_>>();
    let row = |hook: &str, symbol: &str, kinds: &[Kind], silence: Option<&str>| PlanRow {
        hook: hook.into(),
        kind: "kprobe".into(),
        symbol: Some(symbol.into()),
        program: symbol.into(),
        gives: gives(kinds),
        reason: "present on this kernel".into(),
        attached: true,
        hits: silence.map(|_| 0),
        silence: silence.map(Into::into),
    };
    let two = scenario == Scenario::TwoGuests;
    Manifest {
        schema_version: SCHEMA_VERSION,
        tool_version: "0.1.0".into(),
        tool_revision: None,
        started_unix_s: 1_700_000_000,
        side: Side::Client,
        server_side: ServerSide::Unknown,
        host: Host { kernel: "6.1.0-fixture".into(), cpus: 2, boot_id: "fixture".into(), emulated: true, ..Host::default() },
        device: Device { name: "rxe0".into(), driver: "rdma_rxe".into(), ..Device::default() },
        run: Run {
            index: 0,
            op: op.into(),
            mode: mode.into(),
            server_mode: mode.into(),
            transport: "RC".into(),
            size_bytes: 64,
            samples: per_round.into(),
            metric: if op == "send" { Metric::Rtt } else { Metric::PostToCqe },
            depth: 1,
            inline_bytes: 0,
            cq_depth: 64,
            level: "std".into(),
            same_kernel: !two,
        },
        placement: Placement {
            tgid: TGID,
            tid: TID,
            cq_handle: CQ_HANDLE,
            qpn: QPN,
            peer_qpn: QPN + 1,
            cpu: Some(0),
            ..Placement::default()
        },
        rounds: Vec::new(),
        kernel_threads: Vec::new(),
        plan: vec![
            row("K5 completion handler", "ib_uverbs:ib_uverbs_comp_handler", &[Kind::CompHandler], None),
            row("other hooks", "all", &all, None),
            row("mlx5 poll", "mlx5_ib:mlx5_ib_poll_cq", &[], Some("kernel consumers only; no control possible here")),
        ],
        losses: vec![LossRow { kind: "comp_handler".into(), attempted: 10, delivered: 10, lost: 0 }],
        missed_probes: None,
        clock_check: Some(ClockCheck { before_ns: 10, kernel_ns: 11, after_ns: 12 }),
        poll_costs: None,
        syscalls: None,
        sealed: None,
        trace: None,
        notes: Vec::new(),
        outcome: Outcome::Complete,
    }
}
