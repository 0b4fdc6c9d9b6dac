//! What client and server say to each other. The client dictates; the server checks, obeys and answers.
//!
//! `Hello` → `Welcome`; then per run `Open` → `Opened`, per round `Round` → `RoundStarted` … `Collect` → `RoundDone`, `Close` → `Closed`;
//! at the end `Bye`. Between `RoundStarted` and `Collect` neither side says a word, except that a side that fails says `Failed` or `Abort`.
use crate::runner::{Params, PeerInfo, RoundStats};
use crate::verbs::GidEntry;
use analysis::capture::costs::Spread;
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
