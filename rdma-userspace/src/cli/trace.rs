//! `rdmascope trace`: programs that are not ours.
use super::exit;
use crate::trace::{self, Options, Selection, Targets, TraceError};
use capture::limits::LOSS_LIMIT;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Flags of `rdmascope trace`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rdmascope trace --pid 4711                        until it ends, or Ctrl-C
  rdmascope trace --name ib_send_lat --wait         from its start; start it then
  rdmascope trace --device mlx5_0 --duration 10     every program on that device
  rdmascope trace --out traces -- ib_send_lat -e    starts it, and records
  rdmascope report traces                           opens what was recorded

Any verbs program that waits for completion events can be watched; nothing of
it is changed. What it finds by polling leaves no trace in the kernel and
cannot be seen from outside. Needs root, or CAP_BPF and CAP_PERFMON.")]
pub struct Args {
    #[command(flatten)]
    selection: SelectionArgs,

    /// Wait for the first process where none is there yet (with --name or --device).
    #[arg(long)]
    wait: bool,

    /// Seconds to watch. Default: until Ctrl-C, or until the programs have ended.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    duration: Option<u64>,

    /// Seconds between two looks of the live view; 0: none.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=3600))]
    interval: u64,

    /// Print the calls as they happen, one per line, instead of the live view.
    #[arg(long)]
    calls: bool,

    /// Lines of calls per second at most; how many were left out is printed.
    #[arg(long, value_name = "LINES", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    calls_rate: u32,

    /// Write every call to this file.
    #[arg(long, value_name = "FILE")]
    calls_to: Option<PathBuf>,

    /// At the end, print histograms: interrupt handling, NAPI polls, NET_RX, handler to run.
    #[arg(long)]
    histograms: bool,

    /// Write the result as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Record a capture below this folder, for `rdmascope report`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Leave the capture as a log (sealing takes a moment).
    #[arg(long, requires = "out")]
    no_seal: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct SelectionArgs {
    /// Process to watch; may be repeated.
    #[arg(long)]
    pid: Vec<u32>,

    /// Every process of this name, also those that start later.
    #[arg(long, value_name = "COMM")]
    name: Option<String>,

    /// Every process that has this RDMA device open, also those that open it later.
    #[arg(long)]
    device: Option<String>,

    /// A command to start and watch.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl SelectionArgs {
    fn selection(&self) -> Selection {
        match (&self.name, &self.device) {
            (Some(name), _) => Selection::Name(name.clone()),
            (_, Some(device)) => Selection::Device(device.clone()),
            _ if !self.command.is_empty() => Selection::Command(self.command.clone()),
            _ => Selection::Pids(self.pid.clone()),
        }
    }
}

/// Watches.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let options = Options {
        targets: Targets { selection: args.selection.selection(), wait: args.wait },
        duration: args.duration.map(Duration::from_secs),
        interval: Duration::from_secs(args.interval),
        is_terminal: std::io::stdout().is_terminal(),
        calls: args.calls,
        calls_per_second: args.calls_rate,
        calls_to: args.calls_to.clone(),
        histograms: args.histograms,
        json: args.json.clone(),
        out: args.out.clone(),
        no_seal: args.no_seal,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let flag = Arc::clone(&stop);
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            flag.store(true, Ordering::Relaxed);
        }
    });
    let trace = trace::run(&options, &stop, &mut std::io::stdout().lock());
    runtime.shutdown_background();
    match trace {
        // A reader that has seen enough is not a failure.
        Err(TraceError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error.into()),
        Ok(report) if report.loss_share > LOSS_LIMIT => Ok(ExitCode::from(exit::LOSS)),
        Ok(_) => Ok(ExitCode::SUCCESS),
    }
}
