//! The drivers' own interrupt handlers and bottom halves: one small program per function, because a program does not learn which
//! function it was attached to (that needs a kernel of 5.15).

use aya_ebpf::macros::kprobe;
use aya_ebpf::programs::ProbeContext;
use ebpf_probes::config::NONE;
use ebpf_probes::{DriverEntry, Kind, Program};

use super::globals::IRQ_FILTER;
use super::hit::{Hit, now_ns};
use super::tracked;

/// Records an interrupt handler: argument 0 is the interrupt's number, argument 1 the cookie that the driver gave.
#[inline(always)]
fn handler(ctx: &ProbeContext, program: Program) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(program) else { return 0 };
    let (Some(irq), Some(object)) = (ctx.arg::<u32>(0), ctx.arg::<u64>(1)) else { return 0 };
    if IRQ_FILTER.load() == 0 || tracked::irq(irq) {
        hit.emit_at(ts_ns, Kind::DriverIrq, DriverEntry { object, irq, reserved: 0 });
    }
    0
}

/// Records a bottom half: the object is in the given argument.
#[inline(always)]
fn bottom_half(ctx: &ProbeContext, program: Program, argument: usize) -> u32 {
    let ts_ns = now_ns();
    let Some(hit) = Hit::of(program) else { return 0 };
    let Some(object) = ctx.arg::<u64>(argument) else { return 0 };
    hit.emit_at(ts_ns, Kind::DriverBottomHalf, DriverEntry { object, irq: NONE, reserved: 0 });
    0
}

macro_rules! handlers {
    ($($(#[$doc:meta])* $name:ident: $program:ident;)*) => { $(
        $(#[$doc])*
        #[kprobe]
        pub fn $name(ctx: ProbeContext) -> u32 {
            handler(&ctx, Program::$program)
        }
    )* };
}

macro_rules! bottom_halves {
    ($($(#[$doc:meta])* $name:ident: $program:ident, $argument:literal;)*) => { $(
        $(#[$doc])*
        #[kprobe]
        pub fn $name(ctx: ProbeContext) -> u32 {
            bottom_half(&ctx, Program::$program, $argument)
        }
    )* };
}

handlers! {
    /// `irq_int_handler(int irq, void *nh)`.
    mlx5_irq: Mlx5Irq;
    /// `mlx4_msi_x_interrupt(int irq, void *eq_ptr)`.
    mlx4_irq: Mlx4Irq;
    /// `irdma_ceq_handler(int irq, void *data)`.
    irdma_irq: IrdmaIrq;
    /// `irdma_irq_handler(int irq, void *data)`.
    irdma_irq_shared: IrdmaIrqShared;
    /// `bnxt_qplib_nq_irq(int irq, void *dev_instance)`.
    bnxt_irq: BnxtIrq;
    /// `efa_intr_msix_comp(int irq, void *data)`.
    efa_irq: EfaIrq;
    /// `erdma_intr_ceq_handler(int irq, void *data)`.
    erdma_irq: ErdmaIrq;
    /// `hns_roce_v2_msix_interrupt_eq(int irq, void *eq_ptr)`.
    hns_irq: HnsIrq;
    /// `mana_gd_intr(int irq, void *arg)`.
    mana_irq: ManaIrq;
    /// `qedr_irq_handler(int irq, void *handle)`.
    qedr_irq: QedrIrq;
    /// `t4_sge_intr_msix(int irq, void *cookie)`.
    cxgb4_irq: Cxgb4Irq;
    /// `pvrdma_intrx_handler(int irq, void *dev_id)`.
    pvrdma_irq: PvrdmaIrq;
}

bottom_halves! {
    /// `mlx5_cq_tasklet_cb(struct tasklet_struct *t)`.
    mlx5_bottom_half: Mlx5BottomHalf, 0;
    /// `mlx4_cq_tasklet_cb(struct tasklet_struct *t)`.
    mlx4_bottom_half: Mlx4BottomHalf, 0;
    /// `irdma_process_ceq(struct irdma_pci_f *rf, struct irdma_ceq *ceq)`.
    irdma_bottom_half: IrdmaBottomHalf, 1;
    /// `bnxt_qplib_service_nq(struct tasklet_struct *t)`.
    bnxt_bottom_half: BnxtBottomHalf, 0;
    /// `erdma_intr_ceq_task(unsigned long data)`.
    erdma_bottom_half: ErdmaBottomHalf, 0;
    /// `napi_rx_handler(struct napi_struct *napi, int budget)`.
    cxgb4_bottom_half: Cxgb4BottomHalf, 0;
}
