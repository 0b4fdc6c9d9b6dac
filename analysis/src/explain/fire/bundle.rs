//! What may be sent to strangers: the judgement with the facts that it rests on, field by field. Nothing is in it that is not listed here;
//! whatever a manifest learns to hold later stays out until somebody lists it.
//!
//! Not listed, on purpose: names and addresses (host, device, network device, GIDs), ids of processes, threads and queues, the boot id, the
//! names of other programs, interrupts and threads, paths, the time, and every sentence that is not from a table of rdmascope.
use crate::explain::model::{Chains, Failure, FireReport, HookFired, StageMedian};
use capture::{CompletionShape, Level, Manifest, Mode, Operation};
use serde::Serialize;

/// Version of the bundle.
pub const BUNDLE_VERSION: u32 = 1;

/// One device's hooks, proven or not.
#[derive(Clone, Debug, Serialize)]
pub struct Bundle {
    /// [`BUNDLE_VERSION`].
    pub bundle_version: u32,
    /// Version of rdmascope.
    pub tool_version: String,
    /// Its git revision, where it was built from a checkout.
    pub tool_revision: Option<String>,
    /// The kernel and its machine.
    pub kernel: Kernel,
    /// The device.
    pub device: Device,
    /// What was run.
    pub run: Run,
    /// Every hook that must fire did, and the chains are whole.
    pub proven: bool,
    /// What speaks against it.
    pub failures: Vec<Failure>,
    /// Every row of the plan.
    pub hooks: Vec<HookFired>,
    /// From the interrupt to the thread.
    pub chains: Chains,
    /// Medians of the stages.
    pub stages: Vec<StageMedian>,
    /// Records that found no room on their way to the program.
    pub records_lost: u64,
    /// Probe hits that the kernel dropped; `None`: it does not tell.
    pub missed_probes: Option<u64>,
    /// The probes' clock is the program's clock; `None`: not checked.
    pub clocks_agree: Option<bool>,
}

/// The kernel, and what of its machine changes the path or its times.
#[derive(Clone, Debug, Serialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// PREEMPT_RT.
    pub realtime: bool,
    /// Threads of interrupts or softirqs are in the path.
    pub kernel_threads: bool,
    /// CPUs online.
    pub cpus: u32,
    /// CPU model.
    pub cpu_model: String,
    /// Clock source.
    pub clocksource: Option<String>,
    /// Frequency governor of CPU 0.
    pub governor: Option<String>,
    /// Hypervisor; `None`: none, or not told.
    pub hypervisor: Option<String>,
    /// Instructions are emulated.
    pub emulated: bool,
}

/// The device, without its name and addresses.
#[derive(Clone, Debug, Serialize)]
pub struct Device {
    /// Kernel driver.
    pub driver: String,
    /// Firmware version.
    pub firmware: String,
    /// Board id.
    pub board: Option<String>,
    /// rdmascope's own emulated card.
    pub emulated: bool,
    /// How the driver comes from its interrupt to the handler.
    pub completion_shape: Option<CompletionShape>,
    /// Type of the addresses that were used, such as `RoCE v2`.
    pub gid_type: String,
    /// Active path MTU in bytes.
    pub mtu_bytes: u32,
    /// Link rate in Gb/s where known.
    pub rate_gbps: Option<f64>,
    /// The device tells which interrupt its completion vector has.
    pub tells_interrupt: bool,
}

/// What was run, over a loopback pair.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Operation.
    pub op: Operation,
    /// Completion mode.
    pub mode: Mode,
    /// Level of the probes.
    pub level: Level,
    /// Message size in bytes.
    pub size_bytes: u32,
}

impl Bundle {
    /// Of a capture's manifest and the judgement on it.
    pub fn of(manifest: &Manifest, report: &FireReport) -> Bundle {
        let (host, device, run) = (&manifest.host, &manifest.device, &manifest.run);
        let first_queue = manifest.workers().first().and_then(|worker| worker.completion_queues.first().and_then(|queue| queue.irq));
        Bundle {
            bundle_version: BUNDLE_VERSION,
            tool_version: manifest.tool_version.clone(),
            tool_revision: manifest.tool_revision.clone(),
            kernel: Kernel {
                release: host.kernel.clone(),
                realtime: host.realtime,
                kernel_threads: !manifest.kernel_threads.is_empty(),
                cpus: host.cpus,
                cpu_model: host.cpu_model.clone(),
                clocksource: host.clocksource.clone(),
                governor: host.governor.clone(),
                hypervisor: host.hypervisor.clone(),
                emulated: host.emulated,
            },
            device: Device {
                driver: device.driver.clone(),
                firmware: device.firmware.clone(),
                board: device.board.clone(),
                emulated: report.emulated_device,
                completion_shape: report.shape,
                gid_type: device.gid_type.clone(),
                mtu_bytes: device.mtu_bytes,
                rate_gbps: device.rate_gbps,
                tells_interrupt: first_queue.is_some(),
            },
            run: Run { op: run.op, mode: run.mode, level: run.level, size_bytes: run.size_bytes },
            proven: report.is_proven(),
            failures: report.failures.clone(),
            hooks: report.hooks.clone(),
            chains: report.chains.clone(),
            stages: report.stages.clone(),
            records_lost: report.records_lost,
            missed_probes: report.missed_probes,
            clocks_agree: manifest.clock_check.as_ref().map(|check| (check.before_ns..=check.after_ns).contains(&check.kernel_ns)),
        }
    }
}
