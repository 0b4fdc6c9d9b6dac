//! The runner: verbs, completion modes, control, probes and sessions.

pub mod kernel;
pub mod probes;
pub mod trace;
