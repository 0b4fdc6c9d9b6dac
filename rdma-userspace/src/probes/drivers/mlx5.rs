//! mlx5: interrupt → EQ → tasklet → driver callback → completion handler. Not testable without a card; attaches without one.

use ebpf_probes::{Kind, Program};

use super::{Candidate, Driver, Hook};

/// The driver.
pub const MLX5: Driver = Driver {
    name: "mlx5",
    modules: &["mlx5_ib", "mlx5_core"],
    contexts: "hard irq up to the tasklet, then softirq; argument 0 is a `mlx5_core_cq` inside the `ib_cq`'s allocation: the next completion \
               handler on that CPU tells which. Its `irqn` is the CQ's interrupt",
    tasklets: &["mlx5_cq_tasklet_cb"],
    works: &[],
    hooks: &[
        Hook {
            name: "K3 mlx5 CQ to bottom half",
            candidates: &[Candidate::with("mlx5_add_cq_to_tasklet", Program::Mlx5Enqueue, &[&["struct mlx5_core_cq *"]])],
            gives: &[Kind::DriverEnqueue],
            ..Hook::KPROBE
        },
        Hook {
            name: "mlx5 callback",
            candidates: &[Candidate::with("mlx5_ib_cq_comp", Program::Mlx5Comp, &[&["struct mlx5_core_cq *"]])],
            gives: &[Kind::DriverComp],
            ..Hook::KPROBE
        },
        Hook {
            name: "mlx5_ib_poll_cq (kernel consumers)",
            candidates: &[Candidate::with("mlx5_ib_poll_cq", Program::Mlx5PollCq, &[&["struct ib_cq *"]])],
            silence: Some(
                "kernel consumers only: it never runs for user-space verbs, so 0 hits is the right answer; no control possible without a card",
            ),
            ..Hook::KPROBE
        },
    ],
};
