//! `rdmascope soft-roce up|down|status`: an RDMA device made of software (rdma_rxe) on a network interface.
//!
//! Makes and removes devices by the tools that keep the field (`rdma` of iproute2, `modprobe` of kmod); says each step.

mod commands;
pub mod down;
pub mod error;
mod netdev;
pub mod status;
pub mod tools;
pub mod up;

#[cfg(test)]
mod tests;

pub use commands::{down_command, up_command};
pub use down::{Down, down};
pub use error::SoftRoceError;
pub use netdev::Netdev;
pub use status::{Status, status};
pub(crate) use up::module_missing;
pub use up::{Up, up};

use crate::machine::rights::{CapabilitySet, has_capability};
use crate::machine::{RdmaDevice, Root};

/// What a device is, in a few words: `rdma_rxe on eth0`, `mlx5_core`.
pub(crate) fn describe(device: &RdmaDevice) -> String {
    let driver = device.driver.as_deref().unwrap_or("a driver that the kernel does not name");
    match &device.netdev {
        Some(netdev) => format!("{driver} on {netdev}"),
        None => driver.to_owned(),
    }
}

/// Whether `rdma link add` and `delete` are allowed to this process.
fn may_administrate(root: &Root) -> bool {
    has_capability(root, CapabilitySet::NET_ADMIN)
}
