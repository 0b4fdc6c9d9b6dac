//! `rdmascope-report`: opens captures on any machine, without root, RDMA or eBPF.
use analysis::report::{Options, run};
use clap::Parser;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

/// Turns captures of rdmascope into a report: latency per operation and mode, where the time of a completion goes, poll
/// against event, and why the slowest ones were slow. Needs no root, no RDMA device and no eBPF: copy the folder and run it.
#[derive(Parser)]
#[command(name = "rdmascope-report", version)]
#[command(after_help = "Examples:
  rdmascope-report results                          summary of all captures below `results`
  rdmascope-report results --text                   every run in full: bands, flags, slow samples
  rdmascope-report results --json report.json       for scripts
  rdmascope-report results --html site              a page to open in a browser

Exit codes: 0 done, 1 failed (nothing readable), 2 wrong usage, 3 done but more than 0.1 % of the records were lost.")]
struct Arguments {
    /// A capture (a folder with manifest.json), or a folder with captures somewhere below it
    dir: PathBuf,
    /// Write the whole report as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the HTML report with its charts into this folder
    #[arg(long, value_name = "DIR")]
    html: Option<PathBuf>,
    /// Print every run in full, not only the summary
    #[arg(long)]
    text: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = io::stdout();
    let options = Options {
        dir: arguments.dir,
        json: arguments.json,
        html: arguments.html,
        full_text: arguments.text,
        color: out.is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    match run(&options, &mut out) {
        Ok((_, code)) => ExitCode::from(code),
        Err(error) => {
            eprintln!("rdmascope-report: {:#}", anyhow::Error::from(error));
            ExitCode::FAILURE
        }
    }
}
