//! mana: the handler runs directly in the hard interrupt, of a vector that the network driver uses too. Older `mana_ib` (6.6) has no
//! CQ callback: no event mode.

use capture::CompletionShape;
use ebpf_probes::Program;

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

/// The driver.
pub const MANA: Driver = Driver {
    name: "mana",
    modules: &["mana_ib"],
    also: &["mana"],
    device_drivers: &[],
    provider: Some(Provider::One("mana")),
    completion: Some(CompletionShape::Direct),
    mark: "mana_ib_cq_handler",
    tried: Tried::Attaches,
    chains: &[
        Chain {
            has: &["mana_ib_cq_handler"],
            lacks: &[],
            text: "K1 (K1b `mana_gd_intr`) → `mana_ib_cq_handler` → K5, all in the hard irq; no bottom half",
        },
        Chain { has: &[], lacks: &[], text: "no CQ callback in this era of the driver: event mode is not supported" },
    ],
    contexts: "hard irq, shared with the network queues of the vector; `mana_ib_cq_handler` has the `ib_cq` in argument 0",
    tasklets: &[],
    works: &[],
    hooks: &[
        Hook {
            name: "K1b mana interrupt handler",
            candidates: &[Candidate::with("mana_gd_intr", Program::ManaIrq, super::IRQ_ARGUMENTS)],
            ..Hook::IRQ
        },
        Hook {
            name: "mana callback",
            candidates: &[Candidate::with("mana_ib_cq_handler", Program::ManaComp, &[&["void *"], &["struct gdma_queue *"]])],
            if_missing: Some("this era of mana_ib has no CQ callback: event mode is not supported"),
            ..Hook::COMP
        },
    ],
};
