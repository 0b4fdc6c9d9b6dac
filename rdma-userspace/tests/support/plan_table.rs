//! The plan of a kernel as a table that is the same after every boot: how it is written, compared with the expected one, and kept anew.
//!
//! One format for what follows from an extract (`fixtures/kernels/KERNEL/expected.txt`, level full) and for what a guest finds
//! (`fixtures/plans/KERNEL.txt`, level std). A line per driver that is there, with how it completes; then a line per hook: its name, how it
//! is attached, its level, where it attaches or "absent" ("MISSING" where it ought to be there), and why. No address, no version.
use rdmascope_core::probes::{Plan, PlannedHook};
use std::collections::BTreeSet;

/// Set: what is found becomes what is expected. To be read before it is committed.
const UPDATE: &str = "RDMASCOPE_UPDATE_PLANS";

/// Whether expected tables are to be written anew.
pub fn is_update() -> bool {
    std::env::var_os(UPDATE).is_some_and(|value| !value.is_empty())
}

/// One hook's line.
pub fn row(hook: &PlannedHook) -> String {
    let absent = if hook.mandatory { "MISSING" } else { "absent" };
    let symbol = hook.symbol.as_deref().unwrap_or(absent);
    format!("{:<45} {:<10} {:<5} {symbol:<45} {}", hook.hook, hook.kind.name(), hook.level, hook.reason)
}

/// The table.
pub fn table(plan: &Plan) -> String {
    let drivers = plan.drivers.iter().map(|driver| format!("# {}: {}\n", driver.name, driver.chain.unwrap_or("-")));
    drivers.chain(plan.hooks.iter().map(|hook| row(hook) + "\n")).collect()
}

/// The lines that only one of both tables has: `-` expected, `+` found. Empty when they say the same.
pub fn differences(expected: &str, found: &str) -> String {
    let (expected, found): (BTreeSet<&str>, BTreeSet<&str>) = (expected.lines().collect(), found.lines().collect());
    let gone = expected.difference(&found).map(|line| format!("- {line}\n"));
    gone.chain(found.difference(&expected).map(|line| format!("+ {line}\n"))).collect()
}
