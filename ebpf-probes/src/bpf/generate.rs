//! Writes records as fast as it is run: what the bench of the reader drains. Never attached.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use ebpf_probes::config::GENERATED_PER_RUN;
use ebpf_probes::{CqPost, Kind, Program};

use super::hit::Hit;
use super::raw_argument;

/// Writes [`GENERATED_PER_RUN`] records of the longest kind; argument 0 is the number of the first, which their `wr_id` tells.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub fn generate(ctx: RawTracePointContext) -> i32 {
    let first = raw_argument(&ctx, 0);
    let Some(hit) = Hit::of(Program::Generate) else { return 0 };
    for index in 0..GENERATED_PER_RUN {
        hit.emit(Kind::CqPost, CqPost { wr_id: first.wrapping_add(u64::from(index)), ..CqPost::default() });
    }
    0
}
