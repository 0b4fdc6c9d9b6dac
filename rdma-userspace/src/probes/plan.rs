//! What to attach on this kernel, and why: decided from symbols, BTF and tracepoints, never from a version.

use std::fmt;
use std::path::Path;

use ebpf_probes::{Kind, Program};

use super::Level;
use super::choose::{Situation, functions};
use super::drivers::{self, Arrival, DRIVERS, Driver, HookKind, TASKLETS_MAX, THREADED_SYMBOL, WORKS_MAX, is_wanted};
use super::offsets::Offsets;
use crate::kernel::{Facts, KernelError, Sources};

/// One hook of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedHook {
    /// Its name.
    pub hook: &'static str,
    /// The driver or layer that it belongs to.
    pub driver: &'static str,
    /// The lowest level that has it on this kernel.
    pub level: Level,
    /// How it is attached.
    pub kind: HookKind,
    /// The name to attach to (`module:function` or a tracepoint); `None`: absent on this kernel.
    pub symbol: Option<String>,
    /// The program.
    pub program: Program,
    /// Kinds of records that it gives.
    pub gives: &'static [Kind],
    /// Why this symbol, or why none.
    pub reason: String,
    /// True when the driver is loaded and the hook ought to be there.
    pub mandatory: bool,
    /// What it means when it never fires.
    pub silence: Option<&'static str>,
    /// Only operations that end with such a packet need it; `None`: all do.
    pub arrival: Option<Arrival>,
    /// Wanted also where a device of another driver is measured.
    pub for_every_device: bool,
}

/// Where the kernel tells how many runs of probes it skipped (`struct bpf_link_info`, `struct bpf_prog_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedFields {
    /// `bpf_link_info.type`.
    pub link_type: u32,
    /// The value of that field for a kprobe's link (`BPF_LINK_TYPE_PERF_EVENT`, UAPI).
    pub perf_event: u32,
    /// `bpf_link_info.prog_id`.
    pub link_program: u32,
    /// `bpf_link_info.perf_event.kprobe.missed`.
    pub link_missed: u32,
    /// `bpf_prog_info.recursion_misses`.
    pub program_missed: u32,
}

/// The members that [`MissedFields`] are read of.
pub(super) const MISSED_MEMBERS: &[(&str, &str)] = &[
    ("bpf_link_info", "type"),
    ("bpf_link_info", "prog_id"),
    ("bpf_link_info", "perf_event.kprobe.missed"),
    ("bpf_prog_info", "recursion_misses"),
];

impl MissedFields {
    /// The fields, where this kernel has all of them.
    fn of(facts: &Facts) -> Option<Self> {
        let offset = |structure, path| facts.vmlinux.as_ref()?.member_offset(structure, path).ok();
        Some(MissedFields {
            link_type: offset("bpf_link_info", "type")?,
            perf_event: 7,
            link_program: offset("bpf_link_info", "prog_id")?,
            link_missed: offset("bpf_link_info", "perf_event.kprobe.missed")?,
            program_missed: offset("bpf_prog_info", "recursion_misses")?,
        })
    }
}

/// A driver that this kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedDriver {
    /// Its name.
    pub name: &'static str,
    /// How it completes on this kernel; `None` for the layers that all drivers share.
    pub chain: Option<&'static str>,
    /// Where its completions run and how a hook finds the CQ.
    pub contexts: &'static str,
    /// How far its hooks have been tried.
    pub tried: drivers::Tried,
}

/// The plan of one kernel at one level.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The level.
    pub level: Level,
    /// The kernel's release, for readers.
    pub release: String,
    /// The kernel's boot.
    pub boot_id: String,
    /// Lockdown mode in force, where told.
    pub lockdown: Option<String>,
    /// The hooks of the level, absent ones included.
    pub hooks: Vec<PlannedHook>,
    /// The drivers that are there, in the order of [`DRIVERS`].
    pub drivers: Vec<PlannedDriver>,
    /// True when interrupt handlers run in threads.
    pub threaded_irqs: bool,
    /// Offsets for the programs.
    pub offsets: Offsets,
    /// Addresses of tasklet functions that matter, at most [`TASKLETS_MAX`].
    pub tasklets: Vec<u64>,
    /// True when every tasklet is recorded: addresses are hidden, or there are more than [`TASKLETS_MAX`].
    pub all_tasklets: bool,
    /// Addresses of work functions that matter, at most [`WORKS_MAX`].
    pub works: Vec<u64>,
    /// True when every work item is recorded: there are more functions than [`WORKS_MAX`].
    pub all_works: bool,
    /// BTF that is there and was not used, with the reason.
    pub btf_problems: Vec<String>,
    /// True when a switch tells the state of the thread that leaves.
    pub switch_tells_state: bool,
    /// Where skipped runs are told; `None`: this kernel does not tell.
    pub missed: Option<MissedFields>,
}

impl Plan {
    /// Reads the facts of the kernel below `root` and decides.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel's symbols cannot be read.
    pub fn for_kernel(root: &Path, level: Level) -> Result<Self, KernelError> {
        Self::from_sources(&Sources::tree(root), level)
    }

    /// As [`Plan::for_kernel`], for a kernel that is given as files.
    ///
    /// # Errors
    /// [`KernelError`] when a file that was named cannot be read or is damaged.
    pub fn from_sources(sources: &Sources, level: Level) -> Result<Self, KernelError> {
        Ok(Self::decide(&Facts::from_sources(sources, is_wanted, &drivers::modules())?, level))
    }

    /// Decides from facts.
    pub fn decide(facts: &Facts, level: Level) -> Self {
        let offsets = Offsets::resolve(facts);
        let addresses = |names: fn(&Driver) -> &'static [&'static str]| -> Vec<Option<u64>> {
            DRIVERS.iter().flat_map(|driver| names(driver).iter().flat_map(|name| functions(facts, driver, name))).map(|it| it.0).collect()
        };
        let (tasklets, works) = (addresses(|driver| driver.tasklets), addresses(|driver| driver.works));
        let threaded_irqs = facts.threadirqs || facts.symbols.has(THREADED_SYMBOL);
        let situation = Situation { facts, offsets: &offsets, tasklets: &tasklets, works: &works, threaded_irqs };
        let hooks = DRIVERS
            .iter()
            .flat_map(|driver| driver.hooks.iter().map(move |hook| (driver, hook)))
            .filter(|(driver, hook)| situation.level_of(driver, hook) <= level)
            .map(|(driver, hook)| situation.plan(driver, hook))
            .collect();
        let drivers = DRIVERS.iter().filter(|driver| situation.has(driver)).map(|driver| situation.driver(driver)).collect();
        let all_tasklets = tasklets.iter().any(Option::is_none) || tasklets.len() > TASKLETS_MAX;
        let all_works = works.len() > WORKS_MAX;
        Plan {
            level,
            release: facts.release.clone(),
            boot_id: facts.boot_id.clone(),
            lockdown: facts.lockdown.clone(),
            hooks,
            drivers,
            threaded_irqs,
            all_tasklets,
            tasklets: if all_tasklets { Vec::new() } else { tasklets.into_iter().flatten().collect() },
            works: if all_works { Vec::new() } else { works.into_iter().flatten().collect() },
            all_works,
            btf_problems: facts.btf_problems.clone(),
            switch_tells_state: switch_tells_state(facts),
            missed: MissedFields::of(facts),
            offsets,
        }
    }

    /// The same plan with only the hooks that give one of these kinds.
    pub fn only(mut self, kinds: &[Kind]) -> Self {
        self.hooks.retain(|hook| hook.gives.iter().any(|kind| kinds.contains(kind)));
        self
    }

    /// The same plan without the hooks that serve only operations which end in another way. On a path of a few microseconds every hit
    /// counts.
    pub fn for_arrivals(mut self, arrivals: &[Arrival]) -> Self {
        for hook in &mut self.hooks {
            if let Some(arrival) = hook.arrival.filter(|it| !arrivals.contains(it))
                && hook.symbol.take().is_some()
            {
                (hook.reason, hook.mandatory) = (arrival.unwanted(), false);
            }
        }
        self
    }

    /// The same plan without the hooks in drivers that do not serve the measured device: nobody else's completions are slowed, and each
    /// kprobe less is a grace period less when the probes go. A driver that is not known here keeps all of them.
    pub fn for_device_of(mut self, device_driver: &str) -> Self {
        if !drivers::is_known(device_driver) {
            return self;
        }
        let serves = |name: &str| DRIVERS.iter().any(|driver| driver.name == name && driver.serves(device_driver));
        for hook in self.hooks.iter_mut().filter(|hook| !hook.for_every_device && !serves(hook.driver)) {
            if hook.symbol.take().is_some() {
                hook.reason = format!("left out: the measured device belongs to {device_driver}");
            }
            hook.mandatory = false;
        }
        self
    }

    /// Hooks that ought to be there and are not.
    pub fn missing(&self) -> impl Iterator<Item = &PlannedHook> {
        self.hooks.iter().filter(|hook| hook.mandatory && hook.symbol.is_none())
    }

    /// The hook with this name.
    pub fn hook(&self, name: &str) -> Option<&PlannedHook> {
        self.hooks.iter().find(|hook| hook.hook == name)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "probes at level {} on {}", self.level, self.release)?;
        let is_there = |name: &str| self.drivers.iter().any(|driver| driver.name == name);
        for hook in self.hooks.iter().filter(|hook| is_there(hook.driver)) {
            let symbol = hook.symbol.as_deref().unwrap_or("absent");
            writeln!(f, "  {:<36} {:<9} {:<36} {}", hook.hook, hook.kind.name(), symbol, hook.reason)?;
        }
        let others: Vec<&str> = DRIVERS.iter().map(|driver| driver.name).filter(|name| !is_there(name)).collect();
        if !others.is_empty() && self.level > Level::None {
            writeln!(f, "  drivers that are not loaded: {}", others.join(", "))?;
        }
        Ok(())
    }
}

/// `sched_switch` got a fourth argument in about 5.18; the typedef counts the hidden first one.
fn switch_tells_state(facts: &Facts) -> bool {
    let parameters = facts.vmlinux.as_ref().and_then(|btf| btf.callback_parameters("btf_trace_sched_switch"));
    parameters.is_some_and(|parameters| parameters.len() > 4)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
