//! `cargo xtask bench`: what the probes cost and what the reader of their ring can do. docs/benchmarks.md tells how to read the figures.

mod drain;
mod observer;

use crate::{bpf, paths, process};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::time::Duration;

const BUILD_DEADLINE: Duration = Duration::from_secs(1800);

/// Subcommands of `cargo xtask bench`.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// What the probes add to an operation, level by level, in interleaved rounds in a guest.
    Observer(observer::Args),
    /// How many records per second the reader takes without a loss, on this machine's own kernel.
    Drain(drain::Args),
}

/// Runs the subcommand.
pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Observer(args) => observer::run(args),
        Command::Drain(args) => drain::run(args),
    }
}

/// Builds a bench, an example of the runner's package, with the probes as they are now; its program.
fn build(name: &str) -> Result<PathBuf> {
    bpf::ensure()?;
    let mut cargo = process::cargo();
    cargo.args(["build", "--release", "--locked", "--package", "rdma-userspace", "--bins", "--example", name]);
    if process::stream(&mut cargo, BUILD_DEADLINE, |line| println!("{line}"))? != 0 {
        bail!("`{}` failed", process::line(&cargo));
    }
    Ok(paths::target().join("release/examples").join(name))
}
