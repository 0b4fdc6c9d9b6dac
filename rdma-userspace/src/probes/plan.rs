//! What to attach on this kernel, and why: decided from symbols, BTF and tracepoints, never from a version.

use std::fmt;
use std::path::Path;

use ebpf_probes::{Kind, Program};

use super::Level;
use super::drivers::{Candidate, Condition, DRIVERS, Driver, Hook, HookKind, MODULES, is_wanted};
use super::offsets::Offsets;
use crate::kernel::{Facts, KernelError, Presence};

/// One hook of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedHook {
    /// Its name.
    pub hook: &'static str,
    /// The driver or layer that it belongs to.
    pub driver: &'static str,
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
    /// Offsets for the programs.
    pub offsets: Offsets,
    /// Addresses of tasklet functions that matter; empty with `all_tasklets`: not known, record every tasklet.
    pub tasklets: Vec<u64>,
    /// True when the addresses of the tasklet functions are hidden.
    pub all_tasklets: bool,
    /// Addresses of work functions that matter.
    pub works: Vec<u64>,
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
        Ok(Self::decide(&Facts::read(root, is_wanted, MODULES)?, level))
    }

    /// Decides from facts.
    pub fn decide(facts: &Facts, level: Level) -> Self {
        let offsets = Offsets::resolve(facts);
        let addresses = |names: fn(&Driver) -> &'static [&'static str]| -> Vec<Option<u64>> {
            DRIVERS.iter().flat_map(|driver| names(driver).iter().flat_map(|name| functions(facts, driver, name))).map(|it| it.0).collect()
        };
        let (tasklets, works) = (addresses(|driver| driver.tasklets), addresses(|driver| driver.works));
        let situation = Situation { facts, offsets: &offsets, tasklets: tasklets.len(), works: &works };
        let hooks = DRIVERS
            .iter()
            .flat_map(|driver| driver.hooks.iter().map(move |hook| (driver, hook)))
            .filter(|(_, hook)| hook.level <= level)
            .map(|(driver, hook)| situation.plan(driver, hook))
            .collect();
        Plan {
            level,
            release: facts.release.clone(),
            boot_id: facts.boot_id.clone(),
            lockdown: facts.lockdown.clone(),
            hooks,
            offsets,
            all_tasklets: tasklets.iter().any(Option::is_none),
            tasklets: tasklets.into_iter().flatten().collect(),
            works: works.into_iter().flatten().collect(),
            switch_tells_state: switch_tells_state(facts),
            missed: MissedFields::of(facts),
        }
    }

    /// The same plan with only the hooks that give one of these kinds.
    pub fn only(mut self, kinds: &[Kind]) -> Self {
        self.hooks.retain(|hook| hook.gives.iter().any(|kind| kinds.contains(kind)));
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
        for hook in &self.hooks {
            let symbol = hook.symbol.as_deref().unwrap_or("absent");
            writeln!(f, "  {:<36} {:<9} {:<36} {}", hook.hook, hook.kind.name(), symbol, hook.reason)?;
        }
        Ok(())
    }
}

struct Situation<'a> {
    facts: &'a Facts,
    offsets: &'a Offsets,
    tasklets: usize,
    works: &'a [Option<u64>],
}

impl Situation<'_> {
    fn plan(&self, driver: &Driver, hook: &Hook) -> PlannedHook {
        let (choice, is_expected) = self.choose(driver, hook);
        let (candidate, symbol, reason) = match choice {
            Ok((candidate, symbol, reason)) => (candidate, Some(symbol), reason),
            Err(reason) => (&hook.candidates[0], None, reason),
        };
        PlannedHook {
            hook: hook.name,
            driver: driver.name,
            kind: hook.kind,
            symbol,
            program: candidate.program,
            gives: hook.gives,
            reason,
            mandatory: hook.mandatory && is_expected,
            silence: hook.silence,
        }
    }

    /// The candidate, its attach name and the reason; or why there is none. And whether a kernel like this ought to have it.
    fn choose<'h>(&self, driver: &Driver, hook: &'h Hook) -> (Result<(&'h Candidate, String, String), String>, bool) {
        if let Some(why) = self.unmet(hook.condition) {
            return (Err(why), false);
        }
        if let Some(covering) = hook.covered_by
            && self.facts.symbols.has(covering)
        {
            return (Err(format!("`{covering}` covers it on this kernel")), false);
        }
        if !driver.modules.is_empty() && !self.is_there(driver, hook) {
            return (Err(format!("module {} is not loaded", driver.modules[0])), false);
        }
        let mut passed_over = Vec::new();
        for candidate in hook.candidates {
            match self.try_candidate(driver, hook.kind, candidate) {
                Ok((symbol, reason)) => {
                    if let Some((_, why)) = self.offsets.missing(hook.needs) {
                        return (Err(why.to_owned()), true);
                    }
                    passed_over.insert(0, reason);
                    return (Ok((candidate, symbol, passed_over.join("; "))), true);
                }
                Err(why) => passed_over.push(why),
            }
        }
        (Err(passed_over.join("; ")), true)
    }

    fn unmet(&self, condition: Condition) -> Option<String> {
        match condition {
            Condition::Tasklet if self.tasklets == 0 => Some("no loaded driver notifies through a tasklet".to_owned()),
            Condition::Work if self.works.is_empty() => Some("no loaded driver completes through a work item".to_owned()),
            Condition::Work if self.works.iter().all(Option::is_none) => {
                Some("addresses are hidden (kernel.kptr_restrict), so the driver's work items cannot be told apart".to_owned())
            }
            _ => None,
        }
    }

    /// Whether the driver is in the kernel: its own module is loaded, or one of the hook's functions exists.
    fn is_there(&self, driver: &Driver, hook: &Hook) -> bool {
        driver.modules.first().is_some_and(|module| self.facts.modules.contains(*module))
            || hook.candidates.iter().any(|candidate| !functions(self.facts, driver, candidate.symbol).is_empty())
    }

    /// The name to attach to and why, or why not.
    fn try_candidate(&self, driver: &Driver, kind: HookKind, candidate: &Candidate) -> Result<(String, String), String> {
        let name = candidate.symbol;
        if kind == HookKind::RawTracepoint {
            return match self.facts.tracepoint(name) {
                Presence::Present => Ok((name.to_owned(), "the kernel has it".to_owned())),
                Presence::Unknown => Ok((name.to_owned(), "nothing tells whether the kernel has it".to_owned())),
                Presence::Absent => Err(format!("this kernel has no tracepoint `{name}`")),
            };
        }
        let found = functions(self.facts, driver, name);
        let [(_, module)] = found.as_slice() else {
            return Err(match found.len() {
                0 => format!("no function `{name}`"),
                many => format!("{many} functions are called `{name}`: a probe would cover only one"),
            });
        };
        let checked = self.check_arguments(*module, candidate)?;
        let place = module.unwrap_or("the kernel image");
        let symbol = module.map_or_else(|| name.to_owned(), |module| format!("{module}:{name}"));
        Ok((symbol, format!("one function of that name in {place}{checked}")))
    }

    fn check_arguments(&self, module: Option<&str>, candidate: &Candidate) -> Result<&'static str, String> {
        if candidate.arguments.is_empty() {
            return Ok("");
        }
        let described = self.facts.btf_of(module).and_then(|btf| btf.parameters(candidate.symbol));
        let Some(parameters) = described else { return Ok(", arguments not described by BTF") };
        let fits = candidate
            .arguments
            .iter()
            .enumerate()
            .all(|(at, allowed)| parameters.get(at).is_some_and(|parameter| allowed.contains(&parameter.as_str())));
        if fits { Ok(", arguments as expected") } else { Err(format!("`{}` takes ({})", candidate.symbol, parameters.join(", "))) }
    }
}

/// `sched_switch` got a fourth argument in about 5.18; the typedef counts the hidden first one.
fn switch_tells_state(facts: &Facts) -> bool {
    let parameters = facts.vmlinux.as_ref().and_then(|btf| btf.callback_parameters("btf_trace_sched_switch"));
    parameters.is_some_and(|parameters| parameters.len() > 4)
}

/// Functions of that name in the driver's modules or in the kernel image: address and module.
fn functions<'f>(facts: &'f Facts, driver: &Driver, name: &str) -> Vec<(Option<u64>, Option<&'f str>)> {
    let modules = driver.modules.iter().map(|module| Some(*module));
    let found = modules.flat_map(|module| facts.symbols.of(name, module));
    let mut found: Vec<_> = found.map(|symbol| (symbol.address, symbol.module.as_deref())).collect();
    // A function of the kernel image is found once per module.
    found.dedup();
    found
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
