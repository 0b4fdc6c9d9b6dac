//! The bodies of the records, one type per shape.
#[cfg(feature = "host")]
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

macro_rules! record {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "host", derive(FromBytes, IntoBytes, Immutable, KnownLayout))]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }
    };
}

record! {
    /// What every record begins with.
    Header {
        /// [`crate::Kind`] as a number.
        kind: u16,
        /// Size of the whole record (header and body) in bytes.
        size: u16,
        /// CPU on which the event happened.
        cpu: u32,
        /// `CLOCK_MONOTONIC` in nanoseconds.
        ts_ns: u64,
        /// Thread id of `current`, in the initial pid namespace. In an interrupt this is whoever was running, not the owner.
        pid: u32,
        /// Process id of `current`.
        tgid: u32,
    }
}
record! {
    /// Body of `CpuIdleExit`.
    CpuIdle {
        /// The idle state's index where the kernel tells it at the exit, else `u32::MAX`.
        state: u32,
        /// Zero.
        reserved: u32,
    }
}
record! {
    /// Body of `IrqEntry` and `IrqExit`.
    Irq {
        /// Linux interrupt number, as in /proc/interrupts.
        irq: u32,
        /// Zero.
        reserved: u32,
    }
}
record! {
    /// Body of `SoftirqEntry` and `SoftirqExit`.
    Softirq {
        /// Vector: 3 is NET_RX, 6 is TASKLET (`enum` of include/linux/interrupt.h).
        vec: u32,
        /// Zero.
        reserved: u32,
    }
}
record! {
    /// Body of `TaskletEntry`.
    Tasklet {
        /// Address of the `tasklet_struct`.
        tasklet: u64,
        /// Address of its function.
        func: u64,
    }
}
record! {
    /// Body of `WorkQueue` and `WorkStart`.
    Work {
        /// Address of the `work_struct`: pairs the queueing with the start.
        work: u64,
        /// Address of its function.
        func: u64,
    }
}
record! {
    /// Body of `NapiPoll`.
    Napi {
        /// Packets handled.
        work: u32,
        /// The budget of the poll.
        budget: u32,
    }
}
record! {
    /// Body of `CompHandler`.
    CompHandler {
        /// Address of the kernel's `ib_cq`.
        cq: u64,
        /// The owner's `struct ibv_cq *`: with `owner_tgid` the identity of the CQ in user space.
        user_handle: u64,
        /// The handler's `cq_context`: identity of the completion channel.
        channel: u64,
        /// Process that created the CQ; 0 where the offset is not known.
        owner_tgid: u32,
        /// Restrack id, what `rdma resource show cq` prints as `cqn`; `u32::MAX` where the offset is not known.
        restrack_id: u32,
    }
}
record! {
    /// Body of `SchedWaking`, `SchedWakeup` and `SchedMigrate`.
    Wake {
        /// Thread that is woken (or moved).
        target_pid: u32,
        /// Destination CPU of a migration, else `u32::MAX`.
        target_cpu: u32,
    }
}
record! {
    /// Body of `SchedSwitch`.
    Switch {
        /// Thread that leaves the CPU.
        prev_pid: u32,
        /// Thread that gets the CPU.
        next_pid: u32,
        /// `comm` of the thread that leaves, zero padded.
        prev_comm: [u8; 16],
        /// 1 when the thread that leaves was preempted (still wanted to run).
        preempted: u32,
        /// Zero.
        reserved: u32,
    }
}
record! {
    /// Body of `EventRead`.
    EventRead {
        /// Identity of the completion channel, as in [`CompHandler::channel`]; 0 where not known.
        channel: u64,
        /// What the read returned: bytes, or a negative errno.
        result: i64,
    }
}
record! {
    /// Body of `RxePost`.
    RxePost {
        /// Address of the queue pair (`rxe_qp`).
        qp: u64,
        /// Queue pair number; `u32::MAX` where the offset is not known.
        qpn: u32,
        /// Zero.
        reserved: u32,
    }
}
record! {
    /// Body of `RxeXmit`.
    RxeXmit {
        /// Address of the queue pair.
        qp: u64,
        /// The work request's wr_id.
        wr_id: u64,
        /// Queue pair number of the sender.
        qpn: u32,
        /// Packet sequence number.
        psn: u32,
        /// BTH opcode.
        opcode: u32,
        /// Zero.
        reserved: u32,
    }
}
record! {
    /// Body of `RxeRcv`.
    RxeRcv {
        /// Address of the receiving queue pair.
        qp: u64,
        /// Address of the `sk_buff`.
        skb: u64,
        /// Queue pair number of the receiver.
        qpn: u32,
        /// [`path::COMPLETER`] for an answer, [`path::RESPONDER`] for a request.
        path: u32,
    }
}
record! {
    /// Body of `RxeTask`.
    RxeTask {
        /// Address of the queue pair.
        qp: u64,
        /// Queue pair number.
        qpn: u32,
        /// Which task: a value of [`path`].
        path: u32,
    }
}
record! {
    /// Body of `CqPost`.
    CqPost {
        /// Address of the kernel's `ib_cq`.
        cq: u64,
        /// The work request's wr_id.
        wr_id: u64,
        /// Queue pair number of the work request.
        qpn: u32,
        /// `ib_wc_status`.
        status: u32,
        /// `ib_wc_opcode`; `u32::MAX` where the driver has its own (siw's sends).
        opcode: u32,
        /// Bytes transferred.
        byte_len: u32,
    }
}
record! {
    /// Body of `DriverEnqueue` and `DriverComp`.
    DriverCq {
        /// Address of the driver's inner CQ object (`mlx5_core_cq`, `mlx4_cq`).
        driver_cq: u64,
        /// The device's own CQ number; `u32::MAX` where the offset is not known.
        cqn: u32,
        /// Linux interrupt number of the CQ's event queue; `u32::MAX` where the offset is not known.
        irq: u32,
    }
}
record! {
    /// Body of `DriverBottomHalf` and `DriverIrq`.
    DriverEntry {
        /// The driver's object: a `tasklet_struct`, `napi_struct` or event queue of a bottom half, the cookie of an interrupt handler.
        object: u64,
        /// Linux interrupt number; `u32::MAX` where the function is not told it.
        irq: u32,
        /// Zero. In captures made before rdmascope had `device.completion_shape`, a number for the driver, which nothing ever read.
        reserved: u32,
    }
}
record! {
    /// Body of `NetPacket`.
    NetPacket {
        /// Address of the `sk_buff`.
        skb: u64,
        /// 0 received, 1 sent.
        direction: u32,
        /// Interface index of the device.
        ifindex: u32,
    }
}
record! {
    /// Body of `PageFault`.
    PageFault {
        /// The address that was touched.
        address: u64,
        /// The CPU's error code: bit 0 a protection fault (else no page), bit 1 a write, bit 2 from user mode, bit 4 an instruction fetch.
        error_code: u32,
        /// Zero.
        reserved: u32,
    }
}
record! {
    /// Body of `TimerEntry` and `TimerExit`.
    Timer {
        /// Vector of the interrupt, as the CPU numbers it.
        vector: u32,
        /// Zero.
        reserved: u32,
    }
}

record! {
    /// Body of `CqCreate`; the header's `tgid` is the owner.
    CqCreate {
        /// Address of the kernel's `ib_cq`.
        cq: u64,
        /// The owner's `struct ibv_cq *`.
        user_handle: u64,
        /// Identity of the completion channel; 0: created without one, so that it can have no event.
        channel: u64,
        /// As in [`CompHandler::restrack_id`].
        restrack_id: u32,
        /// CQEs that it holds; `u32::MAX` where the offset is not known.
        depth: u32,
    }
}
record! {
    /// Body of `CqDestroy`. `current` may be the kernel's own worker that cleans up after a process.
    CqDestroy {
        /// Address of the kernel's `ib_cq`; may be used again for another CQ from now on.
        cq: u64,
        /// The owner's `struct ibv_cq *`.
        user_handle: u64,
        /// Identity of the completion channel.
        channel: u64,
        /// Process that created the CQ.
        owner_tgid: u32,
        /// As in [`CompHandler::restrack_id`].
        restrack_id: u32,
    }
}
record! {
    /// Body of `CqArm`.
    CqArm {
        /// Address of the kernel's `ib_cq`.
        cq: u64,
        /// `enum ib_cq_notify_flags`: 1 solicited, 2 next completion.
        flags: u32,
        /// CQEs in the queue that the process has not polled, at this moment; `u32::MAX` where not known.
        unread: u32,
    }
}
record! {
    /// Body of `CqError`.
    CqError {
        /// Address of the kernel's `ib_cq`.
        cq: u64,
        /// The owner's `struct ibv_cq *`.
        user_handle: u64,
        /// Process that created the CQ; 0 where not known.
        owner_tgid: u32,
        /// `enum ib_event_type`; 0 is the CQ error, which an overrun raises.
        event: u32,
    }
}

/// Which part of rxe a record speaks of.
pub mod path {
    /// Completer: handles answers (`rxe_completer`, `rxe_comp_queue_pkt`).
    pub const COMPLETER: u32 = 0;
    /// Responder: handles requests (`rxe_responder`, `rxe_resp_queue_pkt`).
    pub const RESPONDER: u32 = 1;
    /// Requester (`rxe_requester`).
    pub const REQUESTER: u32 = 2;
    /// Requester and completer merged (`rxe_sender`).
    pub const SENDER: u32 = 3;
    /// Responder as a work item (`rxe_receiver`).
    pub const RECEIVER: u32 = 4;
}
