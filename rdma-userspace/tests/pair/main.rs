//! Tests between two guests (`cargo xtask test`): they run in guest b while guest a runs `rdmascope serve`; one process per module.
//!
//! Every test is `#[ignore = "runs in the VM"]`. What a module needs besides lies in `tests/support/`, so that each file here is a module
//! with tests: xtask compares the two.

mod delays;
mod sides;
mod truth;

#[path = "../support"]
#[expect(dead_code, reason = "the tests of one guest need more of it")]
mod support {
    pub mod injector;
    pub mod judge;
    pub mod program;
}
