//! One hook on one kernel: which candidate, or why none.

use capture::Level;
use capture::manifest::Unasked;
use ebpf_probes::Program;

use super::hook::{PlannedDriver, PlannedHook};
use super::offsets::Offsets;
use crate::machine::kernel::{Facts, Presence};
use crate::probes::drivers::{Candidate, Condition, Cover, Driver, Hook, HookKind, TASKLETS_MAX, WORKS_MAX};

/// Decides about hooks, from the kernel and what was worked out before them.
pub(super) struct HookChooser<'a> {
    pub(super) facts: &'a Facts,
    pub(super) offsets: &'a Offsets,
    /// Tasklet functions that lead to a handler; `None`: its address is hidden.
    pub(super) tasklets: &'a [Option<u64>],
    /// Work functions that lead to a completion; `None`: its address is hidden.
    pub(super) works: &'a [Option<u64>],
    pub(super) threaded_irqs: bool,
}

impl HookChooser<'_> {
    /// The lowest level that has the hook on this kernel.
    pub(super) fn level_of(&self, driver: &Driver, hook: &Hook) -> Level {
        let threaded = hook.level_if_threaded.filter(|_| self.threaded_irqs);
        let without = || hook.level_without.filter(|(name, _)| functions(self.facts, driver, name).is_empty()).map(|(_, level)| level);
        threaded.or_else(without).unwrap_or(hook.level)
    }

    /// Whether the driver is there: one of its modules is loaded, or one of its functions is built in.
    pub(super) fn has(&self, driver: &Driver) -> bool {
        let is_marked = || {
            let of_module = |module: &str| !self.facts.symbols.of(driver.mark, Some(module)).is_empty();
            driver.modules.iter().any(|module| of_module(module))
        };
        driver.modules.is_empty() || driver.modules.iter().any(|module| self.facts.modules.contains(*module)) || is_marked()
    }

    /// The driver as this kernel has it.
    pub(super) fn driver(&self, driver: &Driver) -> PlannedDriver {
        let has = |name: &&str| self.facts.symbols.has(name);
        let chain = driver.chains.iter().find(|chain| chain.has.iter().all(has) && !chain.lacks.iter().any(has));
        PlannedDriver { name: driver.name, chain: chain.map(|chain| chain.text), contexts: driver.contexts, tried: driver.tried }
    }

    /// Decides about one hook.
    pub(super) fn plan(&self, driver: &Driver, hook: &Hook) -> PlannedHook {
        let (choice, is_expected) = self.choose(driver, hook);
        let (candidate, symbol, reason) = match choice {
            Ok((candidate, symbol, reason)) => (candidate, Some(symbol), reason),
            Err(reason) => (&hook.candidates[0], None, reason),
        };
        PlannedHook {
            hook: hook.name,
            driver: driver.name,
            level: self.level_of(driver, hook),
            kind: hook.kind,
            symbol,
            program: candidate.program,
            gives: hook.gives,
            reason,
            mandatory: hook.mandatory && is_expected,
            silence: hook.silence,
            arrival: hook.arrival,
            for_every_device: hook.for_every_device,
        }
    }

    /// The candidate, its attach name and the reason; or why there is none. And whether a kernel like this ought to have it.
    fn choose<'h>(&self, driver: &Driver, hook: &'h Hook) -> (Result<(&'h Candidate, String, String), String>, bool) {
        if let Some(why) = self.unmet(hook.condition) {
            return (Err(why), false);
        }
        if !self.has(driver) {
            return (Err(Unasked::modules(driver.modules).to_string()), false);
        }
        if let Some(covering) = hook.covered_by.and_then(|cover| self.covering(cover)) {
            return (Err(covering), false);
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
        match hook.if_missing {
            Some(meaning) if hook.candidates.iter().all(|it| functions(self.facts, driver, it.symbol).is_empty()) => {
                passed_over.insert(0, meaning.to_owned());
                (Err(passed_over.join("; ")), false)
            }
            _ => (Err(passed_over.join("; ")), true),
        }
    }

    /// Why the hook is superfluous, where it is.
    fn covering(&self, cover: Cover) -> Option<String> {
        let (is_there, what) = match cover {
            Cover::Function(name) => (self.facts.symbols.has(name), format!("`{name}`")),
            Cover::Tracepoint(name) => (self.facts.tracepoint(name) == Presence::Present, format!("tracepoint `{name}`")),
        };
        is_there.then(|| format!("{what} covers it on this kernel"))
    }

    fn unmet(&self, condition: Condition) -> Option<String> {
        match condition {
            Condition::Tasklet if self.tasklets.is_empty() => Some(Unasked::Tasklet.to_string()),
            Condition::Work if self.works.is_empty() => Some(Unasked::Work.to_string()),
            Condition::Work if self.works.iter().all(Option::is_none) => {
                Some("addresses are hidden (kernel.kptr_restrict), so the driver's work items cannot be told apart".to_owned())
            }
            _ => None,
        }
    }

    /// The name to attach to and why, or why not.
    fn try_candidate(&self, driver: &Driver, kind: HookKind, candidate: &Candidate) -> Result<(String, String), String> {
        let name = candidate.symbol;
        if kind == HookKind::RawTracepoint {
            let filter = self.filter_off(candidate.program);
            return match self.facts.tracepoint(name) {
                Presence::Present => Ok((name.to_owned(), format!("the kernel has it{filter}"))),
                Presence::Unknown => Ok((name.to_owned(), format!("nothing tells whether the kernel has it{filter}"))),
                Presence::Absent => Err(format!("this kernel has no tracepoint `{name}`")),
            };
        }
        let found = functions(self.facts, driver, name);
        let [(_, module)] = found.as_slice() else {
            return Err(match found.len() {
                0 => match self.facts.symbols.copy_of(name) {
                    Some(copy) => format!("no function `{name}`, only `{copy}`, a compiler's copy whose arguments may differ"),
                    None => format!("no function `{name}`"),
                },
                many => format!("{many} functions are called `{name}`: a probe would cover only one"),
            });
        };
        let checked = self.check_arguments(*module, candidate)?;
        let place = module.unwrap_or("the kernel image");
        let symbol = module.map_or_else(|| name.to_owned(), |module| format!("{module}:{name}"));
        Ok((symbol, format!("one function of that name in {place}{checked}")))
    }

    /// Says that a filter by function does not hold, and why.
    fn filter_off(&self, program: Program) -> String {
        let (functions, max, what) = match program {
            Program::TaskletEntry => (self.tasklets, TASKLETS_MAX, "tasklet"),
            Program::WorkQueue | Program::WorkStart => (self.works, WORKS_MAX, "work item"),
            _ => return String::new(),
        };
        match functions.len() {
            _ if functions.iter().any(Option::is_none) => format!(", addresses are hidden: every {what} is recorded"),
            count if count > max => format!(", {count} functions matter and the filter holds {max}: every {what} is recorded"),
            _ => String::new(),
        }
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

/// Functions of that name in the driver's modules or in the kernel image: address and module.
pub(super) fn functions<'f>(facts: &'f Facts, driver: &Driver, name: &str) -> Vec<(Option<u64>, Option<&'f str>)> {
    let modules = driver.modules.iter().chain(driver.also).map(|module| Some(*module));
    let found = modules.flat_map(|module| facts.symbols.of(name, module));
    let mut found: Vec<_> = found.map(|symbol| (symbol.address, symbol.module.as_deref())).collect();
    // A function of the kernel image is found once per module.
    found.dedup();
    found
}
