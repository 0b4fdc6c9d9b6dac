//! Tests that run as root in one guest with soft-RoCE (`cargo xtask test`); one module per area, one process per module.
//!
//! Every test is `#[ignore = "runs in the VM"]`. What a module needs besides lies in `tests/support/`, so that each file here is a module
//! with tests: xtask compares the two.

mod bypass;
mod costs;
mod delay_inside;
mod delays;
mod drivers;
mod fire;
mod interference;
mod observer;
mod plan;
mod probes;
mod rights;
mod session;
mod soft_roce;
mod trace;
mod verbs;

#[path = "../support"]
mod support {
    pub mod bundle;
    #[expect(dead_code, reason = "the tests between two guests need a part of their own")]
    pub mod injector;
    pub mod judge;
    pub mod offsets_seen;
    pub mod pingpong;
    pub mod plan_table;
    pub mod program;
    pub mod slow_reader;
}
