//! What `rdmascope doctor --fire` finds of a device: which hooks fired, how many chains are whole, and what speaks against the device.
use crate::stages::StageId;
use capture::CompletionShape;
use ebpf_probes::Kind;
use serde::{Serialize, Serializer};
use std::fmt;

/// The judgement on the hooks of a device, from one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FireReport {
    /// The card is rdmascope's own emulated one.
    pub emulated_device: bool,
    /// Instructions of the machine are emulated: durations are the emulator's.
    pub emulated_cpu: bool,
    /// Kernel driver of the device.
    pub driver: String,
    /// How that driver comes from its interrupt to the handler; `None`: not known, so that only the steps after it are judged.
    pub shape: Option<CompletionShape>,
    /// Firmware version, as the device tells it; empty: it tells none.
    pub firmware: String,
    /// Board id, as the device tells it.
    pub board: Option<String>,
    /// Every row of the plan, in its order.
    pub hooks: Vec<HookFired>,
    /// From the interrupt to the thread.
    pub chains: Chains,
    /// Medians of the stages that were seen.
    pub stages: Vec<StageMedian>,
    /// Records that found no room on their way to the program.
    pub records_lost: u64,
    /// Probe hits that the kernel itself dropped; `None`: it does not tell.
    pub missed_probes: Option<u64>,
    /// What speaks against the device; empty: its hooks are proven.
    pub failures: Vec<Failure>,
}

/// One hook of the plan and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HookFired {
    /// Its name in the plan.
    pub hook: String,
    /// How it is attached, such as `kprobe` or `fentry`.
    pub kind: String,
    /// What it is attached to; `None`: absent.
    pub symbol: Option<String>,
    /// Times that it fired while attached; `None`: not counted, or absent.
    pub hits: Option<u64>,
    /// How often it must have fired.
    pub expected: Expected,
    /// What follows.
    pub judgement: Judgement,
}

/// How often a hook must have fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expected {
    /// At least so often: once for each sample whose path has it. More is no fault, for others on the machine use the same hook.
    AtLeast(u64),
    /// That depends on what else the machine does.
    Untold,
    /// This device's completions do not pass it.
    NotInPath,
}

/// The judgement on one hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "detail")]
pub enum Judgement {
    /// It fired as often as it must, or more often.
    AsExpected,
    /// It fired, and so many times less than it must.
    Fewer(u64),
    /// The other hook of this name fired instead: each event passes one of the two.
    OtherFired(String),
    /// It must fire and never did.
    Silent,
    /// It never fired, and for this reason that is right.
    SilentByDesign(String),
    /// It fired; how often it must cannot be told.
    Fired,
    /// It never fired, and nothing says that it must.
    NotSeen,
    /// Its hits were not counted.
    NotCounted,
    /// This kernel or this device does not have it, for this reason.
    Absent(String),
}

/// A step of the completion path, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Step {
    /// The completion interrupt.
    Interrupt,
    /// The driver's request for its bottom half.
    Request,
    /// The bottom half starts.
    BottomHalf,
    /// The driver's callback of the CQ.
    Callback,
    /// The completion handler of uverbs.
    Handler,
    /// The thread is about to be woken.
    Waking,
    /// The thread is runnable.
    Wakeup,
    /// The CPU switches to the thread.
    Switch,
}

/// How many samples have the whole path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chains {
    /// Traced samples.
    pub samples: u64,
    /// Those in which the thread slept until its completion.
    pub slept: u64,
    /// Of those that slept: their interrupt or its request came before the sample and served an earlier completion too, so that a step is
    /// missing which never was.
    pub earlier: u64,
    /// Of the other ones that slept: they have every step of the path.
    pub complete: u64,
    /// All steps.
    pub steps: Vec<StepSeen>,
}

/// One step over all chains that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StepSeen {
    /// The step.
    pub step: Step,
    /// Chains in which it is missing; `None`: the path of this device does not have it.
    pub missing: Option<u64>,
}

/// The median of one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StageMedian {
    /// The stage.
    pub stage: StageId,
    /// Samples in which it was seen.
    pub samples: u64,
    /// Its median over them, in ns; `None`: too few.
    pub p50_ns: Option<u64>,
}

/// Why a device's hooks are not proven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "because")]
pub enum Failure {
    /// So few samples slept that nothing follows.
    TooFewSlept {
        /// Chains that can be judged.
        judged: u64,
        /// So many it takes.
        needed: u64,
    },
    /// A hook that must fire did not.
    HookSilent {
        /// Its name.
        hook: String,
    },
    /// The path has a step for which no hook is attached.
    StepWithoutHook {
        /// The step.
        step: Step,
        /// The hooks that the plan would have had for it.
        hooks: Vec<AbsentHook>,
    },
    /// Too many chains are broken.
    ChainsIncomplete {
        /// Whole ones.
        complete: u64,
        /// Of so many.
        judged: u64,
        /// The step at which most of the others break: those that are found through it are missing with it.
        step: Step,
        /// So many break there.
        broken: u64,
        /// The hooks that give it.
        hooks: Vec<String>,
    },
}

/// A hook that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AbsentHook {
    /// Its name.
    pub hook: String,
    /// Why.
    pub why: String,
}

impl FireReport {
    /// Every hook that must fire did, and the chains are whole.
    pub fn is_proven(&self) -> bool {
        self.failures.is_empty()
    }
}

impl Chains {
    /// Chains that can be judged: of samples that slept and whose whole path lies within them.
    pub fn judged(&self) -> u64 {
        self.slept.saturating_sub(self.earlier)
    }
}

impl Step {
    /// All of them, in path order.
    pub const ALL: &'static [Step] =
        &[Step::Interrupt, Step::Request, Step::BottomHalf, Step::Callback, Step::Handler, Step::Waking, Step::Wakeup, Step::Switch];

    /// Its name, with the event of the stage model.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Interrupt => "K1 interrupt",
            Step::Request => "K3 request for the bottom half",
            Step::BottomHalf => "K4 bottom half",
            Step::Callback => "driver's callback",
            Step::Handler => "K5 completion handler",
            Step::Waking => "K6 waking",
            Step::Wakeup => "K7 wakeup",
            Step::Switch => "K8 switch to the thread",
        }
    }

    /// The kinds of records of which one must be there for it.
    pub const fn kinds(self) -> &'static [Kind] {
        match self {
            Step::Interrupt => &[Kind::IrqEntry],
            Step::Request => &[Kind::DriverEnqueue, Kind::WorkQueue],
            Step::BottomHalf => &[Kind::TaskletEntry, Kind::DriverBottomHalf, Kind::WorkStart],
            Step::Callback => &[Kind::DriverComp],
            Step::Handler => &[Kind::CompHandler],
            Step::Waking => &[Kind::SchedWaking],
            Step::Wakeup => &[Kind::SchedWakeup],
            Step::Switch => &[Kind::SchedSwitch],
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}
