//! What to attach on this kernel, and why: decided from symbols, BTF and tracepoints, never from a version.
//!
//! [`choose`] decides about one hook, [`offsets`] works out where the programs find members of structures, [`view`] shows a plan to a
//! reader, and [`extract()`] keeps of a kernel what the same plan needs.

mod choose;
mod extract;
mod hook;
mod missed_fields;
pub mod offsets;
mod view;

use capture::Level;
use ebpf_probes::Kind;
use std::fmt;

pub use extract::extract;
pub use hook::{PlannedDriver, PlannedHook};
pub use missed_fields::MissedFields;
pub use view::{DriverView, HookView, OffsetView, PlanView};

use super::drivers::{self, Arrival, DRIVERS, Driver, TASKLETS_MAX, THREADED_SYMBOL, WORKS_MAX};
use crate::machine::kernel::{Facts, KernelError};
use crate::machine::{Root, Sources};
use choose::{HookChooser, functions};
use offsets::Offsets;

/// The plan of one kernel at one level.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The level.
    pub level: Level,
    /// The kernel's release, for readers.
    pub release: String,
    /// The kernel's boot.
    pub boot_id: String,
    /// Lockdown mode in force, where the kernel has one.
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
    /// True when a switch has the state of the thread that leaves.
    pub switch_tells_state: bool,
    /// Where skipped runs are counted; `None`: this kernel does not count them.
    pub missed: Option<MissedFields>,
}

impl Plan {
    /// Reads the facts of the kernel below `root` and decides.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel's symbols cannot be read.
    pub fn for_kernel(root: impl Into<Root>, level: Level) -> Result<Self, KernelError> {
        Self::from_sources(&Sources::tree(root), level)
    }

    /// As [`Plan::for_kernel`], for a kernel that is given as files.
    ///
    /// # Errors
    /// [`KernelError`] when a file that was named cannot be read or is damaged.
    pub fn from_sources(sources: &Sources, level: Level) -> Result<Self, KernelError> {
        Ok(Self::decide(&Facts::from_sources(sources, is_relevant_symbol, &drivers::modules())?, level))
    }

    /// Decides from facts.
    pub fn decide(facts: &Facts, level: Level) -> Self {
        let offsets = Offsets::resolve(facts);
        let addresses = |names: fn(&Driver) -> &'static [&'static str]| -> Vec<Option<u64>> {
            DRIVERS.iter().flat_map(|driver| names(driver).iter().flat_map(|name| functions(facts, driver, name))).map(|it| it.0).collect()
        };
        let (tasklets, works) = (addresses(|driver| driver.tasklets), addresses(|driver| driver.works));
        let threaded_irqs = facts.threadirqs || facts.symbols.has(THREADED_SYMBOL);
        let chooser = HookChooser { facts, offsets: &offsets, tasklets: &tasklets, works: &works, threaded_irqs };
        let hooks = DRIVERS
            .iter()
            .flat_map(|driver| driver.hooks.iter().map(move |hook| (driver, hook)))
            .filter(|(driver, hook)| chooser.level_of(driver, hook) <= level)
            .map(|(driver, hook)| chooser.plan(driver, hook))
            .collect();
        let drivers = DRIVERS.iter().filter(|driver| chooser.has(driver)).map(|driver| chooser.driver(driver)).collect();
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

    /// The same plan without the hooks in drivers that do not serve the measured device: the completions of other devices are not slowed, and each
    /// kprobe less is a grace period less when the probes go. A driver that is not known here keeps all of them.
    pub fn for_device_of(mut self, device_driver: &str) -> Self {
        if drivers::of_device(device_driver).is_none() {
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

/// Whether the plan depends on a symbol: a driver names it, or it says which kernel this is.
fn is_relevant_symbol(symbol: &str) -> bool {
    drivers::is_wanted(symbol) || offsets::ERA_SYMBOLS.contains(&symbol)
}

/// `sched_switch` got a fourth argument in about 5.18; the typedef counts the hidden first one.
fn switch_tells_state(facts: &Facts) -> bool {
    let parameters = facts.vmlinux.as_ref().and_then(|btf| btf.callback_parameters("btf_trace_sched_switch"));
    parameters.is_some_and(|parameters| parameters.len() > 4)
}

#[cfg(test)]
mod tests;
