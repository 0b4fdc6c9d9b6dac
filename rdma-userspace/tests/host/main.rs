//! Tests of the whole program and of its planner that need no guest, no device and no rights.

mod cli;
mod plans;

#[path = "../support"]
mod support {
    pub mod offsets_seen;
    pub mod plan_table;
}
