//! The rows of a plan: a hook with the symbol it is attached to or the reason why there is none, and a driver that the kernel has.

use capture::Level;
use ebpf_probes::{Kind, Program};

use crate::probes::drivers::{Arrival, HookKind, Tried};

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
    pub tried: Tried,
}
