//! The probe plan of a run and what became of it: hits, losses, the check of the clock.
use serde::{Deserialize, Serialize};

/// A kernel thread in the completion path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelThread {
    /// Its thread id.
    pub pid: u32,
    /// Its name as the kernel tells it, such as `irq/25-virtio0-input.0` or `ksoftirqd/1`; old kernels cut it after 15 characters.
    pub name: String,
}

/// One row of the probe plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanRow {
    /// The hook in the words of the stage model, such as `K5 completion handler`.
    pub hook: String,
    /// How it is attached: `kprobe`, `kretprobe`, `raw_tp`, `fentry`, `tp_btf`.
    pub kind: String,
    /// Symbol or tracepoint that was chosen; `None`: absent on this kernel.
    pub symbol: Option<String>,
    /// Name of the BPF program.
    pub program: String,
    /// Events (names of `ebpf_probes::Kind`) that it gives.
    pub gives: Vec<String>,
    /// Why this one was chosen, or why there is none.
    pub reason: String,
    /// Attached without an error?
    pub attached: bool,
    /// Hits while attached; `None`: not counted.
    pub hits: Option<u64>,
    /// What a silent hook means here, such as "kernel consumers only; no control possible here".
    pub silence: Option<String>,
}

/// Records of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossRow {
    /// Name of the kind.
    pub kind: String,
    /// Records that the probes tried to write.
    pub attempted: u64,
    /// Records that the reader got.
    pub delivered: u64,
    /// Records that found no room.
    pub lost: u64,
}

/// A kernel time stamp taken between two of the runner's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockCheck {
    /// `clock_gettime(CLOCK_MONOTONIC)` before, ns.
    pub before_ns: u64,
    /// `bpf_ktime_get_ns()`, ns.
    pub kernel_ns: u64,
    /// `clock_gettime(CLOCK_MONOTONIC)` after, ns.
    pub after_ns: u64,
}
