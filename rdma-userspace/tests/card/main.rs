//! Tests that run as root in one guest with an emulated ConnectX card, driven by the kernel's own mlx5 drivers (`cargo xtask test`): the
//! hardware half of the product. One module per area, one process per module.
//!
//! Every test is `#[ignore = "runs in the VM"]`. What a module needs besides lies in `tests/support/`, so that each file here is a module
//! with tests: xtask compares the two.

mod device;
mod ethernet_control;
mod event_path;
mod fire;

#[path = "../support"]
mod support {
    pub mod bundle;
    #[expect(dead_code, reason = "the tests on soft-RoCE need a part of their own")]
    pub mod program;
}
