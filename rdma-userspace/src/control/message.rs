//! What client and server say to each other. The client dictates; the server checks, obeys and answers.
//!
//! `Hello` → `Welcome`, perhaps `Observe` → `Observing`; then per run `Open` → `Opened`, `Probes` → `ProbesSet` where the next rounds want
//! the server's probes changed, per round `Round` → `RoundStarted` … `Collect` → `RoundDone`; before `Close` → `Closed` the server's side of
//! the run is fetched (`Side`, and per round `SideRound` and `Part`); at the end `Bye`. Between `RoundStarted` and `Collect` neither side says a word, except that a side that fails says `Failed` or `Abort`.
use crate::runner::{Params, PeerInfo, RoundStats};
use crate::verbs::GidEntry;
use analysis::capture::costs::Spread;
use analysis::capture::manifest::{ClockCheck, Device, Host, KernelThread, LossRow, Placement, PlanRow};
use serde::{Deserialize, Serialize};

/// From the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// First message: who is there.
    Hello {
        /// [`super::PROTOCOL_VERSION`].
        protocol: u32,
        /// The token.
        token: String,
        /// Version of the tool, for messages.
        tool_version: String,
    },
    /// Make a queue pair for a run and connect it.
    Open {
        /// The client's number of the run.
        run: u32,
        /// Parameters for the server's end.
        params: Box<Params>,
        /// CPU for the server's thread; `None`: not pinned.
        cpu: Option<u32>,
        /// The client's end.
        client: PeerInfo,
    },
    /// Get ready for a round.
    Round {
        /// Of this run.
        run: u32,
        /// Index of the round.
        index: u32,
        /// Operations in it.
        samples: u64,
        /// What becomes of the samples that the server makes in it.
        keep: Keep,
    },
    /// Load probes of this level (a name of [`crate::probes::Level`]) for the traced rounds to come.
    Observe {
        /// The level.
        level: String,
    },
    /// Attach the probes, or drop every link, before the next round.
    Probes {
        /// Attached?
        traced: bool,
    },
    /// What did you record of this run?
    Side {
        /// The run.
        run: u32,
    },
    /// What did you record of this round?
    SideRound {
        /// Of this run.
        run: u32,
        /// Position in [`Side::rounds`].
        at: u32,
    },
    /// The bytes of a round: its samples, then its records.
    Fetch {
        /// Of this run.
        run: u32,
        /// Position in [`Side::rounds`].
        at: u32,
        /// First byte that is wanted.
        from: u64,
    },
    /// The client's round is over: tell how yours went.
    Collect {
        /// Of this run.
        run: u32,
    },
    /// Take the run's queue pair down.
    Close {
        /// Of this run.
        run: u32,
    },
    /// The client gives up, for this reason.
    Abort {
        /// The client's error.
        why: String,
    },
    /// The client is done.
    Bye,
}

/// From the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The token was right.
    Welcome(ServerFacts),
    /// The client is not served, for this reason.
    Refused {
        /// The reason.
        why: String,
    },
    /// The run's queue pair is ready to receive.
    Opened {
        /// The server's end.
        server: PeerInfo,
        /// Thread id of the server's measured thread.
        tid: u32,
    },
    /// The server's thread is in its round.
    RoundStarted,
    /// How the server's round went.
    RoundDone {
        /// Its counters.
        stats: RoundStats,
        /// Ping-pongs: from the receive of a message to before the post of its answer; `None`: not recorded.
        #[serde(default)]
        residency: Option<Spread>,
    },
    /// What the probes of this side can show, or why there are none.
    Observing {
        /// Nothing to attach, for this reason.
        why_not: Option<String>,
        /// What the user should know.
        summary: String,
    },
    /// The probes are as asked.
    ProbesSet {
        /// That changed something.
        changed: bool,
    },
    /// What this side recorded of the run.
    Side(Box<Side>),
    /// What this side recorded of a round.
    SideRound(Box<SideRound>),
    /// Some bytes of a round, from the place that was asked for.
    Part {
        /// In base64; at most [`super::side::PART_MAX_BYTES`] of them.
        bytes: String,
    },
    /// The run is down.
    Closed,
    /// The server failed, for this reason.
    Failed {
        /// The server's error.
        why: String,
    },
}

impl Reply {
    /// Name of the message, for errors.
    pub fn name(&self) -> &'static str {
        match self {
            Reply::Welcome(_) => "Welcome",
            Reply::Refused { .. } => "Refused",
            Reply::Opened { .. } => "Opened",
            Reply::RoundStarted => "RoundStarted",
            Reply::RoundDone { .. } => "RoundDone",
            Reply::Observing { .. } => "Observing",
            Reply::ProbesSet { .. } => "ProbesSet",
            Reply::Side(_) => "Side",
            Reply::SideRound(_) => "SideRound",
            Reply::Part { .. } => "Part",
            Reply::Closed => "Closed",
            Reply::Failed { .. } => "Failed",
        }
    }
}

/// What a server tells about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerFacts {
    /// Version of the tool.
    pub tool_version: String,
    /// Identity of the boot: the same as the client's when both share a kernel.
    pub boot_id: String,
    /// Process id.
    pub tgid: u32,
    /// Device that it serves on.
    pub device: String,
    /// Port.
    pub port: u8,
    /// GIDs of that port.
    pub gids: Vec<GidEntry>,
    /// CPUs that it may use.
    pub cpus: Vec<u32>,
}

/// What becomes of a round's samples on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Nothing is kept: a warm-up, or nobody will ask.
    Nothing,
    /// The samples.
    Samples,
    /// The samples, and what the probes gave.
    Traced,
}

/// The server's side of a run: everything but the rounds themselves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Side {
    /// The server's machine.
    pub host: Host,
    /// Its device.
    pub device: Device,
    /// Its thread, queue pair and CQ.
    pub placement: Placement,
    /// Kernel threads in its path whose scheduling its probes record.
    #[serde(default)]
    pub kernel_threads: Vec<KernelThread>,
    /// Its probes.
    pub plan: Vec<PlanRow>,
    /// Proof that its probes' clock is its runner's.
    pub clock_check: Option<ClockCheck>,
    /// Indices of the rounds that it kept, in order.
    pub rounds: Vec<u32>,
    /// Bytes of samples and records in them.
    pub bytes: u64,
    /// Why rounds are missing; `None`: none is.
    pub cut: Option<String>,
    /// Sentences that a reader must know.
    pub notes: Vec<String>,
}

/// A round of the server's side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SideRound {
    /// Index of the round.
    pub index: u32,
    /// Were the server's probes attached?
    pub traced: bool,
    /// The server's counters.
    pub stats: RoundStats,
    /// Samples.
    pub samples: u64,
    /// Bytes of the ring records behind them.
    pub record_bytes: u64,
    /// Hits per hook.
    pub hits: Vec<(String, u64)>,
    /// Records by kind.
    pub losses: Vec<LossRow>,
    /// Hits that the kernel dropped; `None`: it does not tell.
    pub missed: Option<u64>,
}
