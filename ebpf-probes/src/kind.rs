//! The kinds of records: one number per kernel event, never reused.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// What a record tells. The letter and digit in each description is the event's name in the stage model (docs/stages.md).
        #[repr(u16)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $name = $number,)*
        }

        impl Kind {
            /// Every kind, in the order of their numbers.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];

            /// The kind with this number, or `None` for a number that this version does not know.
            pub const fn from_u16(number: u16) -> Option<Kind> {
                match number {
                    $($number => Some(Kind::$name),)*
                    _ => None,
                }
            }

            /// The name under which a kind appears in captures, reports and JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Kind::$name => $text,)*
                }
            }
        }
    };
}

kinds! {
    /// K0: a CPU leaves an idle state.
    CpuIdleExit = 1, "cpu_idle_exit";
    /// K1: a hard interrupt handler starts. An interrupt that interrupts a tracked task is always recorded.
    IrqEntry = 2, "irq_entry";
    /// A hard interrupt handler returned; below level `full` only where it had interrupted a tracked task.
    IrqExit = 3, "irq_exit";
    /// K4: a softirq vector starts: NET_RX and TASKLET everywhere, every vector in a tracked task.
    SoftirqEntry = 4, "softirq_entry";
    /// A softirq vector ended; below level `full` only in a tracked task.
    SoftirqExit = 5, "softirq_exit";
    /// K4: a tasklet that leads to a completion handler starts.
    TaskletEntry = 6, "tasklet_entry";
    /// Rq: a work item of the driver was queued.
    WorkQueue = 7, "work_queue";
    /// K4 on workqueue drivers: a work item of the driver starts.
    WorkStart = 8, "work_start";
    /// A NAPI poll ended (the tracepoint fires at the end of a poll).
    NapiPoll = 9, "napi_poll";
    /// K5: `ib_uverbs_comp_handler` is entered.
    CompHandler = 10, "comp_handler";
    /// K6: a tracked task is about to be woken, on the waker's CPU.
    SchedWaking = 11, "sched_waking";
    /// K7: a tracked task became runnable, on the CPU that activated it.
    SchedWakeup = 12, "sched_wakeup";
    /// K8: a CPU switches to a tracked task, or away from one.
    SchedSwitch = 13, "sched_switch";
    /// K9: `ib_uverbs_comp_event_read` returned.
    EventRead = 14, "event_read";
    /// R1: `rxe_post_send` is entered (the doorbell; no wr_id is visible here).
    RxePost = 15, "rxe_post";
    /// R2: rxe hands a request packet to the network layer; carries the wr_id.
    RxeXmit = 16, "rxe_xmit";
    /// R4: rxe received a packet for a queue pair.
    RxeRcv = 17, "rxe_rcv";
    /// R5: an rxe task (requester, completer, responder, sender or receiver) starts for a queue pair.
    RxeTask = 18, "rxe_task";
    /// R6: `rxe_cq_post` is entered; carries the wr_id. The CQE becomes visible shortly after.
    CqPost = 19, "cq_post";
    /// K3: a hardware driver puts a CQ on its bottom half.
    DriverEnqueue = 20, "driver_enqueue";
    /// A hardware driver's own completion callback runs, just before the handler.
    DriverComp = 21, "driver_comp";
    /// R3: a packet of the RoCE port leaves or enters the network device.
    NetPacket = 22, "net_packet";
    /// A tracked task moves to another CPU.
    SchedMigrate = 23, "sched_migrate";
    /// A tracked task takes a page fault.
    PageFault = 24, "page_fault";
    /// The local timer's interrupt (the tick) begins while a tracked task has the CPU.
    TimerEntry = 25, "timer_entry";
    /// The local timer's interrupt ended while a tracked task has the CPU.
    TimerExit = 26, "timer_exit";
    /// K4 where the driver's own bottom half is watched by its function: a tasklet on kernels without the tasklet tracepoint, an
    /// event queue's processing, a NAPI poll that begins.
    DriverBottomHalf = 30, "driver_bottom_half";
    /// K1b: the driver's own interrupt handler runs; with forced threading (PREEMPT_RT, `threadirqs`) this is in the irq thread.
    DriverIrq = 31, "driver_irq";
    /// A user CQ was created; `current` is its owner.
    CqCreate = 27, "cq_create";
    /// A user CQ is about to be freed.
    CqDestroy = 28, "cq_destroy";
    /// K2: a process arms its CQ through the kernel (soft-RoCE).
    CqArm = 29, "cq_arm";
    /// The driver reports an error of a CQ, such as an overrun.
    CqError = 40, "cq_error";
    /// A softirq vector is raised (NET_RX and TASKLET only).
    SoftirqRaise = 41, "softirq_raise";
}
