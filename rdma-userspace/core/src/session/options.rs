//! What a session is asked to do.
use crate::control::token::Token;
use crate::probes::Arrival;
use capture::{Level, Mode, Operation};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

impl Options {
    /// The packets with which the operations end on this side.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.ops.iter().map(|op| Arrival::of(op.server_answers())).collect()
    }
}

/// Everything that the user chose.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the server is.
    pub target: Target,
    /// RDMA device on this side; `None`: the only active one.
    pub device: Option<String>,
    /// Its port.
    pub port: u8,
    /// GID index on this side; `None`: the best pair.
    pub gid_index: Option<u32>,
    /// GID index of the server; `None`: the best pair.
    pub server_gid_index: Option<u32>,
    /// Operations, in order.
    pub ops: Vec<Operation>,
    /// Completion modes of the client.
    pub modes: Vec<Mode>,
    /// Completion mode of the server; `None`: the client's.
    pub server_mode: Option<Mode>,
    /// Message size in bytes.
    pub size_bytes: u32,
    /// Samples per run in traced rounds, and as many in untraced ones.
    pub samples: u64,
    /// Which probes.
    pub level: Level,
    /// Size of the ring that carries the probes' records on this side, in bytes.
    pub ring_bytes: u32,
    /// Fetch the server's side of the runs.
    pub peer_capture: bool,
    /// CPU of the measured thread.
    pub cpu: CpuChoice,
    /// CPU of the server's thread.
    pub server_cpu: CpuChoice,
    /// Completion vector.
    pub comp_vector: u32,
    /// Folder of the captures.
    pub out: PathBuf,
    /// How long to try while no server listens at its address.
    pub connect_timeout: Duration,
    /// Longest warm-up of a run.
    pub warm_up_max: Duration,
    /// No progress on standard error.
    pub quiet: bool,
    /// Progress as JSON lines.
    pub progress_json: Option<PathBuf>,
}

/// Where the server is.
#[derive(Clone, Debug)]
pub enum Target {
    /// A process of our own on this host.
    Loopback,
    /// Somebody else's `rdmascope serve`.
    Host {
        /// Name or address, with a port where it is not the default one.
        address: String,
        /// What the server printed.
        token: Token,
    },
}

/// Where a measured thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuChoice {
    /// rdmascope chooses.
    Auto,
    /// The scheduler chooses.
    Unpinned,
    /// This CPU.
    Cpu(u32),
}

impl FromStr for CpuChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<CpuChoice, String> {
        match text {
            "auto" => Ok(CpuChoice::Auto),
            "none" => Ok(CpuChoice::Unpinned),
            number => number.parse().map(CpuChoice::Cpu).map_err(|_| "give the number of a CPU, `auto` or `none`".to_owned()),
        }
    }
}

impl fmt::Display for CpuChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpuChoice::Auto => out.write_str("auto"),
            CpuChoice::Unpinned => out.write_str("none"),
            CpuChoice::Cpu(cpu) => write!(out, "{cpu}"),
        }
    }
}
