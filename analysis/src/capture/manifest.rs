//! The manifest of a capture: everything about a run that is not a sample or an event.
//!
//! Every field that a machine may not tell is an `Option`: absent is said as absent.
use super::Sample;
use super::costs::{PollCosts, Spread};
pub use super::trace::{FoundThread, InterruptRow, KnownCq, TraceFacts, TracedProcess, UnreadCqes};
use serde::{Deserialize, Serialize};

/// Version of the capture format; a reader refuses a newer one by name.
pub const SCHEMA_VERSION: u32 = 1;

/// What a latency figure measures. Different metrics are never set side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// From before the post to the own completion of the same WR.
    PostToCqe,
    /// From before the post to the answer of the peer: a round trip.
    Rtt,
}

/// How the run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "why")]
pub enum Outcome {
    /// Still recording, or killed before it could say more.
    Recording,
    /// All rounds done.
    Complete,
    /// Stopped by the user (Ctrl-C); what was recorded is valid.
    Interrupted,
    /// The machine was too noisy to say (the warm-up never settled).
    Unstable(String),
    /// Ended by an error; the text is the whole chain.
    Failed(String),
}

/// Which end of a run a capture tells of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The client: its samples have a latency.
    #[default]
    Client,
    /// The server: its samples say when a message came and when the answer was posted. Lies in the folder `peer` of the client's capture.
    Server,
}

/// What came of the server's side of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "why")]
pub enum ServerSide {
    /// The capture says nothing about it (an older version, or the recording was cut).
    #[default]
    Unknown,
    /// It lies in the folder `peer`, whole.
    Present,
    /// It lies there, but not whole, for this reason.
    Partial(String),
    /// It is not there, for this reason.
    Absent(String),
}

/// The manifest (`manifest.json`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of the tool.
    pub tool_version: String,
    /// Git revision of the tool, where it was built from a checkout.
    pub tool_revision: Option<String>,
    /// Wall clock at the start, seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// Which end of the run this is.
    #[serde(default)]
    pub side: Side,
    /// What came of the server's own capture (of a client's manifest).
    #[serde(default)]
    pub server_side: ServerSide,
    /// The machine.
    pub host: Host,
    /// The RDMA device and its port on this side.
    pub device: Device,
    /// What was run.
    pub run: Run,
    /// Where it ran.
    pub placement: Placement,
    /// The rounds, in the order in which they ran; warm-up rounds record no samples.
    pub rounds: Vec<Round>,
    /// Kernel threads in the path whose scheduling was recorded; empty where nothing runs in threads or the probes were not there.
    #[serde(default)]
    pub kernel_threads: Vec<KernelThread>,
    /// The probe plan; empty at level `none`.
    pub plan: Vec<PlanRow>,
    /// Records by kind: attempted, delivered, lost.
    pub losses: Vec<LossRow>,
    /// Probe hits that the kernel itself dropped (`nmissed`); `None`: this kernel does not tell.
    pub missed_probes: Option<u64>,
    /// Proof that the probes' clock is the runner's clock; `None` without probes.
    pub clock_check: Option<ClockCheck>,
    /// What a poll costs, from rounds of their own; `None`: not measured.
    #[serde(default)]
    pub poll_costs: Option<PollCosts>,
    /// The system calls of the measured thread; `None`: this version or this end did not look.
    #[serde(default)]
    pub syscalls: Option<SyscallRound>,
    /// Set where this is a trace of programs that are not ours: events only, no samples and no rounds.
    #[serde(default)]
    pub trace: Option<TraceFacts>,
    /// What the sealed files hold; `None` while the capture is a log, or an older version sealed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// Plain sentences that a reader of the numbers must know.
    pub notes: Vec<String>,
    /// How it ended.
    pub outcome: Outcome,
}

/// The sums of the two sealed files: a reader that finds others says that the file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// Of `samples.parquet`.
    pub samples: Sum,
    /// Of `events.parquet`.
    pub events: Sum,
}

/// Number of rows, and the CRC-32C over them in order, each as in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Rows.
    pub rows: u64,
    /// CRC-32C (Castagnoli) of their bytes.
    pub crc32c: u32,
}

/// The machine that ran this side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// `uname -r`.
    pub kernel: String,
    /// CPU model.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Identity of this boot: two processes with the same one share a kernel.
    pub boot_id: String,
    /// Current clock source, such as `tsc`.
    pub clocksource: Option<String>,
    /// Frequency governor of CPU 0.
    pub governor: Option<String>,
    /// Hypervisor as the machine itself tells (`kvm`, `qemu`, …); `None` on bare metal or when not told.
    pub hypervisor: Option<String>,
    /// True when instructions are emulated (TCG): order, counts and shares hold, durations are the emulator's.
    pub emulated: bool,
    /// PREEMPT_RT kernel.
    pub realtime: bool,
    /// Names of the interrupts at the start of the run, so that a report can name what interrupted a thread.
    #[serde(default)]
    pub interrupts: Vec<InterruptName>,
}

/// One line of /proc/interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptName {
    /// Linux interrupt number.
    pub irq: u32,
    /// Names of its handlers, as the kernel prints them.
    pub name: String,
}

/// The RDMA device and the port that was used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Device name, such as `rxe0`.
    pub name: String,
    /// Kernel driver, such as `rdma_rxe` or `mlx5_core`.
    pub driver: String,
    /// Firmware version as the device tells it.
    pub firmware: String,
    /// Port number, from 1.
    pub port: u8,
    /// Network device of the chosen GID.
    pub netdev: Option<String>,
    /// Index of the GID that was agreed.
    pub gid_index: u32,
    /// The GID.
    pub gid: String,
    /// Its type, such as `RoCE v2`.
    pub gid_type: String,
    /// Why this GID was chosen.
    pub gid_reason: String,
    /// Active path MTU in bytes.
    pub mtu_bytes: u32,
    /// Link rate in Gb/s where known.
    pub rate_gbps: Option<f64>,
}

/// What was run: the parameters that the client dictated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Position of the run within its session.
    pub index: u32,
    /// Operation: `send`, `write`, `write-pp`, `read`, `fetch-add`, `cmp-swap`.
    pub op: String,
    /// Completion mode of the client: `poll` or `event`.
    pub mode: String,
    /// Completion mode of the server (it matters for ping-pongs only).
    pub server_mode: String,
    /// Transport: `RC`.
    pub transport: String,
    /// Message size in bytes.
    pub size_bytes: u32,
    /// Samples asked for in traced rounds.
    pub samples: u64,
    /// What the latency is.
    pub metric: Metric,
    /// Outstanding WRs.
    pub depth: u32,
    /// Bytes sent inline.
    pub inline_bytes: u32,
    /// CQ depth.
    pub cq_depth: u32,
    /// Level of the probes: `none`, `min`, `std`, `full`.
    pub level: String,
    /// True when client and server share a kernel (same boot).
    pub same_kernel: bool,
}

/// Completion vector, interrupt CPU and waiter CPU, and the identities that the join needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// Process id of this side.
    pub tgid: u32,
    /// Thread id of the measured thread (worker 0).
    pub tid: u32,
    /// Address of the `struct ibv_cq` whose completions end the samples: the kernel's `user_handle`.
    pub cq_handle: u64,
    /// Queue pair number on this side.
    pub qpn: u32,
    /// Queue pair number of the peer.
    pub peer_qpn: u32,
    /// CPU that the measured thread is pinned to; `None`: not pinned.
    pub cpu: Option<u32>,
    /// CPU of the server's thread.
    pub server_cpu: Option<u32>,
    /// Completion vector of the CQ.
    pub comp_vector: u32,
    /// Linux interrupt of that vector, where the device has one and tells.
    pub irq: Option<u32>,
    /// CPUs that this interrupt may run on, as the kernel lists them.
    pub irq_cpus: Option<String>,
    /// One sentence: vector → interrupt CPU → waiter CPU.
    pub text: String,
}

impl Round {
    /// Whether the sample lies in the time of this round, as all of its own do: the runner takes begin and end around them.
    pub fn holds(&self, sample: &Sample) -> bool {
        let times = [sample.post_begin_ns, sample.done_ns];
        times.iter().all(|ns| (self.begin_ns..=self.end_ns).contains(ns))
    }
}

/// One uninterrupted block of samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Its index; [`super::Sample::round`] refers to it.
    pub index: u32,
    /// Probes attached?
    pub traced: bool,
    /// Warm-up: not counted, no samples recorded.
    pub warmup: bool,
    /// Begin, `CLOCK_MONOTONIC` ns.
    pub begin_ns: u64,
    /// End, `CLOCK_MONOTONIC` ns.
    pub end_ns: u64,
    /// Operations done.
    pub samples: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Time that a hypervisor took from all CPUs of this machine in ns, from /proc/stat; coarse (ticks).
    #[serde(default)]
    pub steal_ns: Option<u64>,
    /// CPU time of the measured thread in ns (user and system).
    pub thread_cpu_ns: u64,
    /// CPU time of the server's thread in ns, where it told.
    pub server_cpu_ns: Option<u64>,
    /// Busy (not idle) time of all CPUs of this machine in ns, from /proc/stat; coarse (ticks).
    pub machine_busy_ns: Option<u64>,
    /// Voluntary context switches of the measured thread.
    pub voluntary_switches: u64,
    /// Involuntary context switches of the measured thread.
    pub involuntary_switches: u64,
    /// Completion events read.
    pub events: u64,
    /// Events that brought no CQE.
    pub empty_wakeups: u64,
    /// Polls after arming that found the CQE already there (no sleep).
    pub armed_poll_hits: u64,
    /// Polls that found nothing (counted in polling mode).
    pub empty_polls: u64,
    /// Hits per hook within this round, by hook name; empty in an untraced round.
    #[serde(default)]
    pub hits: Vec<(String, u64)>,
    /// Ping-pongs: from the server's receive of a message (its poll returned, or it saw the write) to before its post of the answer,
    /// on the server's clock; `None`: no ping-pong, or the server did not tell.
    #[serde(default)]
    pub server_residency: Option<Spread>,
    /// What the thread and the control connection moved meanwhile; `None`: not looked at.
    #[serde(default)]
    pub io: Option<RoundIo>,
}

/// What the measured thread and the control connection moved in a round, read before and after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundIo {
    /// The thread's own counters (`/proc/self/task/TID/io`).
    pub thread: Option<ThreadIo>,
    /// Bytes that this side sent on the control connection and the peer acknowledged (`TCP_INFO`).
    pub tcp_sent_bytes: Option<u64>,
    /// Bytes that came on the control connection.
    pub tcp_received_bytes: Option<u64>,
}

/// I/O counters of a thread. They count `read` and `write` calls of every kind of file, and no socket calls such as `sendto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadIo {
    /// Read calls.
    pub reads: u64,
    /// Bytes that they gave.
    pub read_bytes: u64,
    /// Write calls.
    pub writes: u64,
    /// Bytes that they took.
    pub written_bytes: u64,
}

/// The system calls of the measured thread, counted in a round of their own: every one of them, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallRound {
    /// Operations of the round.
    pub operations: u64,
    /// Calls within it.
    pub calls: Vec<SyscallCount>,
    /// Calls of the same thread in a round without any operation: what a round takes by itself.
    pub frame: Vec<SyscallCount>,
    /// Why nothing was counted; `None`: it was.
    pub absent: Option<String>,
}

/// Calls of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallCount {
    /// Number on this architecture.
    pub number: u32,
    /// Name.
    pub name: String,
    /// Calls.
    pub calls: u64,
}

/// A kernel thread in the completion path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelThread {
    /// Its thread id.
    pub pid: u32,
    /// Its name as the kernel tells it, such as `irq/25-virtio0-input.0` or `ksoftirqd/1`; old kernels cut it after 15 characters.
    pub name: String,
}

/// One row of the probe plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanRow {
    /// The hook in the words of the stage model, such as `K5 completion handler`.
    pub hook: String,
    /// `kprobe`, `raw_tp`.
    pub kind: String,
    /// Symbol or tracepoint that was chosen; `None`: absent on this kernel.
    pub symbol: Option<String>,
    /// Name of the BPF program.
    pub program: String,
    /// Events (names of `ebpf_probes::Kind`) that it gives.
    pub gives: Vec<String>,
    /// Why this one was chosen, or why there is none.
    pub reason: String,
    /// Attached without an error?
    pub attached: bool,
    /// Hits while attached; `None`: not counted.
    pub hits: Option<u64>,
    /// What a silent hook means here, such as "kernel consumers only; no control possible here".
    pub silence: Option<String>,
}

/// Records of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossRow {
    /// Name of the kind.
    pub kind: String,
    /// Records that the probes tried to write.
    pub attempted: u64,
    /// Records that the reader got.
    pub delivered: u64,
    /// Records that found no room.
    pub lost: u64,
}

/// A kernel time stamp taken between two of the runner's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockCheck {
    /// `clock_gettime(CLOCK_MONOTONIC)` before, ns.
    pub before_ns: u64,
    /// `bpf_ktime_get_ns()`, ns.
    pub kernel_ns: u64,
    /// `clock_gettime(CLOCK_MONOTONIC)` after, ns.
    pub after_ns: u64,
}
