//! siw (soft-iWARP): the kernel posts the CQE with the wr_id, and calls the handler in the same context if the CQ was armed.
//!
//! Never run here: no kernel at hand has the module. Arming is a store to a shared page and cannot be seen. The driver's own status
//! numbers are translated for success and flush only; everything else is shown as a general error.

use capture::CompletionShape;
use ebpf_probes::{Kind, Program};

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

const QP: &[&str] = &["struct siw_qp *"];
const SILENT: &str = "no completion was posted; it fires in polling and in event mode alike, so that silence means no traffic";

/// The driver.
pub const SIW: Driver = Driver {
    name: "siw",
    modules: &["siw"],
    also: &[],
    device_drivers: &[],
    provider: Some(Provider::One("siw")),
    completion: Some(CompletionShape::Anywhere),
    mark: "siw_sqe_complete",
    tried: Tried::Source,
    chains: &[Chain {
        has: &[],
        lacks: &[],
        text: "R6 `siw_sqe_complete` or `siw_rqe_complete`, the handler right after it in the same context; receives in NET_RX, sends in \
                the thread `siw_tx/N` or in the post",
    }],
    contexts: "NET_RX softirq, kthread or the poster's syscall; argument 0 is the queue pair, argument 1 an element that begins with the wr_id",
    tasklets: &[],
    works: &[],
    hooks: &[
        Hook {
            name: "R6 siw send CQE posted",
            candidates: &[Candidate::with("siw_sqe_complete", Program::SiwSendDone, &[QP, &["struct siw_sqe *"]])],
            needs: &["OFF_SIW_QP_SCQ"],
            gives: &[Kind::CqPost],
            silence: Some(SILENT),
            ..Hook::KPROBE
        },
        Hook {
            name: "R6 siw receive CQE posted",
            candidates: &[Candidate::with("siw_rqe_complete", Program::SiwRecvDone, &[QP, &["struct siw_rqe *"]])],
            needs: &["OFF_SIW_QP_RCQ"],
            gives: &[Kind::CqPost],
            silence: Some(SILENT),
            ..Hook::KPROBE
        },
    ],
};
