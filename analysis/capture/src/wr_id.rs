//! The wr_id of every work request: unique within a capture, over rounds, workers, both directions and both ends.
//!
//! ```text
//! bits 63..48  worker      bit 47  receive queue      bit 46  server      bits 45..0  counter, from 1
//! ```
use crate::side::Side;

const WORKER_SHIFT: u32 = 48;
const RECEIVE_BIT: u64 = 1 << 47;
const SERVER_BIT: u64 = 1 << 46;
const COUNTER_MASK: u64 = SERVER_BIT - 1;

/// Makes the wr_ids of one endpoint. The counters belong to its rings, which never start again.
#[derive(Clone, Copy, Debug)]
pub struct WrIds {
    base: u64,
}

impl WrIds {
    /// Of one worker on one side.
    pub fn new(worker: u16, side: Side) -> Self {
        let server = if side == Side::Server { SERVER_BIT } else { 0 };
        Self { base: u64::from(worker) << WORKER_SHIFT | server }
    }

    /// wr_id of the send WR with this number, counted from 0. 2^46 of them last two years at a million per second.
    #[inline]
    pub fn send(self, number: u64) -> u64 {
        self.base | (number + 1) & COUNTER_MASK
    }

    /// wr_id of the receive WR with this number, counted from 0.
    #[inline]
    pub fn receive(self, number: u64) -> u64 {
        self.send(number) | RECEIVE_BIT
    }
}

/// What both ends of a ping-pong call a round trip: the wr_id of its send without the bits of queue and side. Both ends count their sends
/// from 1, so that the client's send and the server's answer of the same round trip differ in these bits only.
pub const fn of_round_trip(wr_id: u64) -> u64 {
    wr_id & !(RECEIVE_BIT | SERVER_BIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_work_requests_share_a_wr_id() {
        let mut seen = HashSet::new();
        for worker in [0, 1, 127, u16::MAX] {
            for side in [Side::Client, Side::Server] {
                let ids = WrIds::new(worker, side);
                for number in (0..1000).chain([(1 << 46) - 3, (1 << 46) - 2]) {
                    assert!(seen.insert(ids.send(number)));
                    assert!(seen.insert(ids.receive(number)));
                    assert_eq!(ids.send(number) >> 48, u64::from(worker));
                }
            }
        }
        assert!(!seen.contains(&0));
    }

    #[test]
    fn both_ends_call_a_round_trip_the_same() {
        let (client, server) = (WrIds::new(3, Side::Client), WrIds::new(3, Side::Server));
        assert_ne!(client.send(41), server.send(41));
        assert_eq!(of_round_trip(client.send(41)), of_round_trip(server.send(41)));
        assert_eq!(of_round_trip(client.send(41)), of_round_trip(client.receive(41)));
        assert_ne!(of_round_trip(client.send(41)), of_round_trip(client.send(42)));
        assert_ne!(of_round_trip(client.send(41)), of_round_trip(WrIds::new(4, Side::Client).send(41)));
    }
}
