//! The programs of the BPF object: one number per program, the index of its hit counter.

macro_rules! programs {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $symbol:literal;)*) => {
        /// A program of the BPF object.
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Program {
            $($(#[$doc])* $name = $number,)*
        }

        impl Program {
            /// Every program, in the order of their numbers.
            pub const ALL: &'static [Program] = &[$(Program::$name,)*];

            /// The program's symbol in the object.
            pub const fn symbol(self) -> &'static str {
                match self {
                    $(Program::$name => $symbol,)*
                }
            }
        }
    };
}

programs! {
    /// Raw tracepoint `cpu_idle`.
    CpuIdle = 0, "cpu_idle";
    /// Raw tracepoint `irq_handler_entry`.
    IrqEntry = 1, "irq_entry";
    /// Raw tracepoint `irq_handler_exit`.
    IrqExit = 2, "irq_exit";
    /// Raw tracepoint `softirq_entry`.
    SoftirqEntry = 3, "softirq_entry";
    /// Raw tracepoint `softirq_exit`.
    SoftirqExit = 4, "softirq_exit";
    /// Raw tracepoint `tasklet_entry`.
    TaskletEntry = 5, "tasklet_entry";
    /// Raw tracepoint `workqueue_queue_work`.
    WorkQueue = 6, "work_queue";
    /// Raw tracepoint `workqueue_execute_start`.
    WorkStart = 7, "work_start";
    /// Raw tracepoint `napi_poll`.
    NapiPoll = 8, "napi_poll";
    /// Raw tracepoint `sched_waking`.
    SchedWaking = 9, "sched_waking";
    /// Raw tracepoint `sched_wakeup`.
    SchedWakeup = 10, "sched_wakeup";
    /// Raw tracepoint `sched_switch`.
    SchedSwitch = 11, "sched_switch";
    /// Raw tracepoint `sched_migrate_task`.
    SchedMigrate = 12, "sched_migrate";
    /// Entry of `ib_uverbs_comp_handler`.
    CompHandler = 13, "comp_handler";
    /// Entry of `ib_uverbs_comp_event_read`: remembers the channel for the return.
    EventReadEntry = 14, "event_read_entry";
    /// Return of `ib_uverbs_comp_event_read`.
    EventReadReturn = 15, "event_read_return";
    /// Entry of `rxe_post_send`.
    RxePost = 16, "rxe_post";
    /// Entry of `rxe_xmit_packet`.
    RxeXmit = 17, "rxe_xmit";
    /// Entry of `rxe_send` on kernels without `rxe_xmit_packet`.
    RxeSend = 18, "rxe_send";
    /// Entry of `rxe_loopback` on kernels without `rxe_xmit_packet`.
    RxeLoopback = 19, "rxe_loopback";
    /// Entry of `rxe_comp_queue_pkt`.
    RxeCompQueue = 20, "rxe_comp_queue";
    /// Entry of `rxe_resp_queue_pkt`.
    RxeRespQueue = 21, "rxe_resp_queue";
    /// Entry of `rxe_requester`.
    RxeRequester = 22, "rxe_requester";
    /// Entry of `rxe_completer`.
    RxeCompleter = 23, "rxe_completer";
    /// Entry of `rxe_responder`.
    RxeResponder = 24, "rxe_responder";
    /// Entry of `rxe_sender`.
    RxeSender = 25, "rxe_sender";
    /// Entry of `rxe_receiver`.
    RxeReceiver = 26, "rxe_receiver";
    /// Entry of `rxe_cq_post`.
    RxeCqPost = 27, "rxe_cq_post";
    /// Entry of `mlx5_add_cq_to_tasklet`.
    Mlx5Enqueue = 28, "mlx5_enqueue";
    /// Entry of `mlx5_ib_cq_comp`.
    Mlx5Comp = 29, "mlx5_comp";
    /// Entry of `mlx5_ib_poll_cq`: kernel consumers only, counts and records nothing.
    Mlx5PollCq = 30, "mlx5_poll_cq";
    /// Entry of `mlx4_add_cq_to_tasklet`.
    Mlx4Enqueue = 31, "mlx4_enqueue";
    /// Entry of `mlx4_ib_cq_comp`.
    Mlx4Comp = 32, "mlx4_comp";
    /// Raw tracepoint `netif_receive_skb`.
    NetRx = 33, "net_rx";
    /// Raw tracepoint `net_dev_start_xmit`.
    NetTx = 34, "net_tx";
    /// Never attached: stores the kernel's clock for the start-up check.
    ClockProbe = 35, "clock_probe";
    /// Raw tracepoint `sys_enter`, in a round of its own: counts the system calls of one thread, records nothing.
    Syscalls = 36, "syscalls";
    /// Entry of `irq_int_handler` (older: `mlx5_irq_int_handler`) of `mlx5_core`.
    Mlx5Irq = 55, "mlx5_irq";
    /// Entry of `mlx5_cq_tasklet_cb` on kernels without the tasklet tracepoint.
    Mlx5BottomHalf = 56, "mlx5_bottom_half";
    /// Entry of `mlx4_msi_x_interrupt`.
    Mlx4Irq = 57, "mlx4_irq";
    /// Entry of `mlx4_cq_tasklet_cb` on kernels without the tasklet tracepoint.
    Mlx4BottomHalf = 58, "mlx4_bottom_half";
    /// Entry of `irdma_ceq_handler` or `i40iw_ceq_handler`.
    IrdmaIrq = 59, "irdma_irq";
    /// Entry of `irdma_irq_handler` or `i40iw_irq_handler`: the vector that completions share with asynchronous events.
    IrdmaIrqShared = 60, "irdma_irq_shared";
    /// Entry of `irdma_process_ceq` or `i40iw_process_ceq`.
    IrdmaBottomHalf = 61, "irdma_bottom_half";
    /// Entry of `bnxt_qplib_nq_irq`.
    BnxtIrq = 62, "bnxt_irq";
    /// Entry of `bnxt_qplib_service_nq` on kernels without the tasklet tracepoint.
    BnxtBottomHalf = 63, "bnxt_bottom_half";
    /// Entry of `bnxt_re_cqn_handler`.
    BnxtComp = 64, "bnxt_comp";
    /// Entry of `efa_intr_msix_comp`.
    EfaIrq = 65, "efa_irq";
    /// Entry of `erdma_intr_ceq_handler`.
    ErdmaIrq = 66, "erdma_irq";
    /// Entry of `erdma_intr_ceq_task` on kernels without the tasklet tracepoint.
    ErdmaBottomHalf = 67, "erdma_bottom_half";
    /// Entry of `hns_roce_v2_msix_interrupt_eq` or `hns_roce_v1_msix_interrupt_eq`.
    HnsIrq = 68, "hns_irq";
    /// Entry of `hns_roce_cq_completion`.
    HnsComp = 69, "hns_comp";
    /// Entry of `mana_gd_intr`.
    ManaIrq = 70, "mana_irq";
    /// Entry of `mana_ib_cq_handler`.
    ManaComp = 71, "mana_comp";
    /// Entry of `siw_sqe_complete`.
    SiwSendDone = 72, "siw_send_done";
    /// Entry of `siw_rqe_complete`.
    SiwRecvDone = 73, "siw_recv_done";
    /// Entry of `qedr_irq_handler`.
    QedrIrq = 74, "qedr_irq";
    /// Entry of `t4_sge_intr_msix`.
    Cxgb4Irq = 75, "cxgb4_irq";
    /// Entry of `napi_rx_handler` of `cxgb4`.
    Cxgb4BottomHalf = 76, "cxgb4_bottom_half";
    /// Entry of `c4iw_ev_handler`.
    Cxgb4Comp = 77, "cxgb4_comp";
    /// Entry of `pvrdma_intrx_handler`.
    PvrdmaIrq = 78, "pvrdma_irq";
    /// Entry of `rvt_cq_enter`.
    RvtCqEnter = 79, "rvt_cq_enter";
    /// Entry of `ib_uverbs_poll_cq`: polling through the kernel, counts and records nothing.
    UverbsPoll = 100, "uverbs_poll";
    /// Raw tracepoint `page_fault_user`.
    PageFaultUser = 40, "page_fault_user";
    /// Raw tracepoint `page_fault_kernel`.
    PageFaultKernel = 41, "page_fault_kernel";
    /// Raw tracepoint `local_timer_entry` (x86).
    TimerEntry = 42, "timer_entry";
    /// Raw tracepoint `local_timer_exit` (x86).
    TimerExit = 43, "timer_exit";
    /// Entry of `rdma_restrack_add`: remembers a CQ for the return.
    RestrackAdd = 45, "restrack_add";
    /// Return of `rdma_restrack_add`.
    RestrackAdded = 46, "restrack_added";
    /// Entry of `rdma_restrack_del`.
    RestrackDel = 47, "restrack_del";
    /// Entry of `rxe_req_notify_cq`.
    CqArm = 48, "cq_arm";
    /// Entry of `ib_uverbs_cq_event_handler`.
    CqError = 49, "cq_error";
    /// Raw tracepoint `softirq_raise`.
    SoftirqRaise = 50, "softirq_raise";
    /// Never attached: counts the unread CQEs of a soft-RoCE CQ when the reader asks.
    CqLook = 51, "cq_look";
    /// Never attached: writes records for the bench of the reader.
    Generate = 80, "generate";
}
