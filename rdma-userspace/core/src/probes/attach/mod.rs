//! The programs of a plan in the kernel: loaded once, attached and detached as often as rounds need it, and read in between.
//!
//! [`probes`] is the whole of it, with [`config`] in and [`hook_state`] out. [`object`] is the BPF object, [`load`] brings its programs into
//! the kernel, [`typed`] those with typed arguments. What is recorded is chosen by [`tracking`]; [`drain`] reads the records,
//! [`counters`] and [`missed`] what was lost. [`clock`] proves that the kernel's stamps are the runner's.

mod bpf_calls;
mod clock;
mod config;
mod counters;
mod debug_log;
mod drain;
mod generator;
mod hook_state;
mod load;
mod missed;
mod object;
mod probes;
mod process;
mod syscalls;
mod tracked_sets;
mod tracking;
mod typed;
mod unread_cqes;

pub use clock::{ClockCheck, monotonic_ns};
pub use config::{AutoTrack, Config};
pub use counters::{KindLoss, Losses};
pub use drain::Drain;
pub use generator::Generator;
pub use hook_state::HookState;
pub use object::{has_object, object};
pub use probes::Probes;
pub use process::threads_of;
pub use syscalls::{SyscallCounter, syscall_name};
