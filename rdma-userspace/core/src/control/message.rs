//! The messages between client and server. The client requests; the server checks, does it and replies.
//!
//! `Hello` → `Welcome`, perhaps `Observe` → `Observing`; then per run `Open` → `Opened`, `Probes` → `ProbesSet` where the next rounds want
//! the server's probes changed, per round `Round` → `RoundStarted` … `Collect` → `RoundDone`; before `Close` → `Closed` the server's side of
//! the run is fetched (`Side`, and per round `SideRound` and `Part`, as the wire calls them); at the end `Bye`. Between `RoundStarted` and
//! `Collect` neither end sends anything, except that one that fails sends `Failed` or `Abort`.
use crate::runner::{Params, PeerInfo, RoundStats};
use crate::verbs::GidEntry;
use capture::Level;
use capture::manifest::costs::Spread;
use capture::manifest::{ClockCheck, Device, Host, KernelThread, LossRow, Placement, PlanRow, Worker};
use serde::{Deserialize, Serialize};

/// From the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// First message: who is there.
    Hello {
        /// [`super::protocol::PROTOCOL_VERSION`].
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
        keep: Retention,
    },
    /// Load probes of this level for the traced rounds to come.
    Observe {
        /// The level.
        level: Level,
    },
    /// Attach the probes, or drop every link, before the next round.
    Probes {
        /// Attached?
        traced: bool,
    },
    /// What did you record of this run?
    #[serde(rename = "Side")]
    Capture {
        /// The run.
        run: u32,
    },
    /// What did you record of this round?
    #[serde(rename = "SideRound")]
    CaptureRound {
        /// Of this run.
        run: u32,
        /// Position in [`PeerCapture::rounds`].
        at: u32,
    },
    /// The bytes of a round: its samples, then its records.
    Fetch {
        /// Of this run.
        run: u32,
        /// Position in [`PeerCapture::rounds`].
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
    /// What the probes of this end can show, or why there are none.
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
    /// What this end recorded of the run.
    #[serde(rename = "Side")]
    Capture(Box<PeerCapture>),
    /// What this end recorded of a round.
    #[serde(rename = "SideRound")]
    CaptureRound(Box<PeerCaptureRound>),
    /// Some bytes of a round, from the place that was asked for.
    Part {
        /// In base64; at most [`super::protocol::PART_MAX_BYTES`] of them.
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
    /// Name of the message on the wire, for errors.
    pub fn name(&self) -> &'static str {
        match self {
            Reply::Welcome(_) => "Welcome",
            Reply::Refused { .. } => "Refused",
            Reply::Opened { .. } => "Opened",
            Reply::RoundStarted => "RoundStarted",
            Reply::RoundDone { .. } => "RoundDone",
            Reply::Observing { .. } => "Observing",
            Reply::ProbesSet { .. } => "ProbesSet",
            Reply::Capture(_) => "Side",
            Reply::CaptureRound(_) => "SideRound",
            Reply::Part { .. } => "Part",
            Reply::Closed => "Closed",
            Reply::Failed { .. } => "Failed",
        }
    }
}

/// What a server says of itself when it welcomes a client.
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
pub enum Retention {
    /// Nothing is kept: a warm-up, or a run whose server's side is not fetched.
    Nothing,
    /// The samples.
    Samples,
    /// The samples, and what the probes gave.
    Traced,
}

/// The server's own capture of a run: everything but the rounds themselves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PeerCapture {
    /// The server's machine.
    pub host: Host,
    /// Its device.
    pub device: Device,
    /// Its thread, queue pair and CQ.
    pub placement: Placement,
    /// Its measured threads with their queues.
    #[serde(default)]
    pub workers: Vec<Worker>,
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

/// A round of the server's own capture, without its bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeerCaptureRound {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The names on the wire belong to the version of the protocol, not to the names in the source.
    #[test]
    fn messages_are_called_on_the_wire_what_the_protocol_calls_them() {
        let json = |message: &Request| serde_json::to_string(message).expect("JSON");
        assert_eq!(json(&Request::Observe { level: Level::Std }), r#"{"Observe":{"level":"std"}}"#);
        assert_eq!(json(&Request::Capture { run: 4 }), r#"{"Side":{"run":4}}"#);
        assert_eq!(json(&Request::CaptureRound { run: 4, at: 1 }), r#"{"SideRound":{"run":4,"at":1}}"#);
        assert_eq!(json(&Request::Fetch { run: 4, at: 1, from: 9 }), r#"{"Fetch":{"run":4,"at":1,"from":9}}"#);
        let round = json(&Request::Round { run: 4, index: 2, samples: 7, keep: Retention::Traced });
        assert_eq!(round, r#"{"Round":{"run":4,"index":2,"samples":7,"keep":"traced"}}"#);
        let reply = serde_json::to_value(Reply::CaptureRound(Box::default())).expect("JSON");
        assert!(reply["SideRound"]["record_bytes"] == 0 && reply["SideRound"]["samples"] == 0, "{reply}");
        assert_eq!(Reply::CaptureRound(Box::default()).name(), "SideRound");
        assert!(serde_json::from_str::<Request>(r#"{"Observe":{"level":"everything"}}"#).is_err());
    }
}
