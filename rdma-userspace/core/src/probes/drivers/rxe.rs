//! Soft-RoCE (`rdma_rxe`): everything is visible, the wr_id included.
//!
//! Three ways to complete, told apart by symbols: tasklets and an inline requester (`rxe_do_task`), a workqueue with an inline requester
//! (`do_work`), a workqueue for everything (`rxe_sender`). 6.4 is between the first two: tasklets, but the handler is nested.

use capture::{CompletionShape, Level};
use ebpf_probes::{Kind, Program};

use super::{Arrival, Candidate, Chain, Cover, Driver, Hook, Provider, Tried};

const QP: &[&str] = &["struct rxe_qp *"];
/// Task functions took `void *` when they were tasklets.
const QP_OR_VOID: &[&str] = &["struct rxe_qp *", "void *"];
const SKB: &[&str] = &["struct sk_buff *"];
const PACKET: &[&str] = &["OFF_PKT_OPCODE", "OFF_PKT_WQE", "OFF_PKT_PSN", "OFF_WQE_WR_ID"];
/// Where rxe has no workqueue its tasks run in the post or in the softirq that received the packet: R1, R2, R4 and R6 enclose them. Each is
/// entered twice per packet, once for nothing: 12 of the 43 hits of a SEND.
const UNQUEUED: Option<(&str, Level)> = Some(("do_work", Level::Full));

/// The driver.
pub const RXE: Driver = Driver {
    name: "rxe",
    modules: &["rdma_rxe"],
    also: &[],
    device_drivers: &[],
    provider: Some(Provider::One("rxe")),
    completion: Some(CompletionShape::Anywhere),
    mark: "rxe_cq_post",
    tried: Tried::Fires,
    chains: &[
        Chain {
            has: &["rxe_sender"],
            lacks: &[],
            text: "workqueue for everything: R1 → Rq → R5 sender → R2, R4 → Rq → R5 sender or receiver → R6, the handler inside R6",
        },
        Chain {
            has: &["do_work", "rxe_requester"],
            lacks: &["rxe_sender", "rxe_send_complete"],
            text: "requester inline in the post, workqueue for the rest: R1 → R5 → R2, R4 → (Rq →) R5 → R6, the handler inside R6",
        },
        Chain {
            has: &["rxe_send_complete"],
            lacks: &[],
            text: "requester inline in the post, tasklets: R1 → R5 → R2, R4 → R5 → R6 → K4 tasklet `rxe_send_complete` → K5",
        },
        Chain {
            has: &[], lacks: &[], text: "requester inline in the post, tasklets: R1 → R5 → R2, R4 → R5 → R6, the handler inside R6"
        },
    ],
    contexts: "syscall of the poster, NET_RX softirq, tasklet, or kworker; on one host also the peer's thread: `current` never tells the owner. \
               `rxe_cq_post` has the CQ in argument 0 and the user's CQE in argument 1",
    tasklets: &["rxe_send_complete"],
    works: &["do_work"],
    hooks: &[
        Hook {
            name: "R1 post enters the kernel",
            candidates: &[Candidate::with("rxe_post_send", Program::RxePost, &[&["struct ib_qp *"]])],
            gives: &[Kind::RxePost],
            ..Hook::KPROBE
        },
        Hook {
            name: "R2 packet sent",
            candidates: &[
                Candidate::with("rxe_xmit_packet", Program::RxeXmit, &[QP, &["struct rxe_pkt_info *"], SKB]),
                Candidate::with("rxe_send", Program::RxeSend, &[&["struct rxe_pkt_info *"], SKB]),
            ],
            needs: PACKET,
            gives: &[Kind::RxeXmit],
            ..Hook::KPROBE
        },
        Hook {
            name: "R2 packet sent to the same host",
            covered_by: Some(Cover::Function("rxe_xmit_packet")),
            candidates: &[Candidate::with("rxe_loopback", Program::RxeLoopback, &[SKB])],
            needs: &["OFF_PKT_OPCODE", "OFF_PKT_WQE", "OFF_PKT_PSN", "OFF_WQE_WR_ID", "OFF_PKT_QP", "OFF_SKB_CB"],
            gives: &[Kind::RxeXmit],
            ..Hook::KPROBE
        },
        Hook {
            name: "R4 answer received",
            arrival: Some(Arrival::Answer),
            candidates: &[Candidate::with("rxe_comp_queue_pkt", Program::RxeCompQueue, &[QP, SKB])],
            gives: &[Kind::RxeRcv],
            ..Hook::KPROBE
        },
        Hook {
            name: "R4 request received",
            arrival: Some(Arrival::Request),
            candidates: &[Candidate::with("rxe_resp_queue_pkt", Program::RxeRespQueue, &[QP, SKB])],
            gives: &[Kind::RxeRcv],
            ..Hook::KPROBE
        },
        Hook {
            name: "R5 requester",
            level_without: UNQUEUED,
            candidates: &[
                Candidate::with("rxe_sender", Program::RxeSender, &[QP]),
                Candidate::with("rxe_requester", Program::RxeRequester, &[QP_OR_VOID]),
            ],
            gives: &[Kind::RxeTask],
            ..Hook::KPROBE
        },
        Hook {
            name: "R5 completer",
            level_without: UNQUEUED,
            arrival: Some(Arrival::Answer),
            covered_by: Some(Cover::Function("rxe_sender")),
            candidates: &[Candidate::with("rxe_completer", Program::RxeCompleter, &[QP_OR_VOID])],
            gives: &[Kind::RxeTask],
            ..Hook::KPROBE
        },
        Hook {
            name: "R5 responder",
            level_without: UNQUEUED,
            arrival: Some(Arrival::Request),
            candidates: &[
                Candidate::with("rxe_receiver", Program::RxeReceiver, &[QP]),
                Candidate::with("rxe_responder", Program::RxeResponder, &[QP_OR_VOID]),
            ],
            gives: &[Kind::RxeTask],
            ..Hook::KPROBE
        },
        Hook {
            name: "R6 CQE posted",
            candidates: &[Candidate::with("rxe_cq_post", Program::RxeCqPost, &[&["struct rxe_cq *"], &["struct rxe_cqe *"]])],
            gives: &[Kind::CqPost],
            ..Hook::KPROBE
        },
        Hook {
            name: "K2 CQ armed",
            level: Level::Trace,
            candidates: &[Candidate::with("rxe_req_notify_cq", Program::CqArm, &[&["struct ib_cq *"]])],
            gives: &[Kind::CqArm],
            ..Hook::KPROBE
        },
    ],
};
