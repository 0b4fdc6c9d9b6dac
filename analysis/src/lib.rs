//! Captures, correlation, statistics, charts and reports of rdmascope.
//!
//! Nothing here needs root, an RDMA device or eBPF: a capture made on one machine is analysed on any other.
//! The way through: [`capture`] (read a folder) → correlate → breakdown → [`model`] (finished numbers) → report, charts, JSON.

pub mod capture;
pub mod correlate;
pub mod fixture;
pub mod model;
pub mod stages;
pub mod stats;
pub mod plots;
pub mod report;
