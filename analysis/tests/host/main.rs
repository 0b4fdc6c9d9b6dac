//! Tests of the analysis from outside, one module per area: everything here runs on any host, without root, RDMA or eBPF.

mod captures;
mod damage;
mod docs;
mod fire;
mod hostile;
mod interleaved;
mod join;
mod older;
mod page;
mod pictures;
mod streams;
mod two_sides;
mod verdict;

#[path = "../../examples/sample_report/made_up.rs"]
mod made_up;
#[path = "../support/stream.rs"]
mod stream;
