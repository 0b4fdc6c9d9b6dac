//! `rdmascope soft-roce`: a software RDMA device up and down.
use super::print;
use rdmascope_core::soft_roce;
use std::process::ExitCode;

/// Subcommands of `rdmascope soft-roce`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Make a soft-RoCE device on a network interface (loads rdma_rxe; needs root).
    Up {
        /// Network interface, such as eth0 or lo.
        netdev: String,
        /// Name of the RDMA device.
        #[arg(long, default_value = "rxe0")]
        name: String,
    },
    /// Remove a soft-RoCE device.
    Down {
        /// Name of the RDMA device.
        #[arg(default_value = "rxe0")]
        name: String,
    },
    /// Which soft-RoCE devices are there.
    Status,
}

/// Runs it.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Up { netdev, name } => print(&soft_roce::up(netdev, name)?.to_string())?,
        Action::Down { name } => print(&soft_roce::down(name)?.to_string())?,
        Action::Status => print(&soft_roce::status().to_string())?,
    }
    Ok(ExitCode::SUCCESS)
}
