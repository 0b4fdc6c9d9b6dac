//! The manifest of a capture: everything about a run that is not a sample or an event.
//!
//! Every field that a machine may not tell is an `Option`: absent is said as absent.

pub mod costs;
mod device;
mod file;
mod host;
mod placement;
mod plan;
mod rounds;
mod run;
mod trace;
mod unasked;
mod workers;

pub use crate::metric::Metric;
use crate::side::Side;
use costs::PollCosts;
pub use device::{Device, EMULATED_BOARD, is_emulated_board};
pub use file::read;
pub(crate) use file::write;
pub use host::{Host, InterruptName};
pub use placement::Placement;
pub use plan::{ClockCheck, KernelThread, LossRow, PlanRow};
pub use rounds::{Round, RoundIo, SyscallCount, SyscallRound, ThreadIo};
pub use run::{Outcome, Run, ServerSide};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
pub use trace::{FoundThread, InterruptRow, KnownCq, TraceFacts, TracedProcess, UnreadCqes};
pub use unasked::Unasked;
pub use workers::{CompletionQueue, QueuePair, Worker};

/// Version of the capture format; a reader refuses a newer one by name.
pub const SCHEMA_VERSION: u32 = 2;

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
    /// Where worker 0 ran; what a capture of schema version 1 tells of its one worker.
    pub placement: Placement,
    /// The measured threads; empty in a trace and in captures of schema version 1: ask [`Manifest::workers`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<Worker>,
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

impl Manifest {
    /// A manifest that tells what is run, and nothing else yet.
    pub fn new(run: Run) -> Manifest {
        Manifest {
            schema_version: SCHEMA_VERSION,
            tool_version: String::new(),
            tool_revision: None,
            started_unix_s: 0,
            side: Side::Client,
            server_side: ServerSide::Unknown,
            host: Host::default(),
            device: Device::default(),
            run,
            placement: Placement::default(),
            workers: Vec::new(),
            rounds: Vec::new(),
            kernel_threads: Vec::new(),
            plan: Vec::new(),
            losses: Vec::new(),
            missed_probes: None,
            clock_check: None,
            poll_costs: None,
            syscalls: None,
            trace: None,
            sealed: None,
            notes: Vec::new(),
            outcome: Outcome::Recording,
        }
    }

    /// Sets the measured threads. [`Manifest::placement`] tells the same of the first one, with `rest` for what a worker does not tell.
    pub fn set_workers(&mut self, workers: Vec<Worker>, rest: Placement) {
        self.placement = match workers.first() {
            Some(first) => Placement::of_worker(first, rest),
            None => rest,
        };
        self.workers = workers;
    }

    /// The measured threads, also of a capture of schema version 1, which had one. None in a trace.
    pub fn workers(&self) -> Cow<'_, [Worker]> {
        if self.workers.is_empty() && self.trace.is_none() {
            return Cow::Owned(vec![Worker::of_placement(&self.placement, self.run.mode)]);
        }
        Cow::Borrowed(&self.workers)
    }
}

impl Sum {
    /// Adds one row.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        (self.rows, self.crc32c) = (self.rows + 1, crc32c::crc32c_append(self.crc32c, bytes));
    }
}
