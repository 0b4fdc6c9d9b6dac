//! `rdmascope run`: one operation in one completion mode.
use super::named_value::one_of;
use super::traffic::Traffic;
use capture::named::Named;
use capture::{Mode, Operation};
use std::process::ExitCode;

/// Flags of `rdmascope run`.
#[derive(clap::Args)]
#[command(override_usage = "rdmascope run <HOST|--loopback> [OPTIONS]")]
pub struct Args {
    #[command(flatten)]
    traffic: Traffic,

    /// Operation: send (ping-pong by SEND and RECV), write, write-pp (ping-pong by watching memory), read, fetch-add, cmp-swap.
    #[arg(long, value_parser = one_of(Operation::MEASURED), default_value_t = Operation::Send)]
    op: Operation,

    /// Completion mode: poll (spin on the CQ) or event (sleep on the completion channel).
    #[arg(long, value_parser = one_of(Mode::ALL), default_value_t = Mode::Poll)]
    mode: Mode,
}

/// Runs it.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    args.traffic.measure(vec![args.op], vec![args.mode])
}
