//! vmw_pvrdma: the handler runs directly in the hard interrupt, in a loop over the notification ring. The same from 5.4 to 7.3.

use capture::CompletionShape;
use ebpf_probes::Program;

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

/// The driver.
pub const PVRDMA: Driver = Driver {
    name: "pvrdma",
    modules: &["vmw_pvrdma"],
    also: &[],
    device_drivers: &[],
    provider: Some(Provider::One("vmw_pvrdma")),
    completion: Some(CompletionShape::Direct),
    mark: "pvrdma_intrx_handler",
    tried: Tried::Source,
    chains: &[Chain { has: &[], lacks: &[], text: "K1 (K1b `pvrdma_intrx_handler`) → K5, all in the hard irq; no bottom half" }],
    contexts: "hard irq of a virtual machine: what the hypervisor does before it is invisible",
    tasklets: &[],
    works: &[],
    hooks: &[Hook {
        name: "K1b pvrdma interrupt handler",
        candidates: &[Candidate::with("pvrdma_intrx_handler", Program::PvrdmaIrq, super::IRQ_ARGUMENTS)],
        ..Hook::IRQ
    }],
};
