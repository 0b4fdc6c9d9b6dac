//! The runner: verbs, completion modes, control, probes and sessions.

pub mod cli;
pub mod control;
pub mod doctor;
pub mod kernel;
pub mod probes;
pub mod runner;
pub mod session;
pub mod soft_roce;
pub mod system;
pub mod trace;
pub mod verbs;
