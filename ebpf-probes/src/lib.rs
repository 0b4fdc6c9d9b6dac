//! The event ABI: what the eBPF programs write into the ring buffer and what the host reads.
//!
//! Every record is one [`Header`] followed by the body of its [`Kind`]. Plain integers, `repr(C)`, no padding that is not a
//! named field; sizes are asserted at compile time ([`layout`]). A record whose kind the reader does not know is skipped and
//! counted, so old readers survive new probes.
//!
//! Times are `bpf_ktime_get_ns`, which is `CLOCK_MONOTONIC`, in nanoseconds.
#![no_std]

pub mod config;
pub mod counters;
mod kind;
pub mod layout;
mod program;
mod records;

#[cfg(feature = "host")]
mod decode;

#[cfg(feature = "host")]
pub use decode::{Body, DecodeError, Event, decode, encode};
pub use kind::Kind;
pub use program::Program;
pub use records::*;
