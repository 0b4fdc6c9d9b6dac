//! bnxt_re: irq → tasklet of the notification queue → `bnxt_re_cqn_handler` → handler. An error path calls the handler from a work item.

use capture::CompletionShape;
use ebpf_probes::Program;

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

/// The driver.
pub const BNXT_RE: Driver = Driver {
    name: "bnxt_re",
    modules: &["bnxt_re"],
    also: &[],
    device_drivers: &["bnxt_en"],
    provider: Some(Provider::One("bnxt_re")),
    completion: Some(CompletionShape::Tasklet),
    mark: "bnxt_re_cqn_handler",
    tried: Tried::Attaches,
    chains: &[Chain {
        has: &[],
        lacks: &[],
        text: "K1 (K1b `bnxt_qplib_nq_irq`) [hard irq] → K4 tasklet `bnxt_qplib_service_nq` → `bnxt_re_cqn_handler` → K5 [softirq]",
    }],
    contexts: "softirq; `bnxt_re_cqn_handler` has the `bnxt_qplib_cq` in argument 1, and its `id` is the device's number of the CQ",
    tasklets: &["bnxt_qplib_service_nq"],
    works: &[],
    hooks: &[
        Hook {
            name: "K1b bnxt_re interrupt handler",
            candidates: &[Candidate::with("bnxt_qplib_nq_irq", Program::BnxtIrq, super::IRQ_ARGUMENTS)],
            ..Hook::IRQ
        },
        Hook {
            name: "K4 bnxt_re tasklet",
            candidates: &[Candidate::with("bnxt_qplib_service_nq", Program::BnxtBottomHalf, super::TASKLET_ARGUMENT)],
            ..Hook::TASKLET
        },
        Hook {
            name: "bnxt_re callback",
            candidates: &[Candidate::with(
                "bnxt_re_cqn_handler",
                Program::BnxtComp,
                &[&["struct bnxt_qplib_nq *"], &["struct bnxt_qplib_cq *"]],
            )],
            ..Hook::COMP
        },
    ],
};
