//! efa: the handler runs directly in the hard interrupt. Drivers before 6.0 have no completion events at all: polling only.

use capture::CompletionShape;
use ebpf_probes::Program;

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

/// The driver.
pub const EFA: Driver = Driver {
    name: "efa",
    modules: &["efa"],
    also: &[],
    device_drivers: &[],
    provider: Some(Provider::One("efa")),
    completion: Some(CompletionShape::Direct),
    mark: "efa_intr_msix_comp",
    tried: Tried::Source,
    chains: &[
        Chain {
            has: &["efa_intr_msix_comp"], lacks: &[], text: "K1 (K1b `efa_intr_msix_comp`) → K5, all in the hard irq; no bottom half"
        },
        Chain { has: &[], lacks: &[], text: "no completion events in this era of the driver: event mode is not supported" },
    ],
    contexts: "hard irq; K1 to K5 is one stage",
    tasklets: &[],
    works: &[],
    hooks: &[Hook {
        name: "K1b efa interrupt handler",
        candidates: &[Candidate::with("efa_intr_msix_comp", Program::EfaIrq, super::IRQ_ARGUMENTS)],
        if_missing: Some("this era of efa has no completion events: event mode is not supported"),
        ..Hook::IRQ
    }],
};
