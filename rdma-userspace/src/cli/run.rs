//! `rdmascope run`: one operation in one completion mode.
use super::traffic::Traffic;
use crate::runner::{Mode, OpKind};
use std::process::ExitCode;

/// Flags of `rdmascope run`.
#[derive(clap::Args)]
#[command(override_usage = "rdmascope run <HOST|--loopback> [OPTIONS]")]
pub struct Args {
    #[command(flatten)]
    traffic: Traffic,

    /// Operation: send (ping-pong by SEND and RECV), write, write-pp (ping-pong by watching memory), read, fetch-add, cmp-swap.
    #[arg(long, value_enum, default_value_t = OpKind::Send)]
    op: OpKind,

    /// Completion mode: poll (spin on the CQ) or event (sleep on the completion channel).
    #[arg(long, value_enum, default_value_t = Mode::Poll)]
    mode: Mode,
}

/// Runs it.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    args.traffic.measure(vec![args.op], vec![args.mode])
}
