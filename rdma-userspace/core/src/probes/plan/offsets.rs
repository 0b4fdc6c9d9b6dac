//! Offsets of kernel structures: from the BTF of the running kernel and its modules, else from a small table, else unknown.

use std::collections::BTreeMap;

use ebpf_probes::config::OFFSET_UNKNOWN;

use crate::machine::kernel::Facts;

/// Symbols by which the kernel of the table (5.10) is distinguished from others without module BTF.
pub const ERA_SYMBOLS: &[&str] = &[RXE_TASKLETS, RXE_TRANSMIT, RXE_ANY, TRACE_ITERATOR, MODULE_BTF_READER];
/// `rdma_rxe` of the era has this, and not the next one.
const RXE_TASKLETS: &str = "rxe_do_task";
const RXE_TRANSMIT: &str = "rxe_xmit_packet";
/// `rdma_rxe` is there.
const RXE_ANY: &str = "rxe_cq_post";
/// Since 5.10.
const TRACE_ITERATOR: &str = "__traceiter_sched_switch";
/// Since 5.11.
const MODULE_BTF_READER: &str = "btf_module_notify";

/// Where an offset comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// BTF of the running kernel or module.
    Btf,
    /// The same on every kernel that was looked at (5.4 to 7.3 and the vendor's own drivers).
    Constant,
    /// Table for kernels without module BTF (5.10), used when the symbols say that this is one.
    Table,
    /// Not known, and why.
    Unknown(String),
}

/// One offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Bytes from the start of the structure; [`OFFSET_UNKNOWN`] when not known.
    pub bytes: u32,
    /// Where it comes from.
    pub source: Source,
    /// `structure.member`.
    pub member: String,
    /// False when no module is there that the structure belongs to.
    pub is_relevant: bool,
}

impl Offset {
    /// The offset in bytes, where it is known.
    pub fn known(&self) -> Option<u32> {
        (self.bytes != OFFSET_UNKNOWN).then_some(self.bytes)
    }
}

/// The offsets by the name of the object's global.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offsets(BTreeMap<&'static str, Offset>);

#[derive(Clone, Copy)]
enum Fallback {
    None,
    Constant(u32),
    /// Value on 5.10.
    Table(u32),
}
use Fallback::{Constant, None as Nothing, Table};

/// Members that had another name on older kernels: (structure, name now, name before).
const RENAMED: &[(&str, &str, &str)] = &[("task_struct", "__state", "state")];

/// A member of a structure, and the global of the object that takes its offset.
struct Member {
    global: &'static str,
    /// Modules whose BTF describes the structure, in order of preference; none: the kernel's own.
    modules: &'static [&'static str],
    structure: &'static str,
    path: &'static str,
    fallback: Fallback,
}

const fn of(
    modules: &'static [&'static str],
    global: &'static str,
    structure: &'static str,
    path: &'static str,
    fallback: Fallback,
) -> Member {
    Member { global, modules, structure, path, fallback }
}

const fn core(global: &'static str, structure: &'static str, path: &'static str, fallback: Fallback) -> Member {
    Member { global, modules: &[], structure, path, fallback }
}

/// Everything that the programs read. Table values: observed on 5.10, those of mlx5, mlx4 and the queue of an `rxe_cq` in the code of its modules.
const MEMBERS: &[Member] = &[
    core("OFF_TASK_PID", "task_struct", "pid", Nothing),
    core("OFF_TASK_STATE", "task_struct", "__state", Nothing),
    core("OFF_TASK_TGID", "task_struct", "tgid", Nothing),
    core("OFF_WORK_FUNC", "work_struct", "func", Constant(24)),
    core("OFF_FILE_PRIVATE", "file", "private_data", Nothing),
    core("OFF_SKB_CB", "sk_buff", "cb", Nothing),
    core("OFF_SKB_DEV", "sk_buff", "dev", Nothing),
    core("OFF_DEV_IFINDEX", "net_device", "ifindex", Nothing),
    of(&["ib_uverbs"], "OFF_CQ_UOBJECT", "ib_cq", "uobject", Constant(8)),
    of(&["ib_uverbs"], "OFF_CQ_TASK", "ib_cq", "res.task", Table(192)),
    of(&["ib_uverbs"], "OFF_CQ_RES_ID", "ib_cq", "res.id", Table(216)),
    of(&["ib_uverbs"], "OFF_CQ_RES", "ib_cq", "res", Table(152)),
    of(&["ib_uverbs"], "OFF_CQ_RES_TYPE", "ib_cq", "res.type", Table(208)),
    of(&["ib_uverbs"], "OFF_CQ_CONTEXT", "ib_cq", "cq_context", Constant(32)),
    of(&["ib_uverbs"], "OFF_CQ_CQE", "ib_cq", "cqe", Constant(40)),
    of(&["ib_uverbs"], "OFF_EVENT_ELEMENT", "ib_event", "element", Constant(8)),
    of(&["ib_uverbs"], "OFF_EVENT_KIND", "ib_event", "event", Constant(16)),
    of(&["rdma_rxe"], "OFF_RXE_CQ_QUEUE", "rxe_cq", "queue", Table(288)),
    of(&["rdma_rxe"], "OFF_RXE_QUEUE_BUF", "rxe_queue", "buf", Table(8)),
    of(&["ib_uverbs"], "OFF_UOBJECT_HANDLE", "ib_uobject", "user_handle", Constant(0)),
    of(&["ib_uverbs"], "OFF_EV_QUEUE", "ib_uverbs_completion_event_file", "ev_queue", Table(96)),
    of(&["rdma_rxe", "rdmavt", "siw", "ib_core", "ib_uverbs"], "OFF_IB_QP_NUM", "ib_qp", "qp_num", Table(176)),
    of(&["rdma_rxe"], "OFF_RXE_QP_IBQP", "rxe_qp", "ibqp", Table(64)),
    of(&["rdma_rxe"], "OFF_RXE_CQ_IBCQ", "rxe_cq", "ibcq", Constant(0)),
    of(&["rdma_rxe"], "OFF_PKT_QP", "rxe_pkt_info", "qp", Table(8)),
    of(&["rdma_rxe"], "OFF_PKT_WQE", "rxe_pkt_info", "wqe", Table(16)),
    of(&["rdma_rxe"], "OFF_PKT_PSN", "rxe_pkt_info", "psn", Table(36)),
    of(&["rdma_rxe"], "OFF_PKT_OPCODE", "rxe_pkt_info", "opcode", Table(45)),
    of(&["rdma_rxe"], "OFF_WQE_WR_ID", "rxe_send_wqe", "wr.wr_id", Constant(0)),
    of(&["mlx5_core"], "OFF_MLX5_CQN", "mlx5_core_cq", "cqn", Constant(0)),
    of(&["mlx5_core"], "OFF_MLX5_IRQN", "mlx5_core_cq", "irqn", Table(76)),
    of(&["mlx4_core"], "OFF_MLX4_CQN", "mlx4_cq", "cqn", Table(52)),
    of(&["mlx4_core"], "OFF_MLX4_IRQ", "mlx4_cq", "irq", Table(28)),
    of(&["bnxt_re"], "OFF_BNXT_CQ_ID", "bnxt_qplib_cq", "id", Nothing),
    of(&["siw"], "OFF_SIW_QP_IBQP", "siw_qp", "base_qp", Nothing),
    of(&["siw"], "OFF_SIW_QP_SCQ", "siw_qp", "scq", Nothing),
    of(&["siw"], "OFF_SIW_QP_RCQ", "siw_qp", "rcq", Nothing),
    of(&["siw"], "OFF_SIW_CQ_IBCQ", "siw_cq", "base_cq", Constant(0)),
    of(&["rdmavt"], "OFF_WC_QP", "ib_wc", "qp", Constant(24)),
    of(&["rdmavt"], "OFF_RVT_CQ_IBCQ", "rvt_cq", "ibcq", Constant(0)),
];

impl Offsets {
    /// Works out every offset from the facts.
    pub fn resolve(facts: &Facts) -> Self {
        let table_holds = facts.module_btf.is_empty() && is_of_the_table(facts);
        Offsets(MEMBERS.iter().map(|member| (member.global, resolve(member, facts, table_holds))).collect())
    }

    /// The offset behind a global's name.
    pub fn get(&self, global: &str) -> Option<&Offset> {
        self.0.get(global)
    }

    /// Every offset by the name of its global.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Offset)> {
        self.0.iter().map(|(name, offset)| (*name, offset))
    }

    /// The first of `globals` that is not known, with the reason.
    pub fn missing<'a>(&'a self, globals: &'a [&'static str]) -> Option<(&'static str, &'a str)> {
        globals.iter().find_map(|global| match self.0.get(global) {
            Some(Offset { source: Source::Unknown(why), .. }) => Some((*global, why.as_str())),
            Some(_) => None,
            None => Some((*global, "no such offset")),
        })
    }
}

/// Whether this is the kernel of the table: `rdma_rxe` says so, or, where it is not there, the kernel itself.
fn is_of_the_table(facts: &Facts) -> bool {
    let has = |name| facts.symbols.has(name);
    let rxe_says = has(RXE_TASKLETS) && !has(RXE_TRANSMIT);
    // `task_struct.state` got its present name in 5.14.
    let is_old_task = || facts.vmlinux.as_ref().is_some_and(|btf| btf.member_offset("task_struct", "state").is_ok());
    if has(RXE_ANY) { rxe_says } else { rxe_says || has(TRACE_ITERATOR) && !has(MODULE_BTF_READER) && is_old_task() }
}

/// The structures and members that are looked up in BTF: modules, structure, path of members.
pub fn members() -> impl Iterator<Item = (&'static [&'static str], &'static str, &'static str)> {
    let renamed = RENAMED.iter().map(|(structure, _, before)| (&[][..], *structure, *before));
    MEMBERS.iter().map(|member| (member.modules, member.structure, member.path)).chain(renamed)
}

fn resolve(member: &Member, facts: &Facts, table_holds: bool) -> Offset {
    let described =
        member.modules.iter().find_map(|module| facts.module_btf.get(*module).filter(|btf| btf.size_of(member.structure).is_ok()));
    let from_btf = match described.or(facts.vmlinux.as_deref()) {
        Some(btf) => {
            let older = RENAMED.iter().find(|(structure, now, _)| (*structure, *now) == (member.structure, member.path));
            let found = btf.member_offset(member.structure, member.path);
            found
                .or_else(|error| older.and_then(|(_, _, before)| btf.member_offset(member.structure, before).ok()).ok_or(error))
                .map_err(|error| error.to_string())
        }
        None => Err("this kernel has no BTF".to_owned()),
    };
    let (bytes, source) = match (from_btf, member.fallback) {
        (Ok(bytes), _) => (bytes, Source::Btf),
        (Err(_), Constant(bytes)) => (bytes, Source::Constant),
        (Err(_), Table(bytes)) if table_holds => (bytes, Source::Table),
        (Err(why), _) => {
            let why = format!("offset of `{}.{}` is not known: {why}", member.structure, member.path);
            (OFFSET_UNKNOWN, Source::Unknown(why))
        }
    };
    let is_there = |module: &&str| facts.modules.contains(*module) || facts.module_btf.contains_key(*module);
    let is_relevant = member.modules.is_empty() || member.modules.iter().any(is_there);
    Offset { bytes, source, member: format!("{}.{}", member.structure, member.path), is_relevant }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::kernel::Symbols;

    fn facts(kallsyms: &str) -> Facts {
        Facts { symbols: Symbols::read(kallsyms.as_bytes(), |_| true).expect("reads"), ..Facts::default() }
    }

    #[test]
    fn without_btf_only_constants_are_known() {
        let offsets =
            Offsets::resolve(&facts("ffffffffc0000000 t rxe_do_task [rdma_rxe]\nffffffffc0000010 t rxe_xmit_packet [rdma_rxe]\n"));
        assert_eq!(offsets.get("OFF_CQ_UOBJECT").expect("there").source, Source::Constant);
        assert_eq!(offsets.get("OFF_CQ_TASK").expect("there").bytes, OFFSET_UNKNOWN);
        let (global, why) = offsets.missing(&["OFF_WORK_FUNC", "OFF_TASK_PID"]).expect("unknown");
        assert_eq!(global, "OFF_TASK_PID");
        assert!(why.contains("task_struct.pid") && why.contains("no BTF"), "{why}");
    }

    #[test]
    fn the_table_is_used_on_the_kernel_that_it_was_made_for() {
        let offsets = Offsets::resolve(&facts("ffffffffc0000000 t rxe_do_task [rdma_rxe]\n"));
        let offset = offsets.get("OFF_RXE_QP_IBQP").expect("there");
        assert_eq!((offset.bytes, &offset.source), (64, &Source::Table));
    }
}
