//! Events that lie in completion channels: a channel hands them out in the order in which they came.
use std::collections::{HashMap, VecDeque};

/// Events that are kept per channel; a program that never reads them may pile up more.
const PENDING_MAX: usize = 1 << 16;

/// Number of an event within the trace.
pub type Seq = u64;

/// An event that was not read yet.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// Its number.
    pub seq: Seq,
    /// Index of its CQ.
    pub cq: usize,
    /// K5.
    pub handler_ns: u64,
}

/// The channels by their address in the kernel.
#[derive(Debug, Default)]
pub struct Queues {
    channels: HashMap<u64, VecDeque<Pending>>,
    next: Seq,
}

impl Queues {
    /// Puts an event into its channel; also returns one that is given up because there are too many.
    pub fn push(&mut self, channel: u64, cq: usize, handler_ns: u64) -> (Seq, Option<Pending>) {
        let seq = self.next;
        self.next += 1;
        let queue = self.channels.entry(channel).or_default();
        queue.push_back(Pending { seq, cq, handler_ns });
        (seq, if queue.len() > PENDING_MAX { queue.pop_front() } else { None })
    }

    /// The event that a read of the channel returned.
    pub fn pop(&mut self, channel: u64) -> Option<Pending> {
        self.channels.get_mut(&channel)?.pop_front()
    }

    /// Takes out the events before `seq`: the channel was seen to be empty when that one came.
    pub fn stale(&mut self, channel: u64, seq: Seq) -> Vec<Pending> {
        let Some(queue) = self.channels.get_mut(&channel) else { return Vec::new() };
        let count = queue.iter().take_while(|pending| pending.seq < seq).count();
        queue.drain(..count).collect()
    }

    /// Takes out the events of a CQ that is being destroyed; returns how many there were.
    pub fn discard(&mut self, channel: u64, cq: usize) -> u64 {
        let Some(queue) = self.channels.get_mut(&channel) else { return 0 };
        let before = queue.len();
        queue.retain(|pending| pending.cq != cq);
        (before - queue.len()) as u64
    }

    /// Every event that is still in a channel.
    pub fn left(&self) -> impl Iterator<Item = &Pending> {
        self.channels.values().flatten()
    }
}
