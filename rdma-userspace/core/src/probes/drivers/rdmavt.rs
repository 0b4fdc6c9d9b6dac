//! rdmavt (hfi1, qib): the kernel posts the CQE (with the wr_id), and a work item calls the handler. Its providers poll through the
//! kernel (`ib_uverbs_poll_cq`), so here polling is not a bypass; that probe only counts, at level `full`.

use capture::{CompletionShape, Level};
use ebpf_probes::{Kind, Program};

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

/// The driver.
pub const RDMAVT: Driver = Driver {
    name: "rdmavt",
    modules: &["rdmavt"],
    also: &["ib_uverbs"],
    device_drivers: &["hfi1", "qib", "ib_qib"],
    provider: Some(Provider::ByDevice(&[("hfi1", "hfi1verbs"), ("qib", "ipathverbs"), ("ib_qib", "ipathverbs")])),
    completion: Some(CompletionShape::Work),
    mark: "rvt_cq_enter",
    tried: Tried::Attaches,
    chains: &[Chain {
        has: &[],
        lacks: &[],
        text: "R6 `rvt_cq_enter` → Rq → K4 work item `send_complete` → K5 [kworker]; polling is a syscall (`ib_uverbs_poll_cq`)",
    }],
    contexts: "whatever handled the packet, then a kworker; `rvt_cq_enter` has the CQ in argument 0 and the kernel's work completion in argument 1",
    tasklets: &[],
    works: &["send_complete"],
    hooks: &[
        Hook {
            name: "R6 rdmavt CQE posted",
            candidates: &[Candidate::with("rvt_cq_enter", Program::RvtCqEnter, &[&["struct rvt_cq *"], &["struct ib_wc *"]])],
            needs: &["OFF_CQ_UOBJECT"],
            gives: &[Kind::CqPost],
            silence: Some("no completion was posted; it fires in polling and in event mode alike, so that silence means no traffic"),
            ..Hook::KPROBE
        },
        Hook {
            name: "ib_uverbs_poll_cq (polls through the kernel)",
            level: Level::Full,
            candidates: &[Candidate::new("ib_uverbs_poll_cq", Program::UverbsPoll)],
            silence: Some("no process polls through the kernel; only the providers of hfi1 and qib do, once per poll"),
            ..Hook::KPROBE
        },
    ],
};
