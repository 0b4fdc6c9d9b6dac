//! The plan for readers: every level at once, driver by driver, as text and as data.

use capture::Level;
use std::fmt;

use serde::Serialize;

use super::offsets::{Offset, Source};
use super::{Plan, PlannedDriver, PlannedHook};
use crate::probes::drivers::{self, DRIVERS};

/// The whole plan of a kernel.
#[derive(Debug, Serialize)]
pub struct PlanView {
    /// The kernel's release; empty when it is not known.
    pub kernel: String,
    /// True when interrupt handlers run in threads: K1b is then at level `std`.
    pub threaded_irqs: bool,
    /// Lockdown mode in force, where the kernel has one.
    pub lockdown: Option<String>,
    /// The drivers that are there.
    pub drivers: Vec<DriverView>,
    /// Drivers that are known and not there.
    pub absent_drivers: Vec<&'static str>,
    /// Which tasklets are recorded.
    pub tasklets: String,
    /// Which work items are recorded.
    pub work_items: String,
    /// Offsets of structures that the programs read, of what is there.
    pub offsets: Vec<OffsetView>,
    /// BTF that is there and was not used, with the reason.
    pub btf_problems: Vec<String>,
}

/// One driver.
#[derive(Debug, Serialize)]
pub struct DriverView {
    /// Its name.
    pub driver: &'static str,
    /// How it completes on this kernel.
    pub chain: Option<&'static str>,
    /// Where its completions run.
    pub contexts: &'static str,
    /// How far its hooks have been tried.
    pub tried: &'static str,
    /// Its hooks.
    pub hooks: Vec<HookView>,
}

/// One hook.
#[derive(Debug, Serialize)]
pub struct HookView {
    /// Its name.
    pub hook: &'static str,
    /// The lowest level that has it.
    pub level: &'static str,
    /// How it is attached.
    pub how: &'static str,
    /// Where; `None`: absent.
    pub symbol: Option<String>,
    /// Why there, or why absent.
    pub reason: String,
    /// True when it is absent although this driver ought to have it.
    pub is_missing: bool,
    /// Kinds of records that it gives.
    pub gives: Vec<&'static str>,
    /// What it means when it never fires.
    pub silence: Option<&'static str>,
}

/// One offset.
#[derive(Debug, Serialize)]
pub struct OffsetView {
    /// `structure.member`.
    pub member: String,
    /// Bytes from the structure's start; `None`: not known.
    pub bytes: Option<u32>,
    /// Where it comes from, or why it is not known.
    pub source: String,
}

impl PlanView {
    /// Of a plan at level `full`, which holds the others.
    pub fn of(plan: &Plan) -> Self {
        let driver = |it: &PlannedDriver| DriverView {
            driver: it.name,
            chain: it.chain,
            contexts: it.contexts,
            tried: it.tried.text(),
            hooks: plan.hooks.iter().filter(|hook| hook.driver == it.name).map(hook_view).collect(),
        };
        let is_there = |name: &str| plan.drivers.iter().any(|driver| driver.name == name);
        PlanView {
            kernel: plan.release.clone(),
            threaded_irqs: plan.threaded_irqs,
            lockdown: plan.lockdown.clone(),
            drivers: plan.drivers.iter().map(driver).collect(),
            absent_drivers: DRIVERS.iter().map(|driver| driver.name).filter(|name| !is_there(name)).collect(),
            tasklets: filter_text(plan.tasklets.len(), plan.all_tasklets, drivers::TASKLETS_MAX),
            work_items: filter_text(plan.works.len(), plan.all_works, drivers::WORKS_MAX),
            offsets: plan.offsets.iter().filter(|(_, offset)| offset.is_relevant).map(|(_, offset)| offset_view(offset)).collect(),
            btf_problems: plan.btf_problems.clone(),
        }
    }
}

fn filter_text(count: usize, is_off: bool, max: usize) -> String {
    match count {
        _ if is_off => "every one: the functions that matter cannot be told apart".to_owned(),
        0 => "none: no driver that is there uses one".to_owned(),
        _ => format!("those of {count} function(s), at most {max}"),
    }
}

fn hook_view(hook: &PlannedHook) -> HookView {
    HookView {
        hook: hook.hook,
        level: hook.level.name(),
        how: hook.kind.name(),
        symbol: hook.symbol.clone(),
        reason: hook.reason.clone(),
        is_missing: hook.mandatory && hook.symbol.is_none(),
        gives: hook.gives.iter().map(|kind| kind.name()).collect(),
        silence: hook.silence,
    }
}

fn offset_view(offset: &Offset) -> OffsetView {
    let source = match &offset.source {
        Source::Btf => "BTF".to_owned(),
        Source::Constant => "the same on every kernel looked at".to_owned(),
        Source::Table => "table of 5.10".to_owned(),
        Source::Unknown(why) => why.clone(),
    };
    OffsetView { member: offset.member.clone(), bytes: offset.known(), source }
}

impl fmt::Display for PlanView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release = if self.kernel.is_empty() { "a kernel that does not tell its release" } else { &self.kernel };
        writeln!(f, "Probe plan of {release}")?;
        let levels = Level::OF_RUNS.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ");
        writeln!(f, "Levels: {levels}; each holds those before it. A hook is attached from the level in its row on.")?;
        if self.threaded_irqs {
            writeln!(f, "Interrupt handlers run in threads: K1 is the primary handler only, and K1b is at level std.")?;
        }
        if let Some(mode) = &self.lockdown {
            writeln!(f, "Lockdown: {mode}.")?;
        }
        for driver in &self.drivers {
            write!(f, "{driver}")?;
        }
        writeln!(f, "\nNot there: {}", if self.absent_drivers.is_empty() { "-".to_owned() } else { self.absent_drivers.join(", ") })?;
        writeln!(f, "Tasklets recorded: {}", self.tasklets)?;
        writeln!(f, "Work items recorded: {}", self.work_items)?;
        let (known, unknown): (Vec<_>, Vec<_>) = self.offsets.iter().partition(|offset| offset.bytes.is_some());
        writeln!(f, "\nOffsets ({} known, {} not)", known.len(), unknown.len())?;
        for offset in known {
            writeln!(f, "  {:<44} {:>5}  {}", offset.member, offset.bytes.unwrap_or_default(), offset.source)?;
        }
        for offset in unknown {
            writeln!(f, "  {:<44}     ?  {}", offset.member, offset.source)?;
        }
        self.btf_problems.iter().try_for_each(|problem| writeln!(f, "BTF not used: {problem}"))
    }
}

impl fmt::Display for DriverView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{} ({})", self.driver, self.tried)?;
        if let Some(chain) = self.chain {
            writeln!(f, "  chain: {chain}")?;
        }
        writeln!(f, "  runs in: {}", self.contexts)?;
        let mut silences: Vec<&str> = Vec::new();
        for hook in &self.hooks {
            let symbol = match (&hook.symbol, hook.is_missing) {
                (Some(symbol), _) => symbol.as_str(),
                (None, true) => "MISSING",
                (None, false) => "absent",
            };
            writeln!(f, "  {:<5} {:<42} {:<9} {symbol:<40} {}", hook.level, hook.hook, hook.how, hook.reason)?;
            silences.extend(hook.silence.filter(|silence| !silences.contains(silence)));
        }
        silences.iter().try_for_each(|silence| writeln!(f, "  if silent: {silence}"))
    }
}
