//! What was seen of one CQ.
use super::cpu::Origin;
use super::times::Times;
use serde::Serialize;
use std::collections::BTreeSet;

/// A stage of an event, from one moment to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The interrupt that led to the handler began → completion handler.
    IrqToHandler,
    /// The softirq in which the handler ran began → completion handler.
    SoftirqToHandler,
    /// The tasklet in which the handler ran began → completion handler.
    TaskletToHandler,
    /// The work item in which the handler ran began → completion handler.
    WorkToHandler,
    /// Completion handler → waking of the reader.
    HandlerToWaking,
    /// Waking → the reader is runnable on its CPU.
    WakingToWakeup,
    /// Runnable → runs.
    WakeupToRun,
    /// Completion handler → the reader runs.
    HandlerToRun,
    /// The reader runs → its read of the event returns.
    RunToRead,
    /// Completion handler → the read of the event returns: every event that was read.
    HandlerToRead,
}

impl Stage {
    /// Every stage, in the order of the path.
    pub const ALL: [Stage; 10] = [
        Stage::IrqToHandler,
        Stage::SoftirqToHandler,
        Stage::TaskletToHandler,
        Stage::WorkToHandler,
        Stage::HandlerToWaking,
        Stage::WakingToWakeup,
        Stage::WakeupToRun,
        Stage::HandlerToRun,
        Stage::RunToRead,
        Stage::HandlerToRead,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::IrqToHandler => "interrupt → handler",
            Stage::SoftirqToHandler => "softirq → handler",
            Stage::TaskletToHandler => "tasklet → handler",
            Stage::WorkToHandler => "work item → handler",
            Stage::HandlerToWaking => "handler → waking",
            Stage::WakingToWakeup => "waking → wakeup",
            Stage::WakeupToRun => "wakeup → run",
            Stage::HandlerToRun => "handler → run",
            Stage::RunToRead => "run → read returns",
            Stage::HandlerToRead => "handler → read returns",
        }
    }
}

/// Events by what became of them. Each event is in exactly one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcomes {
    /// Woke the sleeping thread that then read it: handler, waking, wakeup, run, read all seen.
    pub woken: u64,
    /// Woke its reader before that had left its CPU: there is no run to wait for.
    pub woken_on_cpu: u64,
    /// Came while the reader was runnable: woken by an earlier event, or preempted.
    pub runnable: u64,
    /// Came while the reader was on its CPU: no wake-up was needed.
    pub running: u64,
    /// Came while the reader slept on something else than the channel.
    pub elsewhere: u64,
    /// Read, but a moment in between is missing.
    pub incomplete: u64,
    /// The read was not seen, although the channel was empty later.
    pub unmatched: u64,
    /// The CQ was destroyed before it was read.
    pub discarded: u64,
    /// Still in the channel when the trace ended.
    pub unread: u64,
}

impl Outcomes {
    /// Events whose every moment was seen.
    pub fn complete(&self) -> u64 {
        self.woken + self.woken_on_cpu + self.runnable + self.running + self.elsewhere
    }

    /// Events that ought to be complete: all but those that nobody read.
    pub fn due(&self) -> u64 {
        self.complete() + self.incomplete + self.unmatched
    }

    /// All events.
    pub fn all(&self) -> u64 {
        self.due() + self.discarded + self.unread
    }
}

/// What happened since the last look.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Completion events.
    pub events: u64,
    /// CQEs posted, where the driver shows them.
    pub cqes: u64,
    /// The outermost begin that is known (interrupt, softirq, tasklet, work item) → handler.
    pub origin: Times,
    /// Handler → the reader runs.
    pub handler_to_run: Times,
    /// The reader runs → its read returns.
    pub run_to_read: Times,
    /// Handler → read returns.
    pub handler_to_read: Times,
}

/// What was seen of one CQ.
#[derive(Clone, Debug, Default)]
pub struct CqTrace {
    /// Address of the kernel's `ib_cq`; another CQ may have it after this one is gone.
    pub cq: u64,
    /// Process that created it; 0 where not known.
    pub tgid: u32,
    /// Address of the program's `struct ibv_cq`.
    pub user_handle: u64,
    /// What `rdma resource show cq` prints as `cqn`; `None` where not known.
    pub restrack_id: Option<u32>,
    /// Address of its completion channel in the kernel; 0: it has none, or not known.
    pub channel: u64,
    /// CQEs that it holds; `None` where not known.
    pub depth: Option<u32>,
    /// When it was created; `None`: before the trace.
    pub created_ns: Option<u64>,
    /// When it was destroyed; `None`: it lived on.
    pub destroyed_ns: Option<u64>,
    /// Completion events: runs of the handler.
    pub events: u64,
    /// What became of them, as far as it is decided.
    pub outcomes: Outcomes,
    /// Events whose handler was called by a process or a thread of the kernel, not from an interrupt, softirq, tasklet or work item.
    pub from_process: u64,
    /// Threads that were woken by its events.
    pub waiters: BTreeSet<u32>,
    /// Threads that read its events.
    pub readers: BTreeSet<u32>,
    /// Durations, in the order of [`Stage::ALL`].
    pub stages: [Times; Stage::ALL.len()],
    /// CQEs posted (drivers that show them: soft-RoCE).
    pub cqes: u64,
    /// CQEs that carried an error.
    pub error_cqes: u64,
    /// CQEs posted after the last event.
    pub cqes_since_event: u64,
    /// Times armed (drivers whose arming enters the kernel: soft-RoCE).
    pub arms: u64,
    /// Times armed while CQEs lay in it that were not polled.
    pub arms_over_unread: u64,
    /// Armed, and no event since.
    pub is_armed: bool,
    /// Last event, `CLOCK_MONOTONIC` ns; 0 without one.
    pub last_event_ns: u64,
    /// Last CQE, where shown.
    pub last_cqe_ns: Option<u64>,
    /// Errors that the driver reported: time and `enum ib_event_type` (0: CQ error).
    pub errors: Vec<(u64, u32)>,
    /// Since the last look.
    pub interval: Interval,
}

impl CqTrace {
    /// Durations of one stage.
    pub fn times(&self, stage: Stage) -> &Times {
        &self.stages[stage as usize]
    }

    /// Records one duration.
    pub(super) fn record(&mut self, stage: Stage, from_ns: u64, to_ns: u64) {
        self.stages[stage as usize].record(from_ns, to_ns);
        match stage {
            Stage::HandlerToRun => self.interval.handler_to_run.record(from_ns, to_ns),
            Stage::RunToRead => self.interval.run_to_read.record(from_ns, to_ns),
            Stage::HandlerToRead => self.interval.handler_to_read.record(from_ns, to_ns),
            _ => {}
        }
    }

    /// Counts an event and where its handler came from.
    pub(super) fn handler(&mut self, now: u64, origin: &Origin) {
        self.events += 1;
        self.interval.events += 1;
        (self.cqes_since_event, self.is_armed, self.last_event_ns) = (0, false, now);
        let begins = [
            (Stage::IrqToHandler, origin.irq.map(|(_, begin_ns)| begin_ns)),
            (Stage::SoftirqToHandler, origin.softirq_ns),
            (Stage::TaskletToHandler, origin.tasklet_ns),
            (Stage::WorkToHandler, origin.work_ns),
        ];
        for (stage, begin_ns) in begins {
            if let Some(begin_ns) = begin_ns {
                self.record(stage, begin_ns, now);
            }
        }
        match begins.iter().find_map(|(_, begin_ns)| *begin_ns) {
            Some(outermost_ns) => self.interval.origin.record(outermost_ns, now),
            None => self.from_process += 1,
        }
    }

    /// Whether the driver shows CQEs or arming, as the software drivers do.
    pub fn shows_cqes(&self) -> bool {
        self.cqes > 0 || self.arms > 0
    }

    /// Whether the kernel can tell how many CQEs were not polled: known of CQs that soft-RoCE armed.
    pub fn tells_unread(&self) -> bool {
        self.arms > 0
    }
}
