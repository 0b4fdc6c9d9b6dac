//! The inferred join: the rule for hardware, which shows no wr_id to the kernel.
//!
//! It knows the CQ (process and handle), the handler calls on it (K5), when the thread read an event and whether it slept. Events
//! of a channel are read in the order in which they were queued, so handler calls wait in a FIFO: a read that did not sleep took
//! the oldest; a read that slept found the FIFO empty, so its event is the first handler call since the read began. The first CQE
//! polled after that is the trigger's. After a sample whose CQE was found without a read the runner empties the channel: handler
//! calls until then are gone. It never looks at R6 or at a wr_id.
use super::facts::RunFacts;
use super::window::Window;
use capture::Sample;
use ebpf_probes::{Body, Event};
use std::collections::VecDeque;

/// Handler calls kept at most: events that nobody reads must not grow the memory.
const FIFO_MAX: usize = 1 << 16;

/// State of the join over the samples.
#[derive(Debug, Default)]
pub struct Inferred {
    queue: VecDeque<Call>,
    /// The last sample ended without a read: the runner emptied the channel before the next one began.
    emptied: bool,
    mutant: bool,
    held_back: Option<Call>,
}

/// One handler call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number in the stream of events.
    pub id: u64,
    /// Its time.
    pub ts_ns: u64,
}

impl Inferred {
    /// A join whose FIFO is off by one: it gives every read the event of the read before. The check that compares the joins must
    /// fail on it, which proves that the check can fail.
    pub fn mutant() -> Inferred {
        Inferred { mutant: true, ..Inferred::default() }
    }

    /// Takes note of an event as it streams by.
    pub fn observe(&mut self, id: u64, event: &Event, facts: &RunFacts) {
        if let Body::CompHandler(body) = &event.body
            && facts.is_our_cq(body)
        {
            if self.queue.len() == FIFO_MAX {
                self.queue.pop_front();
            }
            self.queue.push_back(Call { id, ts_ns: event.header.ts_ns });
        }
    }

    /// The handler call that ended the sample's last blocking read; `None` when it had none, or when the call is not recorded.
    pub fn trigger(&mut self, window: &Window<'_>, sample: &Sample, facts: &RunFacts) -> Option<Call> {
        if std::mem::take(&mut self.emptied) {
            self.drop_until(sample.post_begin_ns);
        }
        self.emptied = sample.arm_ns != 0 && sample.wait_end_ns == 0;
        if sample.wait_end_ns == 0 {
            return None;
        }
        let slept_until = window.woken_in(facts.tid, sample.wait_begin_ns, sample.wait_end_ns);
        let found = match slept_until {
            Some(switch) => {
                let until = window.events[switch].header.ts_ns;
                self.drop_until(sample.wait_begin_ns);
                self.pop_until(until)
            }
            None => {
                let mut last = None;
                for _ in 0..sample.waits.max(1) {
                    last = self.pop_until(sample.wait_end_ns).or(last);
                }
                last
            }
        };
        if self.mutant { std::mem::replace(&mut self.held_back, found) } else { found }
    }

    fn drop_until(&mut self, before_ns: u64) {
        while self.queue.front().is_some_and(|call| call.ts_ns < before_ns) {
            self.queue.pop_front();
        }
    }

    fn pop_until(&mut self, until_ns: u64) -> Option<Call> {
        if self.queue.front()?.ts_ns <= until_ns { self.queue.pop_front() } else { None }
    }
}
