//! The flags that `run` and `compare` share: what is sent, where it runs, what is recorded.
use super::exit::UsageError;
use super::named_value::one_of;
use super::{print, print_error};
use capture::named::Named;
use capture::text::chain;
use capture::{Level, Mode, Operation};
use rdmascope_core::control::token::Token;
use rdmascope_core::session::{self, CpuChoice, Options, OutputFolder, Target};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Flags of a measurement.
#[derive(clap::Args)]
pub struct Traffic {
    /// Host where `rdmascope serve` runs: a name or an address, with :PORT where it is not 18600. Or give --loopback.
    #[arg(conflicts_with = "loopback")]
    host: Option<String>,

    /// Run both ends on this host (two processes, one kernel).
    #[arg(long, conflicts_with_all = ["token", "token_file"])]
    loopback: bool,

    /// The server's token. Other users of this host can see it in the process list: prefer --token-file.
    #[arg(long, conflicts_with = "token_file")]
    token: Option<String>,

    /// File that holds the server's token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// RDMA device, such as mlx5_0 or rxe0. Default: the only one with an active port.
    #[arg(long, short)]
    device: Option<String>,

    /// Port of the RDMA device (the TCP port belongs to HOST).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    port: u8,

    /// Index of the GID on this side. Default: the best pair of both sides, with the reason printed.
    #[arg(long, value_name = "INDEX")]
    gid_index: Option<u32>,

    /// Index of the GID of the server.
    #[arg(long, value_name = "INDEX")]
    server_gid_index: Option<u32>,

    /// Message size in bytes (atomics are always 8).
    #[arg(long, short, default_value_t = 64, value_name = "BYTES")]
    size: u32,

    /// Samples per operation and mode with the probes on; as many again without them.
    #[arg(long, short = 'n', default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    samples: u64,

    /// Which probes: none, min (handler, waking, switch), std (the whole path), full (also NAPI, packets, the end of the read).
    #[arg(long, default_value_t = Level::Std, hide_possible_values = true, value_parser = one_of(Level::OF_RUNS))]
    level: Level,

    /// Do not fetch the server's side of the runs (its samples and its kernel events), and attach no probes there.
    #[arg(long)]
    no_peer_capture: bool,

    /// Size of the ring between the probes and this program, in bytes; a power of two is taken. Records that find no room are lost and
    /// counted (exit code 3 when they cost more samples than the limit).
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(4096..=1 << 30))]
    ring_bytes: u32,

    /// Completion mode of the server. Default: the same as the client's.
    #[arg(long, value_name = "MODE", value_parser = one_of(Mode::ALL))]
    server_mode: Option<Mode>,

    /// CPU of the measured thread: a number, `auto`, or `none`.
    #[arg(long, default_value = "auto")]
    cpu: CpuChoice,

    /// CPU of the server's thread: a number, `auto`, or `none`.
    #[arg(long, default_value = "auto")]
    server_cpu: CpuChoice,

    /// Completion vector of the CQ.
    #[arg(long, default_value_t = 0, value_name = "VECTOR")]
    comp_vector: u32,

    /// Folder for the captures; it must not hold any yet.
    #[arg(long, short, default_value = "rdmascope-out", value_name = "DIR")]
    out: PathBuf,

    /// Warm up for at most this many seconds; a machine that has not settled by then is UNSTABLE (exit code 5).
    #[arg(long, default_value_t = 90, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    warm_up: u64,

    /// Try for so many seconds to reach a server that does not listen yet.
    #[arg(long, default_value_t = 5, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    connect_timeout: u64,

    /// Keep the append-only logs instead of sealing the captures to Parquet; a report reads both.
    #[arg(long)]
    no_seal: bool,

    /// Do not print the report at the end.
    #[arg(long)]
    no_report: bool,

    /// Say nothing on the way.
    #[arg(long, short)]
    quiet: bool,

    /// Write progress as JSON lines into this file or device.
    #[arg(long, value_name = "FILE")]
    progress_json: Option<PathBuf>,
}

impl Traffic {
    /// Runs the session, seals its captures, and reports, as the flags say. Whatever was recorded is kept, also after an error.
    pub fn measure(&self, ops: Vec<Operation>, modes: Vec<Mode>) -> anyhow::Result<ExitCode> {
        let options = self.options(ops, modes)?;
        let folder = OutputFolder::new(&self.out)?;
        let outcome = session::run(options);
        for (capture, error) in folder.finish(!self.no_seal) {
            print_error(&format!("{} stays an open log: {}", capture.display(), chain(&error)));
        }
        outcome?;
        if self.no_report {
            print(&format!("captures: {}\n", self.out.display()))?;
            return Ok(ExitCode::SUCCESS);
        }
        super::report::print(&self.out)
    }

    /// What the session needs to know, with the operations and modes that the subcommand chose.
    fn options(&self, ops: Vec<Operation>, modes: Vec<Mode>) -> anyhow::Result<Options> {
        let token = match (&self.token, &self.token_file) {
            (Some(text), _) => Some(Token::parse(text, "--token")?),
            (None, Some(path)) => Some(Token::from_file(path)?),
            (None, None) => None,
        };
        let target = match (&self.host, token) {
            (None, _) if self.loopback => Target::Loopback,
            (None, _) => {
                let why = "give the host where `rdmascope serve` runs, or --loopback for both ends on this host";
                return Err(UsageError(why.to_owned()).into());
            }
            (Some(host), Some(token)) => Target::Host { address: host.clone(), token },
            (Some(host), None) => {
                let why = "serves only who shows its token: give --token TOKEN with what `rdmascope serve` printed there, or --token-file FILE with a file that holds it";
                return Err(UsageError(format!("{host} {why}")).into());
            }
        };
        Ok(Options {
            target,
            device: self.device.clone(),
            port: self.port,
            gid_index: self.gid_index,
            server_gid_index: self.server_gid_index,
            ops,
            modes,
            server_mode: self.server_mode,
            size_bytes: self.size,
            samples: self.samples,
            level: self.level,
            ring_bytes: self.ring_bytes,
            peer_capture: !self.no_peer_capture,
            cpu: self.cpu,
            server_cpu: self.server_cpu,
            comp_vector: self.comp_vector,
            out: self.out.clone(),
            connect_timeout: Duration::from_secs(self.connect_timeout),
            warm_up_max: Duration::from_secs(self.warm_up),
            quiet: self.quiet,
            progress_json: self.progress_json.clone(),
        })
    }
}
