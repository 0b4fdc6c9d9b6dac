//! `rdmascope serve`: the passive end.
use super::print;
use rdmascope_core::control::DEFAULT_PORT;
use rdmascope_core::control::limits::{Limits, RECORDED_DEFAULT_BYTES, RecordingLimits};
use rdmascope_core::control::server::{ServerConfig, serve};
use rdmascope_core::control::token::Token;
use rdmascope_core::probes::ProbeThread;
use rdmascope_core::session::{Announcement, open_device, server_facts};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// A server that was started by a client ends when that client does not come for so long: it has been killed.
const ANNOUNCED_DEADLINE: Duration = Duration::from_secs(30);

/// Flags of `rdmascope serve`.
#[derive(clap::Args)]
#[command(after_help = "\
The server does nothing for a client that does not show its token. Without
--token-file a new one is made at each start and printed once. It listens on
the loopback address unless told otherwise: for clients on another host give
the address of the interface by which they reach this one. Ctrl-C ends it.
Started as root (or with CAP_BPF and CAP_PERFMON) it can show clients its own
kernel stages too; without, it serves all the same and says so.")]
pub struct Args {
    /// Address to listen on (TCP, for the control connection), with :PORT where it is not 18600.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS", value_parser = parse_bind)]
    bind: SocketAddr,

    /// File with the token that clients must show (16 to 256 characters).
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// RDMA device. Default: the only one with an active port.
    #[arg(long, short)]
    device: Option<String>,

    /// Port of the RDMA device (the TCP port belongs to --bind).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    port: u8,

    /// End after one client.
    #[arg(long)]
    once: bool,

    /// Memory that a client may ask for, in MiB.
    #[arg(long, default_value_t = 1024, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    max_memory: u64,

    /// Attach no kernel probes here, whatever a client asks for: its report then has no kernel stages of this side.
    #[arg(long)]
    no_probes: bool,

    /// What is kept of a client's runs until it fetches this side's capture, in MiB. What comes after that is left out, and the client is told.
    #[arg(long, default_value_t = RECORDED_DEFAULT_BYTES >> 20, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    max_capture: u64,

    /// Announce address and token as JSON on standard output (how --loopback starts its server).
    #[arg(long, hide = true)]
    announce: bool,
}

fn parse_bind(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    text.parse::<IpAddr>()
        .map(|address| SocketAddr::new(address, DEFAULT_PORT))
        .map_err(|_| "give the IP address of an interface of this host, with :PORT where needed".to_owned())
}

/// Prints a line. A server whose standard output is closed goes on serving.
fn print_line(line: &str) {
    let _ = print(&format!("{line}\n"));
}

/// What a client gives to reach a server that listens on `address`.
fn client_argument(address: SocketAddr) -> String {
    match address {
        any if any.ip().is_unspecified() && any.port() == DEFAULT_PORT => "THIS-HOST".to_owned(),
        any if any.ip().is_unspecified() => format!("THIS-HOST:{}", any.port()),
        usual if usual.port() == DEFAULT_PORT => usual.ip().to_string(),
        other => other.to_string(),
    }
}

/// Serves.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    // Before any other thread is there: all of them are to be without the rights that the probes need.
    let probes = ProbeThread::start()?;
    let device = open_device(args.device.as_deref(), args.port)?;
    let token = match &args.token_file {
        Some(path) => Token::from_file(path)?,
        None => Token::random()?,
    };
    let facts = server_facts(&device, args.port)?;
    let (announce, own_token, show) = (args.announce, args.token_file.is_none(), token.reveal().to_owned());
    let name = device.name().to_owned();
    let ready = move |address: SocketAddr| {
        if announce {
            let line = serde_json::to_string(&Announcement { address, token: show }).unwrap_or_default();
            print_line(&line);
            return;
        }
        print_line(&format!("serving {name} on {address}"));
        if own_token {
            print_line(&format!("token {show}"));
            print_line(&format!("client: rdmascope compare {} --token {show}", client_argument(address)));
        }
    };
    let log = move |line: &str| {
        if !announce {
            print_line(line);
        }
    };
    let config = ServerConfig {
        bind: args.bind,
        token,
        limits: Limits { memory_bytes: args.max_memory.saturating_mul(1 << 20), ..Limits::default() },
        recording: RecordingLimits { probes: !args.no_probes, bytes: args.max_capture.saturating_mul(1 << 20) },
        probes: Some(probes),
        once: args.once,
        client_within: args.announce.then_some(ANNOUNCED_DEADLINE),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = serve(device, facts, config, ready, log) => outcome,
            _ = tokio::signal::ctrl_c() => Ok(()),
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    outcome?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_tells_clients_to_type_reaches_it() {
        for (listens, typed) in [
            ("192.0.2.1:18600", "192.0.2.1"),
            ("192.0.2.1:7", "192.0.2.1:7"),
            ("[2001:db8::1]:18600", "2001:db8::1"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
            ("0.0.0.0:18600", "THIS-HOST"),
            ("[::]:7", "THIS-HOST:7"),
        ] {
            assert_eq!(client_argument(listens.parse().expect("an address")), typed);
        }
    }
}
