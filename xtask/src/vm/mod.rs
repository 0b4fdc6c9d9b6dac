//! Virtual machines with soft-RoCE or an emulated card: `cargo xtask vm`, and the same machinery for tests and the demo. docs/vm.md tells how
//! they are used.

mod accel;
mod apt;
mod card;
mod cli;
mod cpio;
mod emulator;
mod image;
mod job;
mod kernel;
mod modules;
mod qemu;
mod stale_code;
mod try_kvm;
mod watch;

pub use card::{Card, CardArgs, Device, Link};
pub use cli::{Command, run};
pub use job::{Guest, Job, boot};
pub use kernel::{Kernel, ensure as ensure_kernel, named as kernels_named};
pub use watch::{Deadlines, Seen};

/// Fetches what guests with this kernel need and is not on this machine yet: the kernel, and an emulator where the installed one
/// is too old.
pub fn fetch(kernel: &str) -> anyhow::Result<Kernel> {
    let kernel = ensure_kernel(kernel, false)?;
    emulator::Emulator::find()?;
    Ok(kernel)
}

/// Fetches the emulator of guests with an emulated card, where it is not on this machine yet.
pub fn fetch_for_card() -> anyhow::Result<()> {
    card::find_emulator().map(drop)
}
