//! `rdmascope trace`: programs that are not ours.
use crate::trace::{self, TraceError};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Flags of `rdmascope trace`.
#[derive(clap::Args)]
#[command(after_help = "\
Any verbs program that waits for completion events can be watched; nothing of
it is changed. What it finds by polling leaves no trace in the kernel and
cannot be seen from outside. Needs root, or CAP_BPF and CAP_PERFMON.")]
pub struct Args {
    /// Process to watch.
    #[arg(long)]
    pid: u32,

    /// Seconds to watch. Default: until Ctrl-C, or until the process ends.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    duration: Option<u64>,
}

/// Watches.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let flag = Arc::clone(&stop);
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            flag.store(true, Ordering::Relaxed);
        }
    });
    let trace = trace::run(args.pid, args.duration.map(Duration::from_secs), &stop, &mut std::io::stdout().lock());
    runtime.shutdown_background();
    match trace {
        // A reader that has seen enough is not a failure.
        Err(TraceError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        other => drop(other?),
    }
    Ok(ExitCode::SUCCESS)
}
