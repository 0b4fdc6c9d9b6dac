//! `cargo xtask bench`: what the probes cost and what the reader of their ring can do. docs/benchmarks.md tells how to read the figures.

mod drain;
mod observer;

use crate::{artifacts, bpf, exit, process};
use anyhow::Result;
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

/// Builds a bench of the runner's package, with the probes as they are now; its program.
fn build(name: &str) -> Result<PathBuf> {
    bpf::ensure()?;
    let mut cargo = process::cargo();
    // Release as the rest, so that nothing is built twice.
    cargo.args(["build", "--release", "--locked", "--package", "rdma-userspace", "--bins", "--bench", name]);
    let built = artifacts::built(&mut cargo, BUILD_DEADLINE)?;
    Ok(artifacts::path_of(&built, "bench", name)?.to_owned())
}

/// What the end of a bench that judges its own figures comes to.
fn judged(status: i32) -> Result<()> {
    let code = exit::of_program(status);
    let says = match code {
        exit::DONE => return Ok(()),
        exit::GATE => "a goal was not met (see above)",
        exit::INFRASTRUCTURE => "this kernel lets the bench load no BPF program (root is needed)",
        _ => "the bench failed (its words above)",
    };
    Err(exit::coded(code, says))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_that_failed_has_missed_no_goal_and_lacks_nothing() {
        assert!(judged(0).is_ok());
        for (status, code, says) in [(4, 4, "goal"), (69, 69, "root"), (1, 1, "failed"), (101, 101, "failed"), (-1, 1, "failed")] {
            let error = judged(status).unwrap_err();
            assert_eq!(exit::code_of(&error), code);
            assert!(error.to_string().contains(says), "{status}: {error}");
        }
    }
}
