//! `rdmascope`: see `cli/`, one file per subcommand.
use std::process::ExitCode;

fn main() -> ExitCode {
    rdma_userspace::cli::main()
}
