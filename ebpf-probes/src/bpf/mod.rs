//! The programs by area, and what they share.

mod clock;
mod driver_chain;
mod driver_comp;
mod globals;
mod hit;
mod interference;
mod irq;
mod mlx4;
mod mlx5;
mod net;
mod rdmavt;
mod rxe;
mod rxe_packet;
mod sched;
mod siw;
mod syscalls;
mod tracked;
mod uverbs;
mod work;

use aya_ebpf::helpers::bpf_probe_read_kernel;

/// Licence of the object: helpers such as `bpf_probe_read_kernel` are for GPL-compatible programs.
#[unsafe(no_mangle)]
#[unsafe(link_section = "license")]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

/// Reads a `T` from kernel memory at `base + offset`; `None` when the address is not readable.
#[inline(always)]
fn read<T: Copy>(base: u64, offset: u32) -> Option<T> {
    // SAFETY: the helper checks the address itself and fails instead of faulting; every `T` used is a plain integer or array.
    unsafe { bpf_probe_read_kernel((base + u64::from(offset)) as *const T) }.ok()
}
