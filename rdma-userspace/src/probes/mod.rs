//! The kernel side: decide what to attach ([`Plan`]), attach and detach ([`Probes`]), read the records ([`Drain`]).
//!
//! The programs are in the `ebpf-probes` package; what each record means is in its library. docs/probes.md tells the rest.

mod attach;
mod choose;
mod clock;
mod counters;
mod cq_look;
mod debug;
mod drain;
pub mod drivers;
mod error;
mod extract;
mod generator;
mod guardian;
mod level;
mod load;
mod missed;
mod object;
mod observer;
pub mod offsets;
pub mod plan;
mod process;
mod sys;
mod syscalls;
mod tracked;
mod typed;
mod view;

pub use attach::{AutoTrack, Config, HookState, Probes};
pub use clock::{ClockCheck, monotonic_ns};
pub use counters::{KindLoss, Losses};
pub use drain::Drain;
pub use drivers::Arrival;
pub use error::ProbeError;
pub use extract::extract;
pub use generator::Generator;
pub use guardian::Guardian;
pub use level::{Level, UnknownLevel};
pub use object::{has_object, object};
pub use observer::{Harvest, Observer, Wanted};
pub use plan::{Plan, PlannedDriver, PlannedHook};
pub use process::threads_of;
pub use syscalls::{SyscallCounter, syscall_name};
pub use view::{DriverView, HookView, OffsetView, View};
