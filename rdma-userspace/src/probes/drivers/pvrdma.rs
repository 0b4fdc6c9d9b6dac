//! vmw_pvrdma: the handler runs directly in the hard interrupt, in a loop over the notification ring. The same from 5.4 to 7.3.

use ebpf_probes::Program;

use super::{Candidate, Driver, Hook, Shape, Tried};

/// The driver.
pub const PVRDMA: Driver = Driver {
    name: "pvrdma",
    modules: &["vmw_pvrdma"],
    also: &[],
    mark: "pvrdma_intrx_handler",
    tried: Tried::Source,
    shapes: &[Shape { has: &[], lacks: &[], chain: "K1 (K1b `pvrdma_intrx_handler`) → K5, all in the hard irq; no bottom half" }],
    contexts: "hard irq of a virtual machine: what the hypervisor does before it is invisible",
    tasklets: &[],
    works: &[],
    hooks: &[Hook {
        name: "K1b pvrdma interrupt handler",
        candidates: &[Candidate::with("pvrdma_intrx_handler", Program::PvrdmaIrq, super::IRQ_ARGUMENTS)],
        ..Hook::IRQ
    }],
};
