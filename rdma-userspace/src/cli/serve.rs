//! `rdmascope serve`: the passive end.
use crate::control::DEFAULT_PORT;
use crate::control::limits::Limits;
use crate::control::message::ServerFacts;
use crate::control::server::{ServerConfig, serve};
use crate::control::token::Token;
use crate::session::{Announcement, SessionError, allowed_cpus, open_device};
use crate::system::Root;
use crate::verbs::gid_table;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

/// Flags of `rdmascope serve`.
#[derive(clap::Args)]
#[command(after_help = "\
The server does nothing for a client that does not show its token. Without
--token-file a new one is made at each start and printed once. It listens on
the loopback address unless told otherwise: for clients on another host give
the address of the interface by which they reach this one. Ctrl-C ends it.")]
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
    #[arg(long, default_value_t = 1)]
    port: u8,

    /// End after one client.
    #[arg(long)]
    once: bool,

    /// Memory that a client may ask for, in MiB.
    #[arg(long, default_value_t = 1024, value_name = "MIB")]
    max_memory: u64,

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

/// Serves.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let device = open_device(args.device.as_deref(), args.port)?;
    let token = match &args.token_file {
        Some(path) => Token::from_file(path)?,
        None => Token::random()?,
    };
    let host = crate::system::host::host();
    let facts = ServerFacts {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        boot_id: host.boot_id,
        tgid: std::process::id(),
        device: device.name().to_owned(),
        port: args.port,
        gids: gid_table(&device, args.port).map_err(SessionError::from)?,
        cpus: allowed_cpus(&Root::live()),
    };
    let (announce, own_token, show) = (args.announce, args.token_file.is_none(), token.reveal().to_owned());
    let name = device.name().to_owned();
    let ready = move |address: SocketAddr| {
        if announce {
            let line = serde_json::to_string(&Announcement { address, token: show }).unwrap_or_default();
            println!("{line}");
            return;
        }
        println!("serving {name} on {address}");
        if own_token {
            println!("token {show}");
            let shown = if address.port() == DEFAULT_PORT { address.ip().to_string() } else { address.to_string() };
            println!("client: rdmascope compare {shown} --token {show}");
        }
    };
    let log = move |line: &str| {
        if !announce {
            println!("{line}");
        }
    };
    let config = ServerConfig {
        bind: args.bind,
        token,
        limits: Limits { memory_bytes: args.max_memory.saturating_mul(1 << 20), ..Limits::default() },
        once: args.once,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = serve(device, facts, config, ready, log) => outcome,
            _ = tokio::signal::ctrl_c() => Ok(()),
        }
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    outcome?;
    Ok(ExitCode::SUCCESS)
}
