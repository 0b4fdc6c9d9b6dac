//! `rdmascope-report`: opens captures on any machine, without root, RDMA or eBPF.
use analysis::report::arguments::{Arguments, EXAMPLES};
use clap::Parser;
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
        // Some messages hold what the system said already: it is not said twice.
        let error = anyhow::Error::from(error);
        let text =
            error.chain().map(ToString::to_string).reduce(|text, why| if text.contains(&why) { text } else { format!("{text}: {why}") });
        eprintln!("rdmascope-report: {}", text.unwrap_or_default());
        ExitCode::FAILURE
    })
}
