//! Captures, correlation, statistics, charts and reports of rdmascope.
//!
//! Nothing here needs root, an RDMA device or eBPF: a capture made on one machine is analysed on any other.
//! The way through: [`capture`] (read a folder) → correlate → breakdown → [`model`] (finished numbers) → report, charts, JSON.

pub mod analyse;
pub mod bootstrap;
pub mod breakdown;
pub mod bypass;
pub mod capture;
pub mod compare;
pub mod correlate;
pub mod fixture;
pub mod interference;
mod milestones;
pub mod model;
mod names;
mod pass;
pub mod plots;
pub mod report;
pub mod silent;
pub mod stages;
pub mod stats;
pub mod trace;
pub mod two_sides;
pub mod units;
pub mod verdict;
pub mod words;
