//! The programs by area, and what they share.

mod clock;
mod cq_life;
mod driver_chain;
mod driver_comp;
mod generate;
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

use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::bpf_probe_read_kernel;
use aya_ebpf::programs::{ProbeContext, RawTracePointContext};

use globals::{TRAMPOLINE, TYPED};

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

/// As [`read`], for an object that an argument of the program leads to. Where the verifier knows its type this is one load.
#[inline(always)]
fn field<T: Copy>(base: u64, offset: u32) -> Option<T> {
    if TYPED.load() == 0 {
        return read(base, offset);
    }
    // SAFETY: the verifier has proven that `base` is a kernel object with such a field, and such loads cannot fault.
    Some(unsafe { core::ptr::read_volatile((base + u64::from(offset)) as *const T) })
}

/// Argument `n` of the function that was entered, by a kprobe or by a trampoline.
#[inline(always)]
fn argument(ctx: &ProbeContext, n: usize) -> Option<u64> {
    if TRAMPOLINE.load() == 0 {
        return ctx.arg(n);
    }
    Some(word(ctx, n))
}

/// Argument `n` of a raw tracepoint; a typed one wants all 8 bytes to be read.
#[inline(always)]
fn raw_argument(ctx: &RawTracePointContext, n: usize) -> u64 {
    word(ctx, n)
}

#[inline(always)]
fn word(ctx: &impl EbpfContext, n: usize) -> u64 {
    // SAFETY: the context of such programs is an array of words, one per argument; the verifier checks the index.
    unsafe { core::ptr::read_volatile(ctx.as_ptr().cast::<u64>().add(n)) }
}
