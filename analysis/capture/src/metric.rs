//! What a latency figure measures.
use serde::{Deserialize, Serialize};

/// What a latency figure measures. Different metrics are never set side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// From before the post to the own completion of the same WR.
    PostToCqe,
    /// From before the post to the answer of the peer: a round trip.
    Rtt,
}
