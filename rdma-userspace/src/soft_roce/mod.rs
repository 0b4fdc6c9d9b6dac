//! `rdmascope soft-roce up|down|status`: an RDMA device made of software (rdma_rxe) on a network interface.
//!
//! Makes and removes devices by the tools that keep the field (`rdma` of iproute2, `modprobe` of kmod); says each step.

pub mod down;
pub mod error;
pub mod status;
pub mod tools;
pub mod up;

#[cfg(test)]
mod tests;

pub use down::{Down, down};
pub use error::SoftRoceError;
pub use status::{Netdev, Status, status};
pub(crate) use up::module_missing;
pub use up::{Up, down_command, up, up_command};

use crate::system::{RdmaDevice, Root};

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

/// The running program, for commands that the user can paste; `sudo` does not search the user's PATH, so it is a full path.
pub(crate) fn own_program() -> String {
    std::env::current_exe().map_or_else(|_| "rdmascope".to_owned(), |path| path.display().to_string())
}

fn may_administrate(root: &Root) -> bool {
    crate::system::process::has_capability(root, CAP_NET_ADMIN)
}
