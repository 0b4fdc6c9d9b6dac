//! What was run: the parameters that the client dictated, and what came of it.
use crate::level::Level;
use crate::metric::Metric;
use crate::mode::Mode;
use crate::named::optional;
use crate::operation::Operation;
use crate::transport::Transport;
use serde::{Deserialize, Serialize};

/// What was run: the parameters that the client dictated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Position of the run within its session.
    pub index: u32,
    /// Operation.
    pub op: Operation,
    /// Completion mode of this side.
    pub mode: Mode,
    /// Completion mode of the other side (it matters for ping-pongs only); `None` in a trace.
    #[serde(with = "optional")]
    pub server_mode: Option<Mode>,
    /// Transport; `None` in a trace.
    #[serde(with = "optional")]
    pub transport: Option<Transport>,
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
    /// Level of the probes.
    pub level: Level,
    /// True when client and server share a kernel (same boot).
    pub same_kernel: bool,
}

impl Run {
    /// The first of a session, of one kind, over the default transport with one WR at a time; what it was asked for beyond that is for the caller to fill in.
    pub fn new(op: Operation, mode: Mode) -> Run {
        Run {
            index: 0,
            op,
            mode,
            server_mode: Some(mode),
            transport: Some(Transport::default()),
            size_bytes: 0,
            samples: 0,
            metric: op.metric(),
            depth: 1,
            inline_bytes: 0,
            cq_depth: 0,
            level: Level::None,
            same_kernel: false,
        }
    }
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
