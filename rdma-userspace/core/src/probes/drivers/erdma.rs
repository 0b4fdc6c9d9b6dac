//! erdma: irq → tasklet (of the old style, whose argument is a number) → handler.

use capture::CompletionShape;
use ebpf_probes::Program;

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

/// The driver.
pub const ERDMA: Driver = Driver {
    name: "erdma",
    modules: &["erdma"],
    also: &[],
    device_drivers: &[],
    provider: Some(Provider::One("erdma")),
    completion: Some(CompletionShape::Tasklet),
    mark: "erdma_intr_ceq_handler",
    tried: Tried::Source,
    chains: &[Chain {
        has: &[],
        lacks: &[],
        text: "K1 (K1b `erdma_intr_ceq_handler`) [hard irq] → K4 tasklet `erdma_intr_ceq_task` → K5 [softirq]",
    }],
    contexts: "softirq; no function names the CQ before its handler does",
    tasklets: &["erdma_intr_ceq_task"],
    works: &[],
    hooks: &[
        Hook {
            name: "K1b erdma interrupt handler",
            candidates: &[Candidate::with("erdma_intr_ceq_handler", Program::ErdmaIrq, super::IRQ_ARGUMENTS)],
            ..Hook::IRQ
        },
        Hook {
            name: "K4 erdma tasklet",
            candidates: &[
                Candidate::new("erdma_intr_ceq_task", Program::ErdmaBottomHalf),
                Candidate::new("erdma_ceq_completion_handler", Program::ErdmaBottomHalf),
            ],
            ..Hook::TASKLET
        },
    ],
};
