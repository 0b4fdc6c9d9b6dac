//! `rdmascope trace`: programs that are not ours.
use std::process::ExitCode;

/// Flags of `rdmascope trace`.
#[derive(clap::Args)]
pub struct Args {
    /// Process to watch.
    #[arg(long)]
    pid: u32,
}

/// Watches.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not yet {}", args.pid)
}
