//! The two halves of a round trip, and what both sides call it.
use crate::join::chain::Chain;
use crate::stages::Point;
use capture::{Sample, wr_id};
use std::collections::BTreeMap;

/// What both sides call one round trip: its round, and the wr_id without the bits of side and queue.
pub(super) type Key = (u32, u64);

/// The samples of one side, by their key.
pub(super) type ByKey<T> = BTreeMap<Key, T>;

/// The key of a sample.
pub(super) fn key(round: u32, begin_wr_id: u64) -> Key {
    (round, wr_id::of_round_trip(begin_wr_id))
}

/// The client's half of a round trip.
pub(super) struct Client {
    pub key: Key,
    pub traced: bool,
    pub sample: Sample,
    /// R2: its request's last packet left.
    pub sent_ns: Option<u64>,
    /// The answer's packet reached this machine.
    pub arrived_ns: Option<u64>,
    /// H1 or R6 of its receive.
    pub cqe_ns: Option<u64>,
    /// Records are missing.
    pub lost: bool,
}

/// The server's half.
pub(super) struct Server {
    pub sample: Sample,
    pub sent_ns: Option<u64>,
    pub arrived_ns: Option<u64>,
    pub cqe_ns: Option<u64>,
    pub lost: bool,
}

/// The first sign of the packet that ends a sample (or, on hardware, of its completion) on this machine.
pub(super) fn arrival(chain: &Chain) -> Option<(Point, u64)> {
    chain.points().find(|(point, _)| *point >= Point::Irq && *point < Point::WaitEnd && *point != Point::PostReturn)
}
