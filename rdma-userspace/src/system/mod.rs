//! Facts about this machine, read from /proc and /sys: the host, RDMA devices, interrupts, CPU times.
//!
//! Everything is read below a [`Root`], so that a test can put a tree of files in its place. Nothing here changes anything,
//! and what a machine does not tell is `None`, never a guess.

pub mod device;
pub mod gid;
pub mod host;
pub mod irq;
pub mod pcie;
pub mod process;
pub mod provider;
pub mod root;
pub mod stat;
pub mod threads;

#[cfg(test)]
pub(crate) mod fixture;

pub use device::{RdmaDevice, RdmaPort};
pub use gid::{Gid, GidKind};
pub use host::host;
pub use root::Root;
pub use stat::{machine_busy_ns, thread_switches};
