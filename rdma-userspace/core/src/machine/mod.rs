//! Facts about this machine and its running kernel: the host, RDMA devices and their GIDs, interrupts, CPU times, symbols, BTF, tracepoints.
//!
//! Everything is read below a root, so that a test can put a tree of files, or an extract of another kernel, in its place. Nothing here
//! changes anything or decides: what follows from the facts is `probes::plan`'s matter. What a machine does not tell is `None`, never a
//! guess, and no decision is ever made from a version string.

pub mod btf;
pub mod command_line;
pub mod completion_vector;
pub mod cpu_time;
pub mod device;
pub mod gid;
pub mod host;
pub mod interrupts;
pub mod kernel;
pub mod kernel_threads;
pub mod pcie;
pub mod preamble;
pub mod proc_text;
pub mod provider;
pub mod rights;
pub mod root;

#[cfg(test)]
pub(crate) mod fixture;

pub use cpu_time::{machine_busy_ns, thread_switches};
pub use device::{RdmaDevice, RdmaPort};
pub use gid::{Gid, GidEntry, GidType};
pub use host::host;
pub use kernel::{Sources, faults};
pub use preamble::TOOL_VERSION;
pub use root::Root;
