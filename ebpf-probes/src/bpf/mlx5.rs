//! mlx5: a CQ goes to the bottom half, the driver's callback runs, and the poll function that only kernel consumers call.

use aya_ebpf::macros::kprobe;
use aya_ebpf::programs::ProbeContext;
use ebpf_probes::config::NONE;
use ebpf_probes::{DriverCq, Kind, Program};

use super::globals::{OFF_MLX5_CQN, OFF_MLX5_IRQN, known};
use super::hit::{Hit, now_ns};
use super::read;

/// `mlx5_add_cq_to_tasklet(struct mlx5_core_cq *cq, struct mlx5_eqe *eqe)`.
#[kprobe]
pub fn mlx5_enqueue(ctx: ProbeContext) -> u32 {
    mlx5_cq(&ctx, Program::Mlx5Enqueue, Kind::DriverEnqueue)
}

/// `mlx5_ib_cq_comp(struct mlx5_core_cq *cq, struct mlx5_eqe *eqe)`.
#[kprobe]
pub fn mlx5_comp(ctx: ProbeContext) -> u32 {
    mlx5_cq(&ctx, Program::Mlx5Comp, Kind::DriverComp)
}

/// Records the driver's CQ object in argument 0, with the device's number of it and the interrupt of its event queue.
#[inline(always)]
fn mlx5_cq(ctx: &ProbeContext, program: Program, kind: Kind) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(program) else { return 0 };
    let Some(driver_cq) = ctx.arg::<u64>(0) else { return 0 };
    let cqn = known(&OFF_MLX5_CQN).and_then(|offset| read(driver_cq, offset)).unwrap_or(NONE);
    let irq = known(&OFF_MLX5_IRQN).and_then(|offset| read(driver_cq, offset)).unwrap_or(NONE);
    hit.emit_at(ts_ns, kind, DriverCq { driver_cq, cqn, irq });
    0
}

/// `mlx5_ib_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)`: never runs for user-space verbs, so it is only counted.
#[kprobe]
pub fn mlx5_poll_cq(_ctx: ProbeContext) -> u32 {
    let _ = Hit::of(Program::Mlx5PollCq);
    0
}
