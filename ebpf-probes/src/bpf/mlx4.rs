//! mlx4: a CQ goes to the bottom half, the driver's callback runs.

use aya_ebpf::macros::kprobe;
use aya_ebpf::programs::ProbeContext;
use ebpf_probes::config::NONE;
use ebpf_probes::{DriverCq, Kind, Program};

use super::globals::{OFF_MLX4_CQN, OFF_MLX4_IRQ, known};
use super::hit::{Hit, now_ns};
use super::read;

/// `mlx4_add_cq_to_tasklet(struct mlx4_cq *cq)`.
#[kprobe]
pub fn mlx4_enqueue(ctx: ProbeContext) -> u32 {
    mlx4_cq(&ctx, Program::Mlx4Enqueue, Kind::DriverEnqueue)
}

/// `mlx4_ib_cq_comp(struct mlx4_cq *cq)`.
#[kprobe]
pub fn mlx4_comp(ctx: ProbeContext) -> u32 {
    mlx4_cq(&ctx, Program::Mlx4Comp, Kind::DriverComp)
}

/// Records the driver's CQ object in argument 0. `mlx4_cq.irq` has 16 bits.
#[inline(always)]
fn mlx4_cq(ctx: &ProbeContext, program: Program, kind: Kind) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(program) else { return 0 };
    let Some(driver_cq) = ctx.arg::<u64>(0) else { return 0 };
    let cqn = known(&OFF_MLX4_CQN).and_then(|offset| read(driver_cq, offset)).unwrap_or(NONE);
    let irq = known(&OFF_MLX4_IRQ).and_then(|offset| read::<u16>(driver_cq, offset)).map_or(NONE, u32::from);
    hit.emit_at(ts_ns, kind, DriverCq { driver_cq, cqn, irq });
    0
}
