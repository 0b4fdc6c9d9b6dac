//! How the probes are set up, beside the plan.

use ebpf_probes::config::auto_track;

/// How the probes are set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Size of the ring in bytes; rounded up to a power of two of at least a page.
    pub ring_bytes: u32,
    /// Record rxe events of every queue pair, not only of tracked ones.
    pub trace_all_qps: bool,
    /// Record completion handlers of every owner, not only of tracked processes.
    pub trace_all_cqs: bool,
    /// Record only these interrupts; empty means all.
    pub irqs: Vec<u32>,
    /// Record packets of this interface only (level `full`); 0 means all.
    pub ifindex: u32,
    /// Record the scheduling of every thread of a tracked process, not only of tracked threads.
    pub by_process: bool,
    /// Whose CQs are recorded from their creation on, beside those of tracked processes.
    pub auto_track: AutoTrack,
    /// Attach by trampolines and with typed arguments where the kernel can; else by kprobes and raw tracepoints only.
    pub typed: bool,
    /// Let the programs log what they do to standard error ([`super::Probes::flush_debug`]). Slow: for the tool's own diagnosis.
    pub debug: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            ring_bytes: 16 << 20,
            trace_all_qps: false,
            trace_all_cqs: false,
            irqs: Vec::new(),
            ifindex: 0,
            by_process: false,
            auto_track: AutoTrack::Off,
            typed: true,
            debug: false,
        }
    }
}

/// Creators of CQs that become tracked by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AutoTrack {
    /// None.
    #[default]
    Off,
    /// Those whose thread has this name (its first 15 bytes count).
    Named(String),
    /// All.
    All,
}

impl AutoTrack {
    /// Values of `AUTO_TRACK`, `AUTO_NAME_0` and `AUTO_NAME_1`.
    pub(super) fn globals(&self) -> (u32, u64, u64) {
        let mut comm = [0_u8; 16];
        let mode = match self {
            AutoTrack::Off => auto_track::OFF,
            AutoTrack::All => auto_track::ALL,
            AutoTrack::Named(name) => {
                let length = name.len().min(comm.len() - 1);
                comm[..length].copy_from_slice(&name.as_bytes()[..length]);
                auto_track::BY_NAME
            }
        };
        let half = |from: usize| u64::from_ne_bytes(std::array::from_fn(|at| comm[from + at]));
        (mode, half(0), half(8))
    }
}
