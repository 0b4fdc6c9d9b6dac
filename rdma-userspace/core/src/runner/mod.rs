//! The measured runner: operations × completion modes on plain pinned threads.
//!
//! ```text
//! Params ─► Endpoint (QP, CQs, memory) ─► Worker (thread + watchdog) ─► round ─► samples and counters
//!                                            │
//!             step of an operation (client's or server's) × completion mode: one compiled loop each
//! ```
//! In the loop, `submit` posts work requests and `reap` finds their completions; `ops` says what each operation does with both.
//!
//! The order of a session: both sides create an endpoint, exchange [`PeerInfo`], connect, spawn a worker, and then run the same rounds;
//! the server's round is started first.
mod counters;
mod endpoint;
mod error;
mod memory;
mod monitor;
mod ops;
mod params;
mod payload;
mod poll_costs;
mod queues;
mod reap;
mod round;
mod step_error;
mod submit;
mod warmup;
mod watchdog;
mod worker;

pub use counters::RoundStats;
pub use endpoint::{Endpoint, PeerInfo};
pub use error::RunnerError;
pub use params::{MAX_SAMPLES_PER_ROUND, MAX_SIZE_BYTES, Params};
pub use poll_costs::{PollCostSpec, poll_costs_need_server};
pub use round::{RoundEnd, RoundFailure, RoundOutcome, RoundResult, RoundSpec};
pub use warmup::{Warmup, WarmupStep};
pub use worker::{PollCostsHandle, RoundHandle, Worker, WorkerConfig};
