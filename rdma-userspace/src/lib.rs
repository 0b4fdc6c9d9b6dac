//! The runner: verbs, completion modes, control, probes and sessions.
pub mod runner;
pub mod verbs;
