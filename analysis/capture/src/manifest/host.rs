//! The machine of one side.
use serde::{Deserialize, Serialize};

/// The machine that ran this side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// `uname -r`.
    pub kernel: String,
    /// CPU model.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Identity of this boot: two processes with the same one share a kernel.
    pub boot_id: String,
    /// Current clock source, such as `tsc`.
    pub clocksource: Option<String>,
    /// Frequency governor of CPU 0.
    pub governor: Option<String>,
    /// Hypervisor as the machine itself tells (`kvm`, `qemu`, …); `None` on bare metal or when not told.
    pub hypervisor: Option<String>,
    /// True when instructions are emulated (TCG): order, counts and shares hold, durations are the emulator's.
    pub emulated: bool,
    /// PREEMPT_RT kernel.
    pub realtime: bool,
    /// Names of the interrupts at the start of the run, so that a report can name what interrupted a thread.
    #[serde(default)]
    pub interrupts: Vec<InterruptName>,
}

/// One line of /proc/interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptName {
    /// Linux interrupt number.
    pub irq: u32,
    /// Names of its handlers, as the kernel prints them.
    pub name: String,
}
