//! The safe layer over libibverbs: devices, GIDs, memory regions, completion queues, queue pairs, work requests, and errors that explain themselves.
//!
//! Handles keep their parents alive and are torn down in the right order whatever the order of drops. Nothing here panics on what a device,
//! a driver or a peer does; a drop that fails says so on stderr.
mod channel;
mod cq;
mod device;
mod error;
pub(crate) mod ffi;
mod gid;
mod memlock;
mod mr;
mod qp;
mod status;
mod wr;

pub use crate::machine::gid::{Gid, GidEntry, GidType};
pub use channel::Channel;
pub use cq::{Batch, Completion, Cq};
pub use device::{Device, DeviceLimits, LinkLayer, Port, PortState, mtu_bytes_from_code, mtu_code_from_bytes};
pub use error::VerbsError;
pub use gid::{GidPair, choose_pair, gid_table};
pub use memlock::MemlockBudget;
pub use mr::{Access, Buffer, Mr, Pd};
pub use qp::{Qp, QpCaps, QpState, Route};
pub use status::{StatusInfo, status_info, status_table};
pub use wr::{RecvWr, RemoteMemory, SendOp, SendWr};
