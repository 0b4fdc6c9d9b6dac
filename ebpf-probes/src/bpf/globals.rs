//! What the loader sets before loading: offsets of kernel structures, addresses of functions, switches.
//!
//! The kernel freezes these, so a branch on one of them costs nothing once the verifier has run.

use aya_ebpf::Global;
use ebpf_probes::config::OFFSET_UNKNOWN;

/// Globals of the object, for the module that uses them.
macro_rules! globals {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$doc])* #[unsafe(no_mangle)] pub static $name: Global<$type> = Global::new($value);)*
    };
}
pub(super) use globals;

globals! {
    /// `task_struct.pid`.
    OFF_TASK_PID: u32 = OFFSET_UNKNOWN;
    /// `task_struct.tgid`.
    OFF_TASK_TGID: u32 = OFFSET_UNKNOWN;
    /// `task_struct.__state`, or `state` on older kernels; used where the switch does not tell the state.
    OFF_TASK_STATE: u32 = OFFSET_UNKNOWN;
    /// `ib_cq.uobject`.
    OFF_CQ_UOBJECT: u32 = OFFSET_UNKNOWN;
    /// `ib_cq.res.task`.
    OFF_CQ_TASK: u32 = OFFSET_UNKNOWN;
    /// `ib_cq.res.id`.
    OFF_CQ_RES_ID: u32 = OFFSET_UNKNOWN;
    /// `ib_uobject.user_handle`.
    OFF_UOBJECT_HANDLE: u32 = OFFSET_UNKNOWN;
    /// `file.private_data`.
    OFF_FILE_PRIVATE: u32 = OFFSET_UNKNOWN;
    /// `ib_uverbs_completion_event_file.ev_queue`.
    OFF_EV_QUEUE: u32 = OFFSET_UNKNOWN;
    /// `rxe_qp.ibqp`: from the `rxe_qp` to its `ib_qp`.
    OFF_RXE_QP_IBQP: u32 = OFFSET_UNKNOWN;
    /// `ib_qp.qp_num`.
    OFF_IB_QP_NUM: u32 = OFFSET_UNKNOWN;
    /// `rxe_cq.ibcq`: from the `rxe_cq` to its `ib_cq`.
    OFF_RXE_CQ_IBCQ: u32 = OFFSET_UNKNOWN;
    /// `rxe_pkt_info.qp`.
    OFF_PKT_QP: u32 = OFFSET_UNKNOWN;
    /// `rxe_pkt_info.wqe`.
    OFF_PKT_WQE: u32 = OFFSET_UNKNOWN;
    /// `rxe_pkt_info.psn`.
    OFF_PKT_PSN: u32 = OFFSET_UNKNOWN;
    /// `rxe_pkt_info.opcode`.
    OFF_PKT_OPCODE: u32 = OFFSET_UNKNOWN;
    /// `rxe_send_wqe.wr.wr_id`.
    OFF_WQE_WR_ID: u32 = OFFSET_UNKNOWN;
    /// `sk_buff.cb`.
    OFF_SKB_CB: u32 = OFFSET_UNKNOWN;
    /// `sk_buff.dev`.
    OFF_SKB_DEV: u32 = OFFSET_UNKNOWN;
    /// `net_device.ifindex`.
    OFF_DEV_IFINDEX: u32 = OFFSET_UNKNOWN;
    /// `work_struct.func`.
    OFF_WORK_FUNC: u32 = OFFSET_UNKNOWN;
    /// `mlx5_core_cq.cqn`.
    OFF_MLX5_CQN: u32 = OFFSET_UNKNOWN;
    /// `mlx5_core_cq.irqn`.
    OFF_MLX5_IRQN: u32 = OFFSET_UNKNOWN;
    /// `mlx4_cq.cqn`.
    OFF_MLX4_CQN: u32 = OFFSET_UNKNOWN;
    /// `mlx4_cq.irq`.
    OFF_MLX4_IRQ: u32 = OFFSET_UNKNOWN;

    /// 1: the program runs from a trampoline (fentry), so that its context holds the arguments themselves and no registers.
    TRAMPOLINE: u32 = 0;
    /// 1: the verifier knows the types of the arguments (fentry, tp_btf), so that their fields are read by plain loads.
    TYPED: u32 = 0;
    /// 1: `sched_switch` has the state of the thread that leaves as its fourth argument.
    SWITCH_TELLS_STATE: u32 = 0;
    /// 1: tasklets are recorded only when their function is one of the eight of `TASKLET_FUNC_*`.
    TASKLET_FILTER: u32 = 0;
    /// Address of a tasklet's function that leads to a completion handler, or 0.
    TASKLET_FUNC_0: u64 = 0;
    /// As `TASKLET_FUNC_0`.
    TASKLET_FUNC_1: u64 = 0;
    /// As `TASKLET_FUNC_0`.
    TASKLET_FUNC_2: u64 = 0;
    /// As `TASKLET_FUNC_0`.
    TASKLET_FUNC_3: u64 = 0;
    /// Address of the work function whose items are recorded.
    WORK_FUNC_0: u64 = 0;
    /// As `WORK_FUNC_0`.
    WORK_FUNC_1: u64 = 0;
    /// 1: interrupts are recorded only when their number is in `TRACKED_IRQS`.
    IRQ_FILTER: u32 = 0;
    /// 1: ends of interrupts and softirqs are recorded wherever their begins are, not only those in a tracked thread.
    EVERY_END: u32 = 0;
    /// 1: softirqs that run tasklets are recorded, whatever thread they run in.
    TASKLET_SOFTIRQS: u32 = 1;
    /// 1: rxe events are recorded for every queue pair.
    TRACE_ALL_QPS: u32 = 0;
    /// 1: scheduling is recorded for every thread of a tracked process, not for tracked threads.
    TRACK_BY_PROCESS: u32 = 0;
    /// 1: completion handlers are recorded for every owner.
    TRACE_ALL_CQS: u32 = 0;
    /// Packets are recorded for this interface only; 0 means all.
    IFINDEX: u32 = 0;

    /// As `TASKLET_FUNC_0`.
    TASKLET_FUNC_4: u64 = 0;
    /// As `TASKLET_FUNC_0`.
    TASKLET_FUNC_5: u64 = 0;
    /// As `TASKLET_FUNC_0`.
    TASKLET_FUNC_6: u64 = 0;
    /// As `TASKLET_FUNC_0`.
    TASKLET_FUNC_7: u64 = 0;
    /// 0: every work item is recorded, because there are more functions than places for them.
    WORK_FILTER: u32 = 1;
    /// As `WORK_FUNC_0`.
    WORK_FUNC_2: u64 = 0;
    /// As `WORK_FUNC_0`.
    WORK_FUNC_3: u64 = 0;
    /// `bnxt_qplib_cq.id`.
    OFF_BNXT_CQ_ID: u32 = OFFSET_UNKNOWN;
    /// `siw_qp.base_qp`: from the `siw_qp` to its `ib_qp`.
    OFF_SIW_QP_IBQP: u32 = OFFSET_UNKNOWN;
    /// `siw_qp.scq`.
    OFF_SIW_QP_SCQ: u32 = OFFSET_UNKNOWN;
    /// `siw_qp.rcq`.
    OFF_SIW_QP_RCQ: u32 = OFFSET_UNKNOWN;
    /// `siw_cq.base_cq`: from the `siw_cq` to its `ib_cq`.
    OFF_SIW_CQ_IBCQ: u32 = OFFSET_UNKNOWN;
    /// `ib_wc.qp`.
    OFF_WC_QP: u32 = OFFSET_UNKNOWN;
    /// `rvt_cq.ibcq`: from the `rvt_cq` to its `ib_cq`.
    OFF_RVT_CQ_IBCQ: u32 = OFFSET_UNKNOWN;
}

/// The offset, unless it is not known.
#[inline(always)]
pub fn known(offset: &Global<u32>) -> Option<u32> {
    match offset.load() {
        OFFSET_UNKNOWN => None,
        known => Some(known),
    }
}
