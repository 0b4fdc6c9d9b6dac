//! mlx4: as mlx5, with its own names.

use ebpf_probes::{Kind, Program};

use super::{Candidate, Driver, Hook};

/// The driver.
pub const MLX4: Driver = Driver {
    name: "mlx4",
    modules: &["mlx4_ib", "mlx4_core"],
    contexts: "hard irq up to the tasklet, then softirq; argument 0 is the `mlx4_cq` inside the `ib_cq`'s allocation",
    tasklets: &["mlx4_cq_tasklet_cb"],
    works: &[],
    hooks: &[
        Hook {
            name: "K3 mlx4 CQ to bottom half",
            candidates: &[Candidate::with("mlx4_add_cq_to_tasklet", Program::Mlx4Enqueue, &[&["struct mlx4_cq *"]])],
            gives: &[Kind::DriverEnqueue],
            ..Hook::KPROBE
        },
        Hook {
            name: "mlx4 callback",
            candidates: &[Candidate::with("mlx4_ib_cq_comp", Program::Mlx4Comp, &[&["struct mlx4_cq *"]])],
            gives: &[Kind::DriverComp],
            ..Hook::KPROBE
        },
    ],
};
