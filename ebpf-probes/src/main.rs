//! The BPF programs: what each kernel hook records. Built for the BPF target only (`cargo xtask bpf`).
//!
//! One file per area under `bpf/`. Every program counts its hit, filters, and writes at most one record.
#![cfg_attr(target_arch = "bpf", no_std, no_main)]

#[cfg(target_arch = "bpf")]
mod bpf;

#[cfg(not(target_arch = "bpf"))]
fn main() {}

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo) -> ! {
    loop {}
}
