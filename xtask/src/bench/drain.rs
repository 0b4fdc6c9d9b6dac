//! `cargo xtask bench drain`: a BPF program writes records on one CPU, the reader drains them on another. Needs root, no RDMA device
//! and no virtual machine.

use crate::process;
use anyhow::Result;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(300);

/// Options of `cargo xtask bench drain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seconds per rate.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<()> {
    let mut bench = process::command(super::build("drain")?);
    bench.arg("--seconds").arg(args.seconds.to_string());
    super::judged(process::stream(&mut bench, DEADLINE, |line| println!("{line}"))?)
}
