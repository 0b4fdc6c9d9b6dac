//! The runner: verbs, completion modes, control, probes and sessions.

pub mod doctor;
pub mod soft_roce;
pub mod system;
