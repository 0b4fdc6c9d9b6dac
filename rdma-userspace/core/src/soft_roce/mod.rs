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

use crate::machine::{RdmaDevice, Root};

/// Capability of the kernel's network administration (`linux/capability.h`); `rdma link add` and `delete` need it.
const CAP_NET_ADMIN: u32 = 12;

/// What a device is, in a few words: `rdma_rxe on eth0`, `mlx5_core`.
pub(crate) fn describe(device: &RdmaDevice) -> String {
    let driver = device.driver.as_deref().unwrap_or("a driver that the kernel does not name");
    match &device.netdev {
        Some(netdev) => format!("{driver} on {netdev}"),
        None => driver.to_owned(),
    }
}

fn may_administrate(root: &Root) -> bool {
    crate::machine::rights::has_capability(root, CAP_NET_ADMIN)
}
