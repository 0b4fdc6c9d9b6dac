//! The wr_id of every work request: unique within a capture, over rounds, workers, both directions and both ends.
//!
//! ```text
//! bits 63..48  worker      bit 47  receive queue      bit 46  server      bits 45..0  counter, from 1
//! ```
use super::params::Role;

const WORKER_SHIFT: u32 = 48;
const RECEIVE_BIT: u64 = 1 << 47;
const SERVER_BIT: u64 = 1 << 46;
const COUNTER_MASK: u64 = SERVER_BIT - 1;

/// Makes the wr_ids of one endpoint. The counters belong to its rings, which never start again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrIds {
    base: u64,
}

impl WrIds {
    pub fn new(worker: u16, role: Role) -> Self {
        let server = if role == Role::Server { SERVER_BIT } else { 0 };
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_work_requests_share_a_wr_id() {
        let mut seen = HashSet::new();
        for worker in [0, 1, 127, u16::MAX] {
            for role in [Role::Client, Role::Server] {
                let ids = WrIds::new(worker, role);
                for number in (0..1000).chain([(1 << 46) - 3, (1 << 46) - 2]) {
                    assert!(seen.insert(ids.send(number)));
                    assert!(seen.insert(ids.receive(number)));
                    assert_eq!(ids.send(number) >> 48, u64::from(worker));
                }
            }
        }
        assert!(!seen.contains(&0));
    }
}
