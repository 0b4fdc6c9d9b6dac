//! cxgb4 (iw_cxgb4): irq → NAPI of the response queue → `c4iw_ev_handler` → handler. The bottom half is the NET_RX softirq, and the
//! network driver's function is where it begins (the NAPI tracepoint fires at the end). Flushes call the handler from a syscall.

use capture::CompletionShape;
use ebpf_probes::{Kind, Program};

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

/// The driver.
pub const CXGB4: Driver = Driver {
    name: "cxgb4",
    modules: &["iw_cxgb4"],
    also: &["cxgb4"],
    device_drivers: &[],
    provider: Some(Provider::One("cxgb4")),
    completion: Some(CompletionShape::Napi),
    mark: "c4iw_ev_handler",
    tried: Tried::Attaches,
    chains: &[Chain {
        has: &[],
        lacks: &[],
        text: "K1 (K1b `t4_sge_intr_msix`) [hard irq] → K4 `napi_rx_handler` in NET_RX → `c4iw_ev_handler` → K5 [softirq]",
    }],
    contexts: "NET_RX softirq; `c4iw_ev_handler` has the device's number of the CQ in argument 1",
    tasklets: &[],
    works: &[],
    hooks: &[
        Hook {
            name: "K1b cxgb4 interrupt handler",
            candidates: &[Candidate::with("t4_sge_intr_msix", Program::Cxgb4Irq, super::IRQ_ARGUMENTS)],
            ..Hook::IRQ
        },
        Hook {
            name: "K4 cxgb4 NAPI begins",
            candidates: &[Candidate::with("napi_rx_handler", Program::Cxgb4BottomHalf, &[&["struct napi_struct *"], &["int"]])],
            gives: &[Kind::DriverBottomHalf],
            ..Hook::STEP
        },
        Hook {
            name: "cxgb4 callback",
            candidates: &[Candidate::with("c4iw_ev_handler", Program::Cxgb4Comp, &[&["struct c4iw_dev *"], &["u32"]])],
            ..Hook::COMP
        },
    ],
};
