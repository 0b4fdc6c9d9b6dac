//! qedr: the handler runs directly in the hard interrupt, in a loop over the completion notification queue. The same from 5.4 to 7.3.

use capture::CompletionShape;
use ebpf_probes::Program;

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

/// The driver.
pub const QEDR: Driver = Driver {
    name: "qedr",
    modules: &["qedr"],
    also: &[],
    device_drivers: &["qede"],
    provider: Some(Provider::One("qedr")),
    completion: Some(CompletionShape::Direct),
    mark: "qedr_irq_handler",
    tried: Tried::Attaches,
    chains: &[Chain { has: &[], lacks: &[], text: "K1 (K1b `qedr_irq_handler`) → K5, all in the hard irq; no bottom half" }],
    contexts: "hard irq; several CQs of one interrupt are told apart by their order only",
    tasklets: &[],
    works: &[],
    hooks: &[Hook {
        name: "K1b qedr interrupt handler",
        candidates: &[Candidate::with("qedr_irq_handler", Program::QedrIrq, super::IRQ_ARGUMENTS)],
        ..Hook::IRQ
    }],
};
