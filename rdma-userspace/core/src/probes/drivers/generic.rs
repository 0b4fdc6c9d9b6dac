//! What every driver shares: the kernel's tracepoints, and the uverbs layer.

use capture::Level;
use ebpf_probes::{Kind, Program};

use super::{Candidate, Condition, Driver, Hook, HookKind, Tried};

const TASK_PID: &[&str] = &["OFF_TASK_PID"];
/// The argument of `rdma_restrack_add`, `rdma_restrack_del` and `rdma_restrack_commit_del`.
const ENTRY: &[&[&str]] = &[&["struct rdma_restrack_entry *"]];

/// Tracepoints of the kernel itself.
pub const KERNEL: Driver = Driver {
    name: "kernel",
    modules: &[],
    also: &[],
    device_drivers: &[],
    provider: None,
    completion: None,
    mark: "",
    chains: &[],
    tried: Tried::Fires,
    contexts: "tracepoints: `current` is whoever ran; the woken thread is in the record",
    tasklets: &[],
    works: &[],
    hooks: &[
        Hook {
            name: "K0 idle exit",
            candidates: &[Candidate::new("cpu_idle", Program::CpuIdle)],
            gives: &[Kind::CpuIdleExit],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "K1 interrupt",
            candidates: &[Candidate::new("irq_handler_entry", Program::IrqEntry)],
            gives: &[Kind::IrqEntry],
            silence: Some("no device interrupt came: a same-host soft-RoCE path has none"),
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "interrupt end",
            candidates: &[Candidate::new("irq_handler_exit", Program::IrqExit)],
            gives: &[Kind::IrqExit],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "K4 softirq",
            candidates: &[Candidate::new("softirq_entry", Program::SoftirqEntry)],
            gives: &[Kind::SoftirqEntry],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "softirq end",
            candidates: &[Candidate::new("softirq_exit", Program::SoftirqExit)],
            gives: &[Kind::SoftirqExit],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "K4 tasklet",
            mandatory: false,
            condition: Condition::Tasklet,
            candidates: &[Candidate::new("tasklet_entry", Program::TaskletEntry)],
            gives: &[Kind::TaskletEntry],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "Rq work queued",
            condition: Condition::Work,
            candidates: &[Candidate::new("workqueue_queue_work", Program::WorkQueue)],
            needs: &["OFF_WORK_FUNC"],
            gives: &[Kind::WorkQueue],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "K4 work starts",
            condition: Condition::Work,
            candidates: &[Candidate::new("workqueue_execute_start", Program::WorkStart)],
            needs: &["OFF_WORK_FUNC"],
            gives: &[Kind::WorkStart],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "softirq raised",
            level: Level::Trace,
            candidates: &[Candidate::new("softirq_raise", Program::SoftirqRaise)],
            gives: &[Kind::SoftirqRaise],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "NAPI poll",
            level: Level::Full,
            candidates: &[Candidate::new("napi_poll", Program::NapiPoll)],
            gives: &[Kind::NapiPoll],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "K6 waking",
            level: Level::Min,
            candidates: &[Candidate::new("sched_waking", Program::SchedWaking)],
            needs: TASK_PID,
            gives: &[Kind::SchedWaking],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "K7 wakeup",
            candidates: &[Candidate::new("sched_wakeup", Program::SchedWakeup)],
            needs: TASK_PID,
            gives: &[Kind::SchedWakeup],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "K8 run",
            level: Level::Min,
            candidates: &[Candidate::new("sched_switch", Program::SchedSwitch)],
            needs: TASK_PID,
            gives: &[Kind::SchedSwitch],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "migration",
            candidates: &[Candidate::new("sched_migrate_task", Program::SchedMigrate)],
            needs: TASK_PID,
            gives: &[Kind::SchedMigrate],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "tick begins",
            mandatory: false,
            candidates: &[Candidate::new("local_timer_entry", Program::TimerEntry)],
            gives: &[Kind::TimerEntry],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "tick ends",
            mandatory: false,
            candidates: &[Candidate::new("local_timer_exit", Program::TimerExit)],
            gives: &[Kind::TimerExit],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "page fault in user mode",
            mandatory: false,
            candidates: &[Candidate::new("page_fault_user", Program::PageFaultUser)],
            gives: &[Kind::PageFault],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "page fault in the kernel",
            mandatory: false,
            candidates: &[Candidate::new("page_fault_kernel", Program::PageFaultKernel)],
            gives: &[Kind::PageFault],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "R3 packet received",
            level: Level::Full,
            candidates: &[Candidate::new("netif_receive_skb", Program::NetRx)],
            needs: &["OFF_SKB_DEV", "OFF_DEV_IFINDEX"],
            gives: &[Kind::NetPacket],
            ..Hook::TRACEPOINT
        },
        Hook {
            name: "R3 packet sent",
            level: Level::Full,
            candidates: &[Candidate::new("net_dev_start_xmit", Program::NetTx)],
            needs: &["OFF_DEV_IFINDEX"],
            gives: &[Kind::NetPacket],
            ..Hook::TRACEPOINT
        },
    ],
};

/// The uverbs layer: the one place that every driver passes for a CQ of user space.
pub const UVERBS: Driver = Driver {
    name: "uverbs",
    modules: &["ib_uverbs"],
    also: &["ib_uverbs_support", "ib_core"],
    device_drivers: &[],
    provider: None,
    completion: None,
    mark: "ib_uverbs_comp_handler",
    chains: &[],
    tried: Tried::Fires,
    contexts: "argument 0 is the `ib_cq`; its owner is `res.task`, its name in user space `uobject->user_handle`",
    tasklets: &[],
    works: &[],
    hooks: &[
        Hook {
            name: "K5 completion handler",
            level: Level::Min,
            candidates: &[Candidate::with("ib_uverbs_comp_handler", Program::CompHandler, &[&["struct ib_cq *"], &["void *"]])],
            needs: &["OFF_CQ_UOBJECT", "OFF_UOBJECT_HANDLE"],
            gives: &[Kind::CompHandler],
            silence: Some("polling: no CQ was armed, so no handler runs; event rounds with the same probe are the control"),
            ..Hook::KPROBE
        },
        Hook {
            name: "event read begins",
            level: Level::Full,
            candidates: &[Candidate::with("ib_uverbs_comp_event_read", Program::EventReadEntry, &[&["struct file *"]])],
            ..Hook::KPROBE
        },
        Hook {
            name: "K9 event read returns",
            level: Level::Full,
            kind: HookKind::Kretprobe,
            candidates: &[Candidate::new("ib_uverbs_comp_event_read", Program::EventReadReturn)],
            gives: &[Kind::EventRead],
            ..Hook::KPROBE
        },
        Hook {
            name: "CQ being created",
            level: Level::Trace,
            candidates: &[Candidate::with("rdma_restrack_add", Program::RestrackAdd, ENTRY)],
            needs: &["OFF_CQ_RES", "OFF_CQ_RES_TYPE"],
            ..Hook::KPROBE
        },
        Hook {
            name: "CQ created",
            level: Level::Trace,
            kind: HookKind::Kretprobe,
            candidates: &[Candidate::with("rdma_restrack_add", Program::RestrackAdded, ENTRY)],
            needs: &["OFF_CQ_RES", "OFF_CQ_RES_TYPE"],
            gives: &[Kind::CqCreate],
            ..Hook::KPROBE
        },
        Hook {
            name: "CQ destroyed",
            level: Level::Trace,
            // Where deletion has two steps (seen on 7.3), `ib_destroy_cq_user` calls the second and never the function of one step, which
            // that kernel has for other objects.
            candidates: &[
                Candidate::with("rdma_restrack_commit_del", Program::RestrackDel, ENTRY),
                Candidate::with("rdma_restrack_del", Program::RestrackDel, ENTRY),
            ],
            needs: &["OFF_CQ_RES", "OFF_CQ_RES_TYPE"],
            gives: &[Kind::CqDestroy],
            ..Hook::KPROBE
        },
        Hook {
            name: "CQ error",
            level: Level::Trace,
            candidates: &[Candidate::with("ib_uverbs_cq_event_handler", Program::CqError, &[&["struct ib_event *"], &["void *"]])],
            gives: &[Kind::CqError],
            silence: Some("no driver reported an error of a CQ"),
            ..Hook::KPROBE
        },
    ],
};
