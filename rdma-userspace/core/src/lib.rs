//! The runner: verbs, completion modes, control, probes and sessions. It records captures and knows nothing of their analysis.

pub mod control;
pub mod doctor;
pub mod machine;
pub mod probes;
pub mod runner;
pub mod session;
pub mod soft_roce;
pub mod verbs;
