//! The measured runner: operations × completion modes on plain pinned threads.
//!
//! ```text
//! Params ─► Endpoint (QP, CQs, memory) ─► Worker (thread + watchdog) ─► round ─► samples and counters
//!                                            │
//!                         party (client operation or server answer) × mode (poll, event): monomorphised
//! ```
//! The order of a session: both sides create an endpoint, exchange [`PeerInfo`], connect, spawn a worker, and then run the same rounds;
//! the server's round is started first.
mod costs;
mod counters;
mod endpoint;
mod error;
mod modes;
mod monitor;
mod ops;
mod params;
mod payload;
mod rings;
mod round;
mod warmup;
mod worker;
mod wr_id;

pub use costs::{CostSpec, costs_need_server};
pub use counters::RoundStats;
pub use endpoint::{Endpoint, PeerInfo};
pub use error::RunnerError;
pub use params::{MAX_SAMPLES_PER_ROUND, MAX_SIZE_BYTES, Mode, OpKind, Params, Role};
pub use round::{RoundEnd, RoundFailure, RoundOutcome, RoundResult, RoundSpec};
pub use warmup::{Warmup, WarmupStep};
pub use worker::{CostsHandle, RoundHandle, Worker, WorkerConfig};
