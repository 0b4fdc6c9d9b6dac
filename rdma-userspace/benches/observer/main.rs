//! What the probes cost: interleaved rounds of every level, and the table of what they show. Used by `cargo xtask bench observer`:
//! `measure` runs in a guest with soft-RoCE, `table` on the host. docs/benchmarks.md tells how the figures are read.
mod against;
mod data;
mod rounds;
mod table;
mod traffic;

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// A goal was not met.
const GATE: u8 = 4;

/// Measures what the probes cost.
#[derive(Parser)]
enum Command {
    /// Run the rounds and write them to a file.
    Measure(rounds::Args),
    /// The passive end; started by `measure`.
    Serve,
    /// Print the table of a file; ends with 4 when a goal is missed.
    Table {
        /// What `measure` wrote.
        file: PathBuf,
        /// Judge by the goals (they hold for kernel 6.1, one CPU, virtual time that counts instructions).
        #[arg(long)]
        goals: bool,
    },
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Measure(args) => rounds::measure(&args).map(|()| ExitCode::SUCCESS),
        Command::Serve => traffic::serve().map(|()| ExitCode::SUCCESS),
        Command::Table { file, goals } => data::read(&file).map(|data| {
            let table = table::of(&data);
            print!("{}", table.text);
            if goals && table.missed > 0 { ExitCode::from(GATE) } else { ExitCode::SUCCESS }
        }),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("bench observer: {error:#}");
        ExitCode::FAILURE
    })
}
