//! irdma, and i40iw before it (up to 5.13): irq → tasklet → event queue processing → handler.
//!
//! The functions that call the handler are inlined; the event queue's processing is the last step that can be watched. Completions
//! that a flush generates call the handler from a work item or a syscall: no interrupt belongs to them.

use capture::CompletionShape;
use ebpf_probes::Program;

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

/// The driver.
pub const IRDMA: Driver = Driver {
    name: "irdma",
    modules: &["irdma", "i40iw"],
    also: &[],
    device_drivers: &["ice", "i40e"],
    provider: Some(Provider::One("irdma")),
    completion: Some(CompletionShape::Tasklet),
    mark: "irdma_process_ceq",
    tried: Tried::Attaches,
    chains: &[
        Chain {
            has: &["i40iw_process_ceq"],
            lacks: &["irdma_process_ceq"],
            text: "i40iw: K1 (K1b `i40iw_ceq_handler`, vector 0 `i40iw_irq_handler`) [hard irq] → K4 `i40iw_process_ceq` in a tasklet → K5 [softirq]",
        },
        Chain {
            has: &[],
            lacks: &[],
            text: "K1 (K1b `irdma_ceq_handler`, vector 0 `irdma_irq_handler`) [hard irq] → K4 tasklet `irdma_ceq_dpc` or `irdma_dpc` → K5 [softirq, \
                    interrupts off]",
        },
    ],
    contexts: "softirq; no function names the CQ before its handler does: several CQs of one event queue are told apart by their order only",
    tasklets: &["irdma_ceq_dpc", "irdma_dpc", "i40iw_ceq_dpc", "i40iw_dpc"],
    works: &[],
    hooks: &[
        Hook {
            name: "K1b irdma interrupt handler",
            candidates: &[
                Candidate::with("irdma_ceq_handler", Program::IrdmaIrq, super::IRQ_ARGUMENTS),
                Candidate::with("i40iw_ceq_handler", Program::IrdmaIrq, super::IRQ_ARGUMENTS),
            ],
            ..Hook::IRQ
        },
        Hook {
            name: "K1b irdma shared interrupt handler",
            candidates: &[
                Candidate::with("irdma_irq_handler", Program::IrdmaIrqShared, super::IRQ_ARGUMENTS),
                Candidate::with("i40iw_irq_handler", Program::IrdmaIrqShared, super::IRQ_ARGUMENTS),
            ],
            ..Hook::IRQ
        },
        Hook {
            name: "K4 irdma event queue",
            candidates: &[
                Candidate::with("irdma_process_ceq", Program::IrdmaBottomHalf, &[&["struct irdma_pci_f *"], &["struct irdma_ceq *"]]),
                Candidate::with("i40iw_process_ceq", Program::IrdmaBottomHalf, &[&["struct i40iw_device *"], &["struct i40iw_ceq *"]]),
            ],
            ..Hook::TASKLET
        },
    ],
};
