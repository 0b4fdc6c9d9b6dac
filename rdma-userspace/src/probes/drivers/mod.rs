//! Drivers as data: which hooks a driver has, in which order candidates are tried, and how a hook finds the CQ.
//!
//! A new driver is one more file here, its programs in `ebpf-probes`, and a fixture in the planner's tests.

mod generic;
mod mlx4;
mod mlx5;
mod rxe;

use ebpf_probes::{Kind, Program};

use super::Level;

/// How a hook is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// A kernel tracepoint, raw.
    RawTracepoint,
    /// Entry of a function.
    Kprobe,
    /// Return of a function.
    Kretprobe,
}

impl HookKind {
    /// Its name in the plan.
    pub const fn name(self) -> &'static str {
        match self {
            HookKind::RawTracepoint => "raw_tp",
            HookKind::Kprobe => "kprobe",
            HookKind::Kretprobe => "kretprobe",
        }
    }
}

/// What a hook waits for besides its symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    Always,
    /// Some loaded driver completes through a tasklet.
    Tasklet,
    /// Some loaded driver completes through a work item.
    Work,
}

/// One way to get a hook's events.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Tracepoint or function.
    pub symbol: &'static str,
    /// The program for it.
    pub program: Program,
    /// Types that each leading argument may have, where the program depends on them; checked where BTF describes the function.
    pub arguments: &'static [&'static [&'static str]],
}

/// A place in the kernel that gives events.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    /// Its name in plans and reports, beginning with the event's name in the stage model.
    pub name: &'static str,
    /// The lowest level that has it.
    pub level: Level,
    /// How it is attached.
    pub kind: HookKind,
    /// True: a kernel whose driver is loaded must have it.
    pub mandatory: bool,
    /// What it waits for.
    pub condition: Condition,
    /// In order of preference.
    pub candidates: &'static [Candidate],
    /// A symbol that makes this hook superfluous.
    pub covered_by: Option<&'static str>,
    /// Offsets (names of the object's globals) without which it gives nothing.
    pub needs: &'static [&'static str],
    /// Kinds of records.
    pub gives: &'static [Kind],
    /// What it means when it never fires.
    pub silence: Option<&'static str>,
}

/// A driver, or a layer that all drivers share.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// Its name.
    pub name: &'static str,
    /// Modules whose functions the hooks may attach to; empty for the kernel itself. The first is the driver's own.
    pub modules: &'static [&'static str],
    /// The hooks.
    pub hooks: &'static [Hook],
    /// Tasklet functions that lead to a completion handler.
    pub tasklets: &'static [&'static str],
    /// Work functions that lead to a completion.
    pub works: &'static [&'static str],
    /// Where its completions run and how a hook finds the CQ, for readers.
    pub contexts: &'static str,
}

/// Every driver that is known, the shared layers first.
pub const DRIVERS: &[Driver] = &[generic::KERNEL, generic::UVERBS, rxe::RXE, mlx5::MLX5, mlx4::MLX4];

/// Modules whose BTF and functions matter.
pub const MODULES: &[&str] = &["ib_core", "ib_uverbs", "rdma_rxe", "mlx5_core", "mlx5_ib", "mlx4_core", "mlx4_ib"];

impl Hook {
    /// What most hooks share: a kprobe of level std that a kernel with the driver must have.
    pub(super) const KPROBE: Hook = Hook {
        name: "",
        level: Level::Std,
        kind: HookKind::Kprobe,
        mandatory: true,
        condition: Condition::Always,
        candidates: &[],
        covered_by: None,
        needs: &[],
        gives: &[],
        silence: None,
    };
    /// As [`Hook::KPROBE`], for a raw tracepoint.
    pub(super) const TRACEPOINT: Hook = Hook { kind: HookKind::RawTracepoint, ..Hook::KPROBE };
}

impl Candidate {
    /// A candidate whose arguments need no check.
    pub(super) const fn new(symbol: &'static str, program: Program) -> Self {
        Candidate { symbol, program, arguments: &[] }
    }

    /// A candidate whose leading arguments must have one of the given types.
    pub(super) const fn with(symbol: &'static str, program: Program, arguments: &'static [&'static [&'static str]]) -> Self {
        Candidate { symbol, program, arguments }
    }
}

/// Whether a symbol matters to any driver.
pub fn is_wanted(symbol: &str) -> bool {
    DRIVERS.iter().any(|driver| {
        let of_hook = |hook: &Hook| {
            hook.candidates.iter().any(|candidate| candidate.symbol == symbol) || hook.covered_by.is_some_and(|covering| covering == symbol)
        };
        driver.hooks.iter().any(of_hook) || driver.tasklets.contains(&symbol) || driver.works.contains(&symbol)
    }) || super::offsets::ERA_SYMBOLS.contains(&symbol)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_program_but_the_clock_check_and_the_counter_of_calls_belongs_to_one_hook() {
        let mut seen = HashSet::new();
        for hook in DRIVERS.iter().flat_map(|driver| driver.hooks) {
            assert!(!hook.candidates.is_empty(), "{} has no candidate", hook.name);
            for candidate in hook.candidates {
                assert!(seen.insert(candidate.program), "{:?} is used twice", candidate.program);
            }
        }
        let unused: Vec<_> = Program::ALL.iter().filter(|program| !seen.contains(program)).collect();
        assert_eq!(unused, [&Program::ClockProbe, &Program::Syscalls]);
    }

    #[test]
    fn names_of_hooks_are_unique() {
        let mut seen = HashSet::new();
        for hook in DRIVERS.iter().flat_map(|driver| driver.hooks) {
            assert!(seen.insert(hook.name), "{} twice", hook.name);
        }
    }
}
