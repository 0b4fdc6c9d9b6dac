//! `rdmascope-report`: opens captures on any machine, without root, RDMA or eBPF.
use analysis::show::arguments::{Arguments, EXAMPLES};
use capture::text::{chain, printable_lines};
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// Turns captures of rdmascope into a report: latency per operation and mode, where the time of a completion goes, poll
/// against event, and why the slowest ones were slow. Needs no root, no RDMA device and no eBPF: copy the folder and run it.
#[derive(Parser)]
#[command(name = "rdmascope-report", version, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    arguments: Arguments,
}

fn main() -> ExitCode {
    Cli::parse().arguments.report().unwrap_or_else(|error| {
        // Nobody may be listening there.
        let _ = writeln!(std::io::stderr(), "rdmascope-report: {}", printable_lines(&chain(&error)));
        ExitCode::FAILURE
    })
}
