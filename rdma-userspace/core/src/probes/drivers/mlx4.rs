//! mlx4: as mlx5, with its own names; the same from 5.4 to 7.3. With INTx instead of MSI-X (`mlx4_interrupt`) K1b stays silent.

use capture::CompletionShape;
use ebpf_probes::{Kind, Program};

use super::{Candidate, Chain, Driver, Hook, Provider, Tried};

const CQ: &[&[&str]] = &[&["struct mlx4_cq *"]];

/// The driver.
pub const MLX4: Driver = Driver {
    name: "mlx4",
    modules: &["mlx4_ib"],
    also: &["mlx4_core"],
    device_drivers: &[],
    provider: Some(Provider::One("mlx4")),
    completion: Some(CompletionShape::TaskletPerCq),
    mark: "mlx4_ib_cq_comp",
    tried: Tried::Attaches,
    chains: &[Chain {
        has: &[],
        lacks: &[],
        text: "K1 (K1b `mlx4_msi_x_interrupt`) → K3 `mlx4_add_cq_to_tasklet` [hard irq] → K4 `mlx4_cq_tasklet_cb` → `mlx4_ib_cq_comp` → K5 [softirq]",
    }],
    contexts: "hard irq up to the tasklet, then softirq; argument 0 is the `mlx4_cq` inside the `ib_cq`'s allocation, its `irq` the CQ's interrupt",
    tasklets: &["mlx4_cq_tasklet_cb"],
    works: &[],
    hooks: &[
        Hook {
            name: "K1b mlx4 interrupt handler",
            candidates: &[Candidate::with("mlx4_msi_x_interrupt", Program::Mlx4Irq, super::IRQ_ARGUMENTS)],
            ..Hook::IRQ
        },
        Hook {
            name: "K3 mlx4 CQ to bottom half",
            candidates: &[Candidate::with("mlx4_add_cq_to_tasklet", Program::Mlx4Enqueue, CQ)],
            gives: &[Kind::DriverEnqueue],
            ..Hook::STEP
        },
        Hook {
            name: "K4 mlx4 tasklet",
            candidates: &[Candidate::with("mlx4_cq_tasklet_cb", Program::Mlx4BottomHalf, super::TASKLET_ARGUMENT)],
            ..Hook::TASKLET
        },
        Hook { name: "mlx4 callback", candidates: &[Candidate::with("mlx4_ib_cq_comp", Program::Mlx4Comp, CQ)], ..Hook::COMP },
    ],
};
