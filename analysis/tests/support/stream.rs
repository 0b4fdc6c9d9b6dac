//! Recorded event streams as text: what the kernel does for a completion, by driver and kernel, with the stages that must come out.
//! `tests/streams/*.stream`; the lines are explained by [`Stream::parse`].
use analysis::testing::{Scenario, generate};
use capture::manifest::{KernelThread, Manifest};
use capture::{Operation, Record, Sample};
use ebpf_probes::*;
use std::collections::BTreeMap;

/// The measured thread of every stream, and its process.
pub const TID: u32 = 1000;
const TGID: u32 = 999;
/// Samples are so far apart.
const SPACING_NS: u64 = 1_000_000;
/// What `wakes` adds to a stream and what `wake-up` stands for in an expectation.
const WAKE_UP: [(&str, i64); 5] = [("handler", 150), ("activation", 200), ("run queue", 500), ("return to user", 1000), ("poll", 200)];

/// One stream.
#[derive(Clone, Debug)]
pub struct Stream {
    pub manifest: Manifest,
    pub samples: Vec<Sample>,
    pub events: Vec<(Header, Body)>,
    /// For every sample: its stages, and its flags.
    pub expected: Vec<(BTreeMap<String, i64>, Vec<String>)>,
}

impl Stream {
    /// Reads a stream. `#` begins a comment. Lines, in order:
    /// - `driver NAME`, `realtime`, `op NAME`, `mode NAME`, `depth N`, `same-kernel`, `irq N` (of the completion vector), `thread PID NAME`,
    ///   `without KIND…` (the plan lacks these kinds), `stolen NS` (by a hypervisor in the round);
    /// - `sample post BEGIN..END [arm T] [wait BEGIN..END] done T [empty N]`: times count from the begin of the sample;
    /// - events: `T CPU/PID EVENT …`, see [`Parser::event`];
    /// - `expect STAGE NS; …` (`wake-up` stands for the stages from handler to poll as `wakes` makes them), `flags NAME…`.
    pub fn parse(text: &str) -> Stream {
        let mut manifest = generate(Scenario::SendEvent612, 1, 0, 1).manifest;
        manifest.run.op = Operation::Read;
        manifest.run.same_kernel = false;
        manifest.rounds[0].begin_ns = 0;
        let mut parser =
            Parser { stream: Stream { manifest, samples: Vec::new(), events: Vec::new(), expected: Vec::new() }, base_ns: SPACING_NS };
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                parser.line(line);
            }
        }
        parser.stream.events.sort_by_key(|(header, _)| header.ts_ns);
        assert_eq!(parser.stream.samples.len(), parser.stream.expected.len(), "every sample has an expectation");
        parser.stream
    }

    /// The records as the reader of a capture gives them.
    pub fn records(&self) -> Vec<Record> {
        let raw = analysis::testing::ring_bytes(&self.events);
        let (mut rest, mut records) = (&raw[..], Vec::new());
        while let capture::record::Split::Whole(record, behind) = capture::record::split(rest) {
            records.push(record);
            rest = behind;
        }
        records
    }
}

struct Parser {
    stream: Stream,
    base_ns: u64,
}

fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("{word} is not a number"))
}

/// A name as an address: the same name gives the same one.
fn address(name: &str) -> u64 {
    0xffff_8880_0000_0000 + name.bytes().fold(7, |sum: u64, byte| (sum * 131 + u64::from(byte)) & 0xf_ffff) * 0x1000
}

impl Parser {
    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let manifest = &mut self.stream.manifest;
        match words[..] {
            ["driver", name] => manifest.device.driver = name.into(),
            ["realtime"] => manifest.host.realtime = true,
            ["same-kernel"] => manifest.run.same_kernel = true,
            ["op", name] => manifest.run.op = name.parse().expect("an operation"),
            ["mode", name] => manifest.run.mode = name.parse().expect("a mode"),
            ["depth", n] => manifest.run.depth = number(n),
            ["irq", n] => manifest.placement.irq = Some(number(n)),
            ["stolen", ns] => manifest.rounds[0].steal_ns = Some(number(ns)),
            ["thread", pid, name] => manifest.kernel_threads.push(KernelThread { pid: number(pid), name: name.into() }),
            ["without", ref kinds @ ..] => {
                manifest.plan.iter_mut().for_each(|row| row.gives.retain(|kind| !kinds.contains(&kind.as_str())));
            }
            ["sample", ref words @ ..] => self.sample(words),
            ["expect", ..] => self.expect(line.trim_start_matches("expect")),
            ["flags", ref names @ ..] => {
                let (_, flags) = self.stream.expected.last_mut().expect("flags come after expect");
                *flags = names.iter().map(ToString::to_string).collect();
                flags.sort();
            }
            [time, place, ref words @ ..] => {
                let (cpu, pid) = place.split_once('/').unwrap_or_else(|| panic!("{line}"));
                self.event(number(time), number(cpu), number(pid), words);
            }
            _ => panic!("{line}"),
        }
    }

    fn sample(&mut self, words: &[&str]) {
        let index = self.stream.samples.len() as u64;
        let base_ns = SPACING_NS * (index + 1);
        self.base_ns = base_ns;
        let at = |word: &str| base_ns + number::<u64>(word);
        let range = |word: &str| {
            let (begin, end) = word.split_once("..").expect("BEGIN..END");
            (at(begin), at(end))
        };
        let qpn = self.stream.manifest.placement.qpn;
        let mut sample = Sample { begin_wr_id: 100 + index, end_wr_id: 100 + index, qpn, ..Sample::default() };
        for pair in words.chunks(2) {
            match pair {
                ["post", word] => (sample.post_begin_ns, sample.post_end_ns) = range(word),
                ["arm", word] => sample.arm_ns = at(word),
                ["wait", word] => {
                    (sample.wait_begin_ns, sample.wait_end_ns) = range(word);
                    sample.waits = 1;
                }
                ["done", word] => sample.done_ns = at(word),
                ["empty", word] => {
                    sample.empty_wakeups = number(word);
                    sample.waits += sample.empty_wakeups;
                }
                _ => panic!("{pair:?}"),
            }
        }
        if sample.arm_ns == 0 && sample.wait_end_ns > 0 {
            sample.arm_ns = sample.post_end_ns + 10;
        }
        self.stream.manifest.rounds[0].end_ns = sample.done_ns + SPACING_NS;
        self.stream.samples.push(sample);
    }

    fn expect(&mut self, text: &str) {
        let mut stages = BTreeMap::new();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            if part == "wake-up" {
                WAKE_UP.iter().for_each(|(name, ns)| *stages.entry((*name).to_owned()).or_default() += ns);
                continue;
            }
            let (name, ns) = part.rsplit_once(' ').unwrap_or_else(|| panic!("{part}"));
            *stages.entry(name.trim().to_owned()).or_default() += number::<i64>(ns);
        }
        self.stream.expected.push((stages, Vec::new()));
    }

    fn push(&mut self, time: u64, cpu: u32, pid: u32, body: Body) {
        let tgid = if pid == TID { TGID } else { pid };
        self.stream.events.push((Header { cpu, pid, tgid, ts_ns: self.base_ns + time, ..Header::default() }, body));
    }

    /// `irq_entry N`, `irq_exit N`, `softirq VEC`, `softirq_exit VEC`, `tasklet NAME`, `work_queue NAME`, `work_start NAME`,
    /// `enqueue CQ IRQ` (K3), `comp CQ IRQ` (the driver's callback), `driver_irq NAME IRQ|-` (K1b), `driver_half NAME`,
    /// `handler CQ[@CHANNEL]` (CQ `A` is the measured one), `waking PID`, `wakeup PID`, `switch PREV>NEXT [preempted]`, `idle_exit`,
    /// `rxe_post`, `rxe_task PATH`, `xmit WR`, `rcv PATH`, `cq_post CQ WR`; `wakes` is a handler of `A` with its wake-up.
    fn event(&mut self, time: u64, cpu: u32, pid: u32, words: &[&str]) {
        let qpn = self.stream.manifest.placement.qpn;
        let irq = |word: &str| if word == "-" { u32::MAX } else { number(word) };
        let paths = [("completer", path::COMPLETER), ("responder", path::RESPONDER), ("requester", path::REQUESTER)];
        let of_path = |word: &str| paths.iter().find(|(name, _)| *name == word).unwrap_or_else(|| panic!("{word}")).1;
        let driver_cq =
            |name: &str, number| DriverCq { driver_cq: address(name) + 224, cqn: address(name) as u32 & 0xff_ffff, irq: irq(number) };
        let wake = |target| Wake { target_pid: target, target_cpu: u32::MAX };
        let body = match *words {
            ["irq_entry", n] => Body::IrqEntry(Irq { irq: number(n), reserved: 0 }),
            ["irq_exit", n] => Body::IrqExit(Irq { irq: number(n), reserved: 0 }),
            ["softirq", vec] => Body::SoftirqEntry(Softirq { vec: number(vec), reserved: 0 }),
            ["softirq_exit", vec] => Body::SoftirqExit(Softirq { vec: number(vec), reserved: 0 }),
            ["tasklet", name] => Body::TaskletEntry(Tasklet { tasklet: address(name), func: 2 }),
            ["work_queue", name] => Body::WorkQueue(Work { work: address(name), func: 1 }),
            ["work_start", name] => Body::WorkStart(Work { work: address(name), func: 1 }),
            ["enqueue", cq, n] => Body::DriverEnqueue(driver_cq(cq, n)),
            ["comp", cq, n] => Body::DriverComp(driver_cq(cq, n)),
            ["driver_irq", name, n] => Body::DriverIrq(DriverEntry { object: address(name), irq: irq(n), reserved: 0 }),
            ["driver_half", name] => Body::DriverBottomHalf(DriverEntry { object: address(name), irq: u32::MAX, reserved: 0 }),
            ["handler", cq] => return self.handler(time, cpu, pid, cq),
            ["waking", target] => Body::SchedWaking(wake(number(target))),
            ["wakeup", target] => Body::SchedWakeup(wake(number(target))),
            ["switch", pids] | ["switch", pids, "preempted"] => {
                let (prev, next) = pids.split_once('>').expect("PREV>NEXT");
                let preempted = u32::from(words.len() == 3);
                Body::SchedSwitch(Switch { prev_pid: number(prev), next_pid: number(next), preempted, ..Switch::default() })
            }
            ["idle_exit"] => Body::CpuIdleExit(CpuIdle { state: u32::MAX, reserved: 0 }),
            ["rxe_post"] => Body::RxePost(RxePost { qp: 1, qpn, reserved: 0 }),
            ["rxe_task", which] => Body::RxeTask(RxeTask { qp: 1, qpn, path: of_path(which) }),
            ["xmit", wr] => Body::RxeXmit(RxeXmit { qp: 1, wr_id: number(wr), qpn, psn: number(wr), opcode: 12, reserved: 0 }),
            ["rcv", which] => Body::RxeRcv(RxeRcv { qp: 1, skb: 5, qpn, path: of_path(which) }),
            ["cq_post", cq, wr] => Body::CqPost(CqPost { cq: address(cq), wr_id: number(wr), qpn, status: 0, opcode: 0, byte_len: 64 }),
            ["wakes"] => {
                self.handler(time, cpu, pid, "A");
                self.push(time + 150, cpu, pid, Body::SchedWaking(wake(TID)));
                self.push(time + 350, cpu, pid, Body::SchedWakeup(wake(TID)));
                return self.push(time + 850, 0, 0, Body::SchedSwitch(Switch { prev_pid: 0, next_pid: TID, ..Switch::default() }));
            }
            _ => panic!("{words:?}"),
        };
        self.push(time, cpu, pid, body);
    }

    fn handler(&mut self, time: u64, cpu: u32, pid: u32, cq: &str) {
        let (cq, channel) = cq.split_once('@').unwrap_or((cq, cq));
        let placement = &self.stream.manifest.placement;
        let user_handle = if cq == "A" { placement.cq_handle } else { placement.cq_handle + (address(cq) & 0xf_ffff) };
        let owner_tgid = placement.tgid;
        let body = CompHandler { cq: address(cq), user_handle, channel: address(channel) + 0x60, owner_tgid, restrack_id: 4 };
        self.push(time, cpu, pid, Body::CompHandler(body));
    }
}
