//! Finished numbers of the explanations: what the report hands on to printing. Nothing here computes or prints.
//!
//! All durations are nanoseconds. A value that cannot be stood behind is `None`, and printing says so.
mod breakdown;
mod bypass;
mod cause;
mod fire;
mod interference;
mod sides;
mod slow;

pub use breakdown::{Agreement, Band, Breakdown, StageStat};
pub use bypass::{Bypass, BypassCalls, SilentHook};
pub use cause::Cause;
pub use fire::{AbsentHook, Chains, Expected, Failure, FireReport, HookFired, Judgement, StageMedian, Step, StepSeen};
pub use interference::{Interference, OverlayItem, SlowCauses, Source};
pub use sides::{Place, SideLine, SidesTable, SlowPair, TwoSides};
pub use slow::{Culprit, SlowSample, SlowStage};
