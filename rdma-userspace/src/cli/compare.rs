//! `rdmascope compare`: operations × completion modes, rounds interleaved.
use super::traffic::Traffic;
use crate::runner::{Mode, OpKind};
use std::process::ExitCode;

/// Flags of `rdmascope compare`.
#[derive(clap::Args)]
#[command(override_usage = "rdmascope compare <HOST|--loopback> [OPTIONS]")]
pub struct Args {
    #[command(flatten)]
    traffic: Traffic,

    /// Operations, separated by commas. Default: all of send, write, write-pp, read, fetch-add, cmp-swap.
    #[arg(long, value_delimiter = ',')]
    op: Vec<OpKind>,

    /// Completion modes, separated by commas. Default: poll,event.
    #[arg(long, value_delimiter = ',')]
    mode: Vec<Mode>,
}

/// Runs it.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let ops = if args.op.is_empty() { OpKind::ALL.to_vec() } else { args.op.clone() };
    let modes = if args.mode.is_empty() { vec![Mode::Poll, Mode::Event] } else { args.mode.clone() };
    args.traffic.measure(ops, modes)
}
