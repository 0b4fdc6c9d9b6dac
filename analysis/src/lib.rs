//! Joining of samples with kernel events, statistics, explanations, reports, charts and exports of rdmascope.
//!
//! Nothing here needs root, an RDMA device or eBPF: a capture made on one machine is analysed on any other.
//! The way through: `capture` (read a folder) → [`join`] → [`explain`] → [`report`] (finished numbers) → [`show`], [`export`].

pub mod explain;
pub mod export;
pub mod join;
pub mod report;
pub mod show;
pub mod stages;
pub mod stats;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod trace;
