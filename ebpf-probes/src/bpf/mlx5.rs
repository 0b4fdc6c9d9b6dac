//! mlx5: a CQ goes to the bottom half, the driver's callback runs, and the poll function that only kernel consumers call.

use aya_ebpf::macros::kprobe;
use aya_ebpf::programs::ProbeContext;
use ebpf_probes::{Kind, Program};

use super::globals::{OFF_MLX5_CQN, OFF_MLX5_IRQN};
use super::hit::Hit;
use super::mlx4::driver_cq;

/// `mlx5_add_cq_to_tasklet(struct mlx5_core_cq *cq, struct mlx5_eqe *eqe)`.
#[kprobe]
pub fn mlx5_enqueue(ctx: ProbeContext) -> u32 {
    driver_cq(&ctx, Program::Mlx5Enqueue, Kind::DriverEnqueue, &OFF_MLX5_CQN, &OFF_MLX5_IRQN)
}

/// `mlx5_ib_cq_comp(struct mlx5_core_cq *cq, struct mlx5_eqe *eqe)`.
#[kprobe]
pub fn mlx5_comp(ctx: ProbeContext) -> u32 {
    driver_cq(&ctx, Program::Mlx5Comp, Kind::DriverComp, &OFF_MLX5_CQN, &OFF_MLX5_IRQN)
}

/// `mlx5_ib_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)`: never runs for user-space verbs, so it is only counted.
#[kprobe]
pub fn mlx5_poll_cq(_ctx: ProbeContext) -> u32 {
    let _ = Hit::of(Program::Mlx5PollCq);
    0
}
