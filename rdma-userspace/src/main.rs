//! `rdmascope`: see `cli/`, one file per subcommand.
use std::process::ExitCode;

mod cli;
mod trace;

fn main() -> ExitCode {
    cli::main()
}
