//! The stage table: the milestones of a sample in path order, and the stage that lies between two of them.
//!
//! A sample's chain is the milestones that were seen. The gap between two neighbours in the chain is exactly one stage, found in
//! [`STAGES`] by the pair; a pair that the table does not have is unattributed. docs/stages.md shows this table; a test compares.
use ebpf_probes::Kind;

pub use crate::milestones::Point;

/// Where a stage exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Every device.
    All,
    /// Devices that complete without the kernel.
    Hardware,
    /// soft-RoCE.
    Rxe,
    /// Polling (and event mode where the CQE was polled without an event).
    Poll,
    /// Event mode.
    Event,
    /// Event mode on hardware.
    EventHardware,
}

impl Place {
    /// As printed in docs.
    pub const fn name(self) -> &'static str {
        match self {
            Place::All => "all",
            Place::Hardware => "hardware",
            Place::Rxe => "rxe",
            Place::Poll => "poll",
            Place::Event => "event",
            Place::EventHardware => "event, hardware",
        }
    }
}

/// One stage.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Name, as in every output.
    pub name: &'static str,
    /// What the time is spent on.
    pub meaning: &'static str,
    /// Where it exists.
    pub place: Place,
    /// The neighbouring milestones (from, to) that it lies between.
    pub between: &'static [(Point, Point)],
}

use Point::*;

/// All stages in path order.
pub const STAGES: &[Stage] = &[
    Stage {
        name: "post",
        meaning: "user space and the way into the kernel; where the kernel does not see the post, all of it",
        place: Place::All,
        between: &[(PostBegin, PostEnter), (PostBegin, PostEnd)],
    },
    Stage {
        name: "device + network",
        meaning: "from the end of the post to the first sign of the completion that is recorded: not split further",
        place: Place::Hardware,
        between: &[
            (PostEnd, HwCqe),
            (PostEnd, CompIrq),
            (PostEnd, DriverEnqueue),
            (PostEnd, SoftirqWaking),
            (PostEnd, BottomHalf),
            (PostEnd, Handler),
        ],
    },
    Stage {
        name: "post, device + network",
        meaning: "the interrupt of the completion came before the post returned (INLINE): the two cannot be told apart",
        place: Place::Hardware,
        between: &[
            (PostBegin, CompIrq),
            (PostBegin, DriverEnqueue),
            (PostBegin, SoftirqWaking),
            (PostBegin, BottomHalf),
            (PostBegin, Handler),
        ],
    },
    Stage {
        name: "device, network and detection",
        meaning: "from the end of the post to the poll that found the CQE: nothing in between is visible here",
        place: Place::Hardware,
        between: &[(PostEnd, Done)],
    },
    Stage {
        name: "requester queue",
        meaning: "from rxe's post function to the start of its requester, without the wait for a kernel worker",
        place: Place::Rxe,
        between: &[(PostEnter, ReqQueued), (PostEnter, ReqStart), (PostEnter, ReqWork), (ReqWork, ReqStart)],
    },
    Stage {
        name: "requester workqueue",
        meaning: "the send task waits for a kernel worker (rxe from 6.12 on)",
        place: Place::Rxe,
        between: &[(ReqQueued, ReqWork), (ReqQueued, ReqStart)],
    },
    Stage {
        name: "requester",
        meaning: "rxe builds the request's packets",
        place: Place::Rxe,
        between: &[(ReqStart, Xmit), (ReqWork, Xmit)],
    },
    Stage {
        name: "requester (start not seen)",
        meaning: "from the post to the packet where the requester's own start is not recorded or it was running already; a running one may \
                  find the WR before the post enters the kernel, and then the stage begins with the post",
        place: Place::Rxe,
        between: &[(PostEnter, Xmit), (ReqQueued, Xmit), (PostBegin, Xmit)],
    },
    Stage {
        name: "retransmission",
        meaning: "from the first to the last sending of the same packet",
        place: Place::Rxe,
        between: &[(Xmit, Rexmit)],
    },
    Stage { name: "tx stack", meaning: "from rxe to the network device", place: Place::Rxe, between: &[(Xmit, NetTx), (Rexmit, NetTx)] },
    Stage {
        name: "wire + peer",
        meaning: "the network both ways and everything that the peer does (on one host: the peer alone)",
        place: Place::Rxe,
        between: &[
            (Xmit, Irq),
            (Xmit, NetSoftirqWaking),
            (Xmit, NetSoftirq),
            (Xmit, NetRx),
            (Xmit, Rcv),
            (Rexmit, Irq),
            (Rexmit, NetSoftirqWaking),
            (Rexmit, NetSoftirq),
            (Rexmit, NetRx),
            (Rexmit, Rcv),
            (NetTx, Irq),
            (NetTx, NetSoftirqWaking),
            (NetTx, NetSoftirq),
            (NetTx, NetRx),
            (NetTx, Rcv),
        ],
    },
    Stage {
        name: "rx interrupt",
        meaning: "the hard interrupt of the network device and the wait for its softirq",
        place: Place::Rxe,
        between: &[(Irq, NetSoftirq), (Irq, IrqWaking), (Irq, NetSoftirqWaking), (NetSoftirqThread, NetSoftirq)],
    },
    Stage {
        name: "irq thread wake-up",
        meaning: "interrupts run in threads (PREEMPT_RT, threadirqs): from the wake-up of the interrupt's thread until it has a CPU",
        place: Place::All,
        between: &[(IrqWaking, IrqThread), (CompIrqWaking, CompIrqThread), (CompIrq, CompIrqThread)],
    },
    Stage {
        name: "irq thread",
        meaning: "the device's interrupt handler runs in its thread, up to the softirq, the driver's request for its bottom half, or the \
                  completion handler",
        place: Place::All,
        between: &[(IrqThread, NetSoftirq), (IrqThread, NetSoftirqWaking), (CompIrqThread, DriverEnqueue), (CompIrqThread, Handler)],
    },
    Stage {
        name: "softirq thread wake-up",
        meaning: "a softirq, tasklet or NAPI poll was put off to a thread (ksoftirqd, ktimers, napi): from its wake-up until it has a CPU",
        place: Place::All,
        between: &[(NetSoftirqWaking, NetSoftirqThread), (RespSoftirqWaking, RespSoftirqThread), (SoftirqWaking, SoftirqThread)],
    },
    Stage {
        name: "rx softirq",
        meaning: "NAPI and the network stack up to rxe",
        place: Place::Rxe,
        between: &[
            (Irq, NetRx),
            (Irq, Rcv),
            (IrqThread, NetRx),
            (IrqThread, Rcv),
            (NetSoftirqThread, NetRx),
            (NetSoftirqThread, Rcv),
            (NetSoftirq, NetRx),
            (NetSoftirq, Rcv),
            (NetRx, Rcv),
        ],
    },
    Stage {
        name: "task queue",
        meaning: "rxe's own queue: from the packet to the task that handles it, without the wait for a kernel worker",
        place: Place::Rxe,
        between: &[
            (Rcv, RespQueued),
            (Rcv, RespSoftirqWaking),
            (Rcv, RespWork),
            (Rcv, RespStart),
            (RespSoftirqThread, RespWork),
            (RespWork, RespStart),
        ],
    },
    Stage {
        name: "task workqueue",
        meaning: "the task waits for a kernel worker (rxe from 6.6 on)",
        place: Place::Rxe,
        between: &[(RespQueued, RespWork), (RespQueued, RespStart)],
    },
    Stage {
        name: "protocol",
        meaning: "rxe handles the packet up to the CQE",
        place: Place::Rxe,
        between: &[(RespStart, CqePosted), (RespWork, CqePosted)],
    },
    Stage {
        name: "protocol (start not seen)",
        meaning: "from the packet to the CQE where the start of rxe's task is not recorded (level std where rxe has no workqueue), or the task was running already (TASK_BUSY) and took the packet along",
        place: Place::Rxe,
        between: &[(Rcv, CqePosted), (RespQueued, CqePosted)],
    },
    Stage {
        name: "protocol and detection",
        meaning: "from the packet to the poll that saw the data: no CQE marks the moment between",
        place: Place::Rxe,
        between: &[(Rcv, Done), (RespQueued, Done), (RespWork, Done), (RespStart, Done)],
    },
    Stage {
        name: "post return after completion",
        meaning: "what was left of the post when the CQE was there already (INLINE)",
        place: Place::All,
        between: &[(CqePosted, PostReturn)],
    },
    Stage {
        name: "detect",
        meaning: "from the CQE (or the end of the post, if later) to the poll that found it; R6 is stamped just before the CQE is visible, and arming lies inside in event mode",
        place: Place::Poll,
        between: &[(CqePosted, Done), (PostReturn, Done), (HwCqe, Done)],
    },
    Stage {
        name: "notify delay",
        meaning: "from the CQE to the completion handler: a tasklet on 6.1 and older, a nested call later",
        place: Place::Event,
        between: &[(CqePosted, SoftirqWaking), (CqePosted, BottomHalf), (CqePosted, Handler), (HwCqe, CompIrq), (HwCqe, Handler)],
    },
    Stage {
        name: "hard irq",
        meaning: "from the interrupt to the driver's bottom-half request, to the handler that the driver calls in the interrupt itself, or \
                  to the wake-up of the interrupt's thread",
        place: Place::EventHardware,
        between: &[(CompIrq, DriverEnqueue), (CompIrq, Handler), (CompIrq, CompIrqWaking)],
    },
    Stage {
        name: "bottom-half wait",
        meaning: "from the request (or the interrupt) to the start of the bottom half, without the wake-up of a thread that it was put off to",
        place: Place::Event,
        between: &[
            (DriverEnqueue, BottomHalf),
            (CompIrq, BottomHalf),
            (CompIrqThread, BottomHalf),
            (DriverEnqueue, SoftirqWaking),
            (CompIrq, SoftirqWaking),
            (CompIrqThread, SoftirqWaking),
            (SoftirqThread, BottomHalf),
        ],
    },
    Stage {
        name: "bottom half",
        meaning: "from the start of the bottom half to the completion handler; other CQs may be served first",
        place: Place::Event,
        between: &[(BottomHalf, Handler), (DriverEnqueue, Handler), (SoftirqThread, Handler)],
    },
    Stage {
        name: "handler",
        meaning: "the uverbs completion handler up to the wake-up of the thread",
        place: Place::Event,
        between: &[(Handler, Waking)],
    },
    Stage {
        name: "activation",
        meaning: "from the wake-up call until the thread is runnable (an interrupt to another CPU where needed)",
        place: Place::Event,
        between: &[(Waking, Wakeup), (IdleExitEarly, Wakeup)],
    },
    Stage {
        name: "idle exit",
        meaning: "the thread's CPU was idle: from the wake-up until it left the idle state",
        place: Place::Event,
        between: &[(Waking, IdleExitEarly), (Wakeup, IdleExitLate)],
    },
    Stage {
        name: "run queue",
        meaning: "the thread is runnable and waits for its CPU",
        place: Place::Event,
        between: &[(Wakeup, SwitchIn), (IdleExitLate, SwitchIn)],
    },
    Stage {
        name: "activation and run queue",
        meaning: "from the wake-up call until the thread has its CPU (not split: K7 is not recorded at this level)",
        place: Place::Event,
        between: &[(Waking, SwitchIn), (IdleExitEarly, SwitchIn)],
    },
    Stage {
        name: "event read",
        meaning: "the thread runs again, up to the end of the kernel's event read",
        place: Place::Event,
        between: &[(SwitchIn, ReadReturn), (Wakeup, ReadReturn), (Waking, ReadReturn)],
    },
    Stage {
        name: "return to user",
        meaning: "from the switch to the thread (or the end of the kernel's read) to user space; also for a thread woken before it had left its CPU",
        place: Place::Event,
        between: &[(SwitchIn, WaitEnd), (ReadReturn, WaitEnd), (Wakeup, WaitEnd), (Waking, WaitEnd), (IdleExitLate, WaitEnd)],
    },
    Stage {
        name: "event read without sleep",
        meaning: "the event was queued before the thread read it (NO_SLEEP), or the read took the event of an earlier CQE: up to the read's return",
        place: Place::Event,
        between: &[(Handler, WaitEnd), (Handler, ReadReturn), (CqePosted, WaitEnd)],
    },
    Stage {
        name: "poll",
        meaning: "from the return of the read to the poll that returned the CQE",
        place: Place::Event,
        between: &[(WaitEnd, Done)],
    },
];

/// Name of the time that no stage covers.
pub const UNATTRIBUTED: &str = "unattributed";

/// Index in [`STAGES`] of the stage between two neighbours of a chain.
pub fn between(from: Point, to: Point) -> Option<usize> {
    LOOKUP[from as usize][to as usize].map(usize::from)
}

const POINTS: usize = Done as usize + 1;

static LOOKUP: [[Option<u8>; POINTS]; POINTS] = {
    let mut table = [[None; POINTS]; POINTS];
    let mut stage = 0;
    while stage < STAGES.len() {
        let pairs = STAGES[stage].between;
        let mut pair = 0;
        while pair < pairs.len() {
            let (from, to) = pairs[pair];
            assert!((from as u8) < (to as u8), "a stage runs forward");
            assert!(table[from as usize][to as usize].is_none(), "two stages claim the same pair");
            table[from as usize][to as usize] = Some(stage as u8);
            pair += 1;
        }
        stage += 1;
    }
    table
};

/// Position of a kind of record along the path: settles the order of records of several CPUs with the same time.
pub fn kind_rank(kind: u16) -> usize {
    const ORDER: &[Kind] = &[
        Kind::CqCreate,
        Kind::CqArm,
        Kind::RxePost,
        Kind::WorkQueue,
        Kind::WorkStart,
        Kind::RxeTask,
        Kind::RxeXmit,
        Kind::NetPacket,
        Kind::CpuIdleExit,
        Kind::PageFault,
        Kind::TimerEntry,
        Kind::TimerExit,
        Kind::IrqEntry,
        Kind::DriverIrq,
        Kind::DriverEnqueue,
        Kind::SoftirqRaise,
        Kind::IrqExit,
        Kind::SoftirqEntry,
        Kind::RxeRcv,
        Kind::CqPost,
        Kind::CqError,
        Kind::NapiPoll,
        Kind::TaskletEntry,
        Kind::DriverBottomHalf,
        Kind::DriverComp,
        Kind::CompHandler,
        Kind::SoftirqExit,
        Kind::SchedMigrate,
        Kind::SchedWaking,
        Kind::SchedWakeup,
        Kind::SchedSwitch,
        Kind::EventRead,
        Kind::CqDestroy,
    ];
    Kind::from_u16(kind).and_then(|kind| ORDER.iter().position(|k| *k == kind)).unwrap_or(ORDER.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_place_in_the_order() {
        let mut ranks: Vec<usize> = Kind::ALL.iter().map(|kind| kind_rank(*kind as u16)).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, (0..Kind::ALL.len()).collect::<Vec<_>>());
    }

    #[test]
    fn names_are_unique_and_the_lookup_finds_every_pair() {
        for (index, stage) in STAGES.iter().enumerate() {
            assert!(STAGES.iter().filter(|other| other.name == stage.name).count() == 1, "{} twice", stage.name);
            for (from, to) in stage.between {
                assert_eq!(between(*from, *to), Some(index));
            }
        }
        assert_eq!(between(PostBegin, Done), None);
    }
}
