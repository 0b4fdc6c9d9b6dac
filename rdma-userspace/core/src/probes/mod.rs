//! The kernel side: decide what to attach ([`plan`]), attach, detach and read it ([`attach`]), on a thread of its own that alone holds the
//! rights to do so ([`thread`]). What a driver offers is data ([`drivers`]).
//!
//! The programs are in the `ebpf-probes` package; what each record means is in its library. More is in docs/probes.md.

pub mod attach;
pub mod drivers;
mod error;
pub mod plan;
mod rights;
pub mod thread;

pub use attach::{
    AutoTrack, ClockCheck, Config, Drain, Generator, HookState, KindLoss, Losses, Probes, SyscallCounter, has_object, monotonic_ns, object,
    syscall_name, threads_of,
};
pub use drivers::Arrival;
pub use error::ProbeError;
pub use plan::{DriverView, HookView, OffsetView, Plan, PlanView, PlannedDriver, PlannedHook, extract, offsets};
pub use thread::{ProbeSelection, ProbeSession, ProbeThread, RoundRecords};
