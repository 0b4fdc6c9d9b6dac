//! What a measurement leaves: every latency of every round.
use super::against::Against;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One measurement in one guest.
#[derive(Debug, Serialize, Deserialize)]
pub struct Data {
    /// Release of the kernel.
    pub kernel: String,
    /// What the CPU was: `kvm`, `tcg` or `tcg-icount`.
    pub accel: String,
    /// CPUs of the guest.
    pub cpus: usize,
    /// Virtual nanoseconds per guest instruction, where time counts instructions.
    pub ns_per_instruction: Option<f64>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// One operation in one mode.
#[derive(Debug, Serialize, Deserialize)]
pub struct Case {
    /// Operation and mode.
    pub name: String,
    /// All rounds, in the order in which they ran.
    pub rounds: Vec<Round>,
    /// With bpftrace beside.
    pub against: Option<Against>,
}

/// One round.
#[derive(Debug, Serialize, Deserialize)]
pub struct Round {
    /// The state of the probes: a name of [`super::rounds::State`].
    pub state: String,
    /// Latencies of the operations, ns.
    pub latencies_ns: Vec<u64>,
    /// Runs of each hook's program within the round.
    pub hits: Vec<(String, u64)>,
    /// Records written.
    pub records: u64,
    /// Records lost.
    pub lost: u64,
    /// Time that reading the round's records took, ns.
    pub drain_ns: u64,
}

/// Reads a measurement.
pub fn read(file: &Path) -> anyhow::Result<Data> {
    let text = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is no measurement", file.display()))
}
