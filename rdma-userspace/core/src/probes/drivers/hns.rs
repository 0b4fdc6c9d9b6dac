//! hns: three ways. The handler runs directly in the hard interrupt, in a work item of `system_highpri_wq`, or in a work item of
//! `system_bh_wq`, which is a softirq. Versions do not tell which (a stable kernel got the second); symbols do.
//!
//! The work item shows in the workqueue tracepoints in both of the latter; only where it runs differs.

use capture::CompletionShape;
use ebpf_probes::Program;

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

/// The driver.
pub const HNS: Driver = Driver {
    name: "hns",
    modules: &["hns_roce_hw_v2", "hns_roce_hw_v1"],
    also: &["hns_roce"],
    device_drivers: &["hns3", "hns-roce-hw-v2"],
    provider: Some(Provider::One("hns")),
    completion: Some(CompletionShape::Work),
    mark: "hns_roce_cq_completion",
    tried: Tried::Source,
    chains: &[
        Chain {
            has: &["hns_roce_ceq_work", "workqueue_softirq_action"],
            lacks: &[],
            text: "K1 (K1b `hns_roce_v2_msix_interrupt_eq`) [hard irq] → K4 work item `hns_roce_ceq_work` of the BH workqueue → \
                    `hns_roce_cq_completion` → K5 [softirq]",
        },
        Chain {
            has: &["hns_roce_ceq_work"],
            lacks: &["workqueue_softirq_action"],
            text: "K1 (K1b `hns_roce_v2_msix_interrupt_eq`) [hard irq] → K4 work item `hns_roce_ceq_work` of `system_highpri_wq` → \
                    `hns_roce_cq_completion` → K5 [kworker]",
        },
        Chain {
            has: &[],
            lacks: &[],
            text: "K1 (K1b `hns_roce_v2_msix_interrupt_eq`) → `hns_roce_cq_completion` → K5, all in the hard irq; no bottom half",
        },
    ],
    contexts: "`hns_roce_cq_completion` has the device's number of the CQ in argument 1; the next completion handler on that CPU tells the `ib_cq`",
    tasklets: &[],
    works: &["hns_roce_ceq_work"],
    hooks: &[
        Hook {
            name: "K1b hns interrupt handler",
            candidates: &[
                Candidate::with("hns_roce_v2_msix_interrupt_eq", Program::HnsIrq, super::IRQ_ARGUMENTS),
                Candidate::with("hns_roce_v1_msix_interrupt_eq", Program::HnsIrq, super::IRQ_ARGUMENTS),
            ],
            ..Hook::IRQ
        },
        Hook {
            name: "hns callback",
            candidates: &[Candidate::with(
                "hns_roce_cq_completion",
                Program::HnsComp,
                &[&["struct hns_roce_dev *"], &["u32", "unsigned int"]],
            )],
            ..Hook::COMP
        },
    ],
};
