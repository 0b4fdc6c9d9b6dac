//! The start-up check of the clock: run once by the loader, never attached.

use aya_ebpf::macros::{map, raw_tracepoint};
use aya_ebpf::maps::Array;
use aya_ebpf::programs::RawTracePointContext;
use ebpf_probes::Program;

use super::hit::{Hit, now_ns};

/// What the kernel's clock said.
#[map]
static CLOCK: Array<u64> = Array::with_max_entries(1, 0);

/// Stores the kernel's clock.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub fn clock_probe(_ctx: RawTracePointContext) -> i32 {
    let ts_ns = now_ns();
    let _ = Hit::of(Program::ClockProbe);
    let _ = CLOCK.set(0, ts_ns, 0);
    0
}
