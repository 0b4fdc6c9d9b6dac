//! `cargo xtask bench drain`: a BPF program writes records on one CPU, the reader drains them on another. Needs root, no RDMA device
//! and no virtual machine.

use crate::{exit, process};
use anyhow::Result;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(300);
/// The bench's own code for a goal that was not met.
const GATE: i32 = 4;

/// Options of `cargo xtask bench drain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seconds per rate.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<()> {
    let mut bench = process::command(super::build("bench_drain")?);
    bench.arg("--seconds").arg(args.seconds.to_string());
    match process::stream(&mut bench, DEADLINE, |line| println!("{line}"))? {
        0 => Ok(()),
        GATE => Err(exit::coded(GATE as u8, "the goal was not met")),
        code => Err(exit::infrastructure(format!("the bench ended with {code}: this kernel lets no BPF program run (root is needed)"))),
    }
}
