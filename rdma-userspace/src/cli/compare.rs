//! `rdmascope compare`: operations × completion modes, rounds interleaved.
use super::named_value::one_of;
use super::traffic::Traffic;
use capture::named::Named;
use capture::{Mode, Operation};
use std::process::ExitCode;

/// Flags of `rdmascope compare`.
#[derive(clap::Args)]
#[command(override_usage = "rdmascope compare <HOST|--loopback> [OPTIONS]")]
pub struct Args {
    #[command(flatten)]
    traffic: Traffic,

    /// Operations, separated by commas. Default: all of them.
    #[arg(long, value_delimiter = ',', value_parser = one_of(Operation::MEASURED))]
    op: Vec<Operation>,

    /// Completion modes, separated by commas. Default: all of them.
    #[arg(long, value_delimiter = ',', value_parser = one_of(Mode::ALL))]
    mode: Vec<Mode>,
}

/// Runs it.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let ops = if args.op.is_empty() { Operation::MEASURED.to_vec() } else { args.op.clone() };
    let modes = if args.mode.is_empty() { Mode::ALL.to_vec() } else { args.mode.clone() };
    args.traffic.measure(ops, modes)
}
