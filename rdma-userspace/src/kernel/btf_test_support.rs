//! Synthetic BTF for tests.

use std::sync::Arc;

use super::Btf;
use crate::kernel::btf_format::kind;

/// Builds BTF data.
pub(crate) struct Builder {
    types: Vec<u8>,
    strings: Vec<u8>,
    first_string: u32,
    pub(crate) next_id: u32,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Builder { types: Vec::new(), strings: vec![0], first_string: 0, next_id: 1 }
    }

    pub(crate) fn on(base: &Btf) -> Self {
        let first_string = (base.sections.strings_end - base.sections.strings) as u32;
        Builder { types: Vec::new(), strings: vec![0], first_string, next_id: base.first_id + base.records.len() as u32 }
    }

    fn string(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let at = self.first_string + self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        at
    }

    pub(crate) fn add(&mut self, name: &str, kind: u32, flag: bool, count: u32, size_or_type: u32, tail: &[u32]) -> u32 {
        let name = self.string(name);
        let info = kind << 24 | u32::from(flag) << 31 | count;
        for word in [name, info, size_or_type].iter().chain(tail) {
            self.types.extend_from_slice(&word.to_le_bytes());
        }
        self.next_id += 1;
        self.next_id - 1
    }

    pub(crate) fn structure(&mut self, name: &str, kind: u32, size: u32, flag: bool, members: &[(&str, u32, u32)]) -> u32 {
        let tail: Vec<u32> = members.iter().flat_map(|(name, id, bits)| [self.string(name), *id, *bits]).collect();
        self.add(name, kind, flag, members.len() as u32, size, &tail)
    }

    pub(crate) fn function(&mut self, name: &str, parameters: &[u32]) {
        let tail: Vec<u32> = parameters.iter().flat_map(|id| [0, *id]).collect();
        let proto = self.add("", kind::FUNC_PROTO, false, parameters.len() as u32, 0, &tail);
        self.add(name, kind::FUNC, false, 1, proto, &[]);
    }

    pub(crate) fn build(self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let head = [u32::from(MAGIC_LE) | 1 << 16, 24, 0, types, types, strings];
        let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(self.types);
        bytes.extend(self.strings);
        bytes
    }
}

const MAGIC_LE: u16 = 0xeb9f;

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
