//! Synthetic BTF for tests.

use std::sync::Arc;

use super::Btf;
use crate::machine::btf::format::kind;
pub(crate) use crate::machine::btf::write::Builder;

/// The structures of the kernel that offsets are wanted of.
pub(crate) fn kernel_btf() -> Btf {
    let mut it = Builder::new();
    let int = it.add("int", kind::INT, false, 0, 4, &[32]);
    it.structure("task_struct", kind::STRUCT, 4000, false, &[("pid", int, 8 * 2416), ("tgid", int, 8 * 2420)]);
    it.structure("sk_buff", kind::STRUCT, 232, false, &[("dev", int, 8 * 16), ("cb", int, 8 * 40)]);
    it.structure("net_device", kind::STRUCT, 2000, false, &[("ifindex", int, 8 * 264)]);
    it.structure("file", kind::STRUCT, 232, false, &[("private_data", int, 8 * 200)]);
    Btf::parse(it.build(), None).expect("parses")
}

/// A `rdma_rxe` with the structures and the queueing functions of 6.1 and later.
pub(crate) fn rxe_btf(base: Option<Arc<Btf>>) -> Btf {
    rxe(base, false)
}

/// As [`rxe_btf`], with the arguments of the queueing functions the other way round.
pub(crate) fn rxe_btf_with_swapped_arguments(base: Option<Arc<Btf>>) -> Btf {
    rxe(base, true)
}

fn rxe(base: Option<Arc<Btf>>, is_swapped: bool) -> Btf {
    let mut it = base.as_deref().map_or_else(Builder::new, Builder::on);
    let int = it.add("u32", kind::INT, false, 0, 4, &[32]);
    let ib_qp = it.structure("ib_qp", kind::STRUCT, 400, false, &[("qp_num", int, 8 * 176)]);
    let qp = it.structure("rxe_qp", kind::STRUCT, 2000, false, &[("ibqp", ib_qp, 0)]);
    let members = [("qp", int, 64), ("wqe", int, 128), ("psn", int, 8 * 36), ("opcode", int, 8 * 45)];
    it.structure("rxe_pkt_info", kind::STRUCT, 48, false, &members);
    let skb = it.add("sk_buff", kind::FWD, false, 0, 0, &[]);
    let qp_pointer = it.add("", kind::PTR, false, 0, qp, &[]);
    let skb_pointer = it.add("", kind::PTR, false, 0, skb, &[]);
    let arguments = if is_swapped { [skb_pointer, qp_pointer] } else { [qp_pointer, skb_pointer] };
    it.function("rxe_comp_queue_pkt", &arguments);
    it.function("rxe_resp_queue_pkt", &arguments);
    Btf::parse(it.build(), base).expect("parses")
}
