//! The completion shape of a driver: how it comes from its completion interrupt to the completion handler.
//!
//! Whoever plans the probes knows the driver, and says the shape in the manifest. [`CompletionShape::of_older_capture`] is for captures
//! that were made before the manifest said it.
use crate::named::named;

named! {
    /// How a driver comes from its interrupt to the handler.
    pub enum CompletionShape: "completion shape" {
        /// A tasklet that serves an event queue or several.
        Tasklet = "tasklet",
        /// A tasklet, with a probe on the request for it and on the callback of every CQ (mlx5, mlx4).
        TaskletPerCq = "tasklet-per-cq",
        /// The handler is called in the interrupt itself.
        Direct = "direct",
        /// The handler is called from a NAPI poll.
        Napi = "napi",
        /// A work item; on kernels without it the interrupt itself.
        Work = "work",
        /// Software that calls the handler from wherever it is (soft-RoCE, siw): there is no interrupt to look for.
        Anywhere = "anywhere",
    }
}

/// The names that captures of schema version 1 may carry as the driver of a device: that of the bus function's driver, or of the RDMA
/// driver, as the kernel's link or libibverbs told it.
const OLDER_CAPTURES: &[(CompletionShape, &[&str])] = &[
    (CompletionShape::TaskletPerCq, &["mlx5_core", "mlx5_ib", "mlx4_core", "mlx4_ib"]),
    (CompletionShape::Direct, &["efa", "qedr", "qede", "mana", "mana_ib", "vmw_pvrdma"]),
    (CompletionShape::Napi, &["cxgb4", "iw_cxgb4"]),
    (CompletionShape::Work, &["hns3", "hns_roce_hw_v2", "hns-roce-hw-v2", "hfi1", "qib", "ib_qib"]),
    (CompletionShape::Tasklet, &["bnxt_en", "bnxt_re", "irdma", "ice", "i40e", "erdma"]),
    (CompletionShape::Anywhere, &["rdma_rxe", "siw"]),
];

impl CompletionShape {
    /// The shape behind a driver's name in a capture that does not say its shape. `None`: not known, and nothing is guessed.
    pub fn of_older_capture(driver: &str) -> Option<CompletionShape> {
        OLDER_CAPTURES.iter().find(|(_, names)| names.contains(&driver)).map(|(shape, _)| *shape)
    }
}

#[cfg(test)]
mod tests {
    use super::CompletionShape;

    #[test]
    fn drivers_have_their_shape_by_either_name() {
        for (driver, shape) in [
            ("mlx5_core", Some(CompletionShape::TaskletPerCq)),
            ("mlx4_ib", Some(CompletionShape::TaskletPerCq)),
            ("efa", Some(CompletionShape::Direct)),
            ("qede", Some(CompletionShape::Direct)),
            ("cxgb4", Some(CompletionShape::Napi)),
            ("hns3", Some(CompletionShape::Work)),
            ("siw", Some(CompletionShape::Anywhere)),
            ("bnxt_en", Some(CompletionShape::Tasklet)),
            ("something new", None),
            ("mlx5_of_another_kind", None),
            ("", None),
        ] {
            assert_eq!(CompletionShape::of_older_capture(driver), shape, "{driver}");
        }
    }
}
