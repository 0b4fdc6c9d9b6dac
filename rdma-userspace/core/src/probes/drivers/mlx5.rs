//! mlx5: irq → event queue → tasklet → driver callback → completion handler. Seen firing on an emulated card; attaches without one.
//!
//! `mlx5_core_cq.irqn` gives the CQ's interrupt exactly. A completion handler outside of the tasklet comes from an error path.

use capture::CompletionShape;
use ebpf_probes::{Kind, Program};

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

/// The driver.
pub const MLX5: Driver = Driver {
    name: "mlx5",
    modules: &["mlx5_ib"],
    also: &["mlx5_core"],
    device_drivers: &[],
    provider: Some(Provider::One("mlx5")),
    completion: Some(CompletionShape::TaskletPerCq),
    mark: "mlx5_ib_cq_comp",
    tried: Tried::FiresEmulated,
    chains: &[Chain {
        has: &[],
        lacks: &[],
        text: "K1 (K1b `irq_int_handler`) → K3 `mlx5_add_cq_to_tasklet` [hard irq] → K4 `mlx5_cq_tasklet_cb` → `mlx5_ib_cq_comp` → K5 [softirq]",
    }],
    contexts: "hard irq up to the tasklet, then softirq; argument 0 is a `mlx5_core_cq` inside the `ib_cq`'s allocation: the next completion \
               handler on that CPU tells which. Its `irqn` is the CQ's interrupt",
    tasklets: &["mlx5_cq_tasklet_cb"],
    works: &[],
    hooks: &[
        Hook {
            name: "K1b mlx5 interrupt handler",
            candidates: &[
                Candidate::with("irq_int_handler", Program::Mlx5Irq, super::IRQ_ARGUMENTS),
                Candidate::with("mlx5_irq_int_handler", Program::Mlx5Irq, super::IRQ_ARGUMENTS),
            ],
            ..Hook::IRQ
        },
        Hook {
            name: "K3 mlx5 CQ to bottom half",
            candidates: &[Candidate::with("mlx5_add_cq_to_tasklet", Program::Mlx5Enqueue, &[&["struct mlx5_core_cq *"]])],
            gives: &[Kind::DriverEnqueue],
            ..Hook::STEP
        },
        Hook {
            name: "K4 mlx5 tasklet",
            candidates: &[Candidate::with("mlx5_cq_tasklet_cb", Program::Mlx5BottomHalf, super::TASKLET_ARGUMENT)],
            ..Hook::TASKLET
        },
        Hook {
            name: "mlx5 callback",
            candidates: &[Candidate::with("mlx5_ib_cq_comp", Program::Mlx5Comp, &[&["struct mlx5_core_cq *"]])],
            ..Hook::COMP
        },
        Hook {
            name: "mlx5_ib_poll_cq (kernel consumers)",
            candidates: &[Candidate::with("mlx5_ib_poll_cq", Program::Mlx5PollCq, &[&["struct ib_cq *"]])],
            silence: Some(
                "kernel consumers only: it never runs for user-space verbs, so 0 hits is the right answer; only a kernel consumer would be its control, and a run has none",
            ),
            for_every_device: true,
            ..Hook::KPROBE
        },
    ],
};
