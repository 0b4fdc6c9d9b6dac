//! `rdmascope doctor`: what this machine does to a measurement, and the command that changes it. It changes nothing itself.
//!
//! Each area is a file with a table-like list of small checks; a check looks at the [`Context`] and returns findings.

mod context;
mod cpu;
mod device;
mod finding;
mod gids;
mod irq;
mod kernel;
mod kernel_side;
mod limits;
mod memory;
mod pcie;
mod provider;
mod rights;
mod text;

#[cfg(test)]
mod hardware_tests;
#[cfg(test)]
mod probes_tests;
#[cfg(test)]
mod tests;

pub use finding::{Finding, Findings, Section, Severity};
pub use text::colour_wanted;

use crate::machine::{Root, TOOL_VERSION};
use context::Context;

/// What to look at, and how to say it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only this RDMA device; all when `None`.
    pub device: Option<String>,
    /// JSON instead of text.
    pub json: bool,
    /// The machine: `/`, or a tree of files in tests.
    pub root: Root,
}

/// An area: its title and its checks, in the order in which they are shown.
struct Area {
    title: &'static str,
    checks: &'static [fn(&Context<'_>) -> Vec<Finding>],
}

const AREAS: &[Area] = &[
    Area { title: "Device", checks: device::CHECKS },
    Area { title: "Verbs library", checks: provider::CHECKS },
    Area { title: "GIDs and network", checks: gids::CHECKS },
    Area { title: "PCIe", checks: pcie::CHECKS },
    Area { title: "Interrupts", checks: irq::CHECKS },
    Area { title: "CPU", checks: cpu::CHECKS },
    Area { title: "Memory", checks: memory::CHECKS },
    Area { title: "Limits", checks: limits::CHECKS },
    Area { title: "Kernel and clock", checks: kernel::CHECKS },
    Area { title: "What the probes may do", checks: rights::CHECKS },
    Area { title: "What the probes need", checks: kernel_side::CHECKS },
];

/// Looks at the machine. Nothing is changed, no device is opened.
pub fn run(options: &Options) -> Findings {
    let context = Context::new(options);
    let findings = AREAS
        .iter()
        .flat_map(|area| {
            let found = area.checks.iter().flat_map(|check| check(&context));
            found.map(|finding| Finding { area: area.title, ..finding })
        })
        .collect();
    let Context { host, selected, .. } = context;
    Findings { tool_version: TOOL_VERSION, host, devices: selected, findings, sections: Vec::new() }
}
