//! What the stream itself teaches of a hardware driver's CQs: which inner object belongs to which `ib_cq`, and which request for the
//! bottom half each callback answers.
//!
//! A driver's callback (`mlx5_ib_cq_comp`) is given its own object; the completion handler that it calls is given the `ib_cq`. The handler
//! that follows a callback in the same context gives the pair. An interrupt may put another callback between the two, so pairs are voted on.
use super::inferred::Call;
use ebpf_probes::{Body, CompHandler, DriverCq, Event};
use std::collections::{BTreeMap, VecDeque};

/// Entries kept at most of each table: what nobody asks for must not grow the memory.
const KEPT_MAX: usize = 1 << 14;

/// A CQ as its driver knows it: its object and the device's own number (a driver may tell one of them only).
pub type DriverKey = (u64, u32);

/// One run of a driver's callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callback {
    /// Its number in the stream.
    pub id: u64,
    /// The CQ.
    pub driver_cq: DriverKey,
    /// The first request for the bottom half since the callback before: what put the CQ on the list.
    pub request: Option<Call>,
}

/// State over the stream.
#[derive(Debug, Default)]
pub struct Learned {
    /// Callback that no handler has followed yet, by context.
    open: BTreeMap<(u32, u32), DriverKey>,
    /// `ib_cq` → (driver's object, votes).
    pairs: BTreeMap<u64, (DriverKey, u32)>,
    /// Driver's object → the request that waits for its callback.
    requests: BTreeMap<DriverKey, Call>,
    callbacks: VecDeque<Callback>,
}

impl Learned {
    /// Takes note of an event as it streams by.
    pub fn observe(&mut self, id: u64, event: &Event) {
        let header = &event.header;
        let context = (header.pid, if header.pid == 0 { header.cpu } else { 0 });
        match event.body {
            Body::DriverEnqueue(body) => {
                let driver_cq = key(&body);
                bound(&mut self.requests);
                // One that is on the list already is not put there again.
                self.requests.entry(driver_cq).or_insert(Call { id, ts_ns: header.ts_ns });
            }
            Body::DriverComp(body) => {
                let driver_cq = key(&body);
                bound(&mut self.open);
                self.open.insert(context, driver_cq);
                let request = self.requests.remove(&driver_cq);
                self.remember(Callback { id, driver_cq, request });
            }
            Body::CompHandler(CompHandler { cq, .. }) => {
                match self.open.remove(&context) {
                    Some(driver_cq) => self.vote(cq, driver_cq),
                    // No callback was recorded: a request that waited for it is answered all the same.
                    None => self.answer(id, cq),
                }
            }
            _ => {}
        }
    }

    fn vote(&mut self, cq: u64, driver_cq: DriverKey) {
        bound(&mut self.pairs);
        let (known, votes) = self.pairs.entry(cq).or_insert((driver_cq, 0));
        if *known == driver_cq {
            *votes = votes.saturating_add(1).min(1000);
        } else if *votes == 0 {
            (*known, *votes) = (driver_cq, 1);
        } else {
            *votes -= 1;
        }
    }

    fn answer(&mut self, id: u64, cq: u64) {
        if let Some(driver_cq) = self.driver_cq(cq)
            && let Some(request) = self.requests.remove(&driver_cq)
        {
            self.remember(Callback { id, driver_cq, request: Some(request) });
        }
    }

    fn remember(&mut self, callback: Callback) {
        if self.callbacks.len() == KEPT_MAX {
            self.callbacks.pop_front();
        }
        self.callbacks.push_back(callback);
    }

    /// The driver's object of an `ib_cq`.
    pub fn driver_cq(&self, cq: u64) -> Option<DriverKey> {
        self.pairs.get(&cq).map(|(driver_cq, _)| *driver_cq)
    }

    /// The callback with this number; where the callback was not recorded, the handler with this number that answered a request.
    pub fn callback(&self, id: u64) -> Option<Callback> {
        let at = self.callbacks.partition_point(|callback| callback.id < id);
        self.callbacks.get(at).copied().filter(|callback| callback.id == id)
    }

    /// Forgets the callbacks before this number.
    pub fn forget_before(&mut self, id: u64) {
        while self.callbacks.front().is_some_and(|callback| callback.id < id) {
            self.callbacks.pop_front();
        }
    }
}

/// The CQ that a record of a driver names.
pub fn key(body: &DriverCq) -> DriverKey {
    (body.driver_cq, body.cqn)
}

fn bound<K: Ord + Copy, V>(table: &mut BTreeMap<K, V>) {
    if table.len() >= KEPT_MAX {
        table.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebpf_probes::Header;

    fn event(cpu: u32, pid: u32, body: Body) -> Event {
        Event { header: Header { cpu, pid, ..Header::default() }, body }
    }

    fn comp(driver_cq: u64) -> Body {
        Body::DriverComp(DriverCq { driver_cq, cqn: 1, irq: 5 })
    }

    fn handler(cq: u64) -> Body {
        Body::CompHandler(CompHandler { cq, ..CompHandler::default() })
    }

    #[test]
    fn a_kernel_cq_between_callback_and_handler_does_not_unlearn_the_pair() {
        let mut learned = Learned::default();
        for id in 0..3 {
            learned.observe(id, &event(1, 0, comp(10)));
            learned.observe(id, &event(1, 0, handler(20)));
        }
        assert_eq!(learned.driver_cq(20), Some((10, 1)));
        learned.observe(3, &event(1, 0, comp(10)));
        learned.observe(4, &event(1, 0, comp(99)));
        learned.observe(5, &event(1, 0, handler(20)));
        assert_eq!(learned.driver_cq(20), Some((10, 1)));
        // Another CPU's idle task is another context.
        learned.observe(6, &event(0, 0, comp(77)));
        learned.observe(7, &event(1, 0, handler(20)));
        assert_eq!(learned.driver_cq(20), Some((10, 1)));
    }

    #[test]
    fn a_new_cq_at_an_old_address_is_learned_anew() {
        let mut learned = Learned::default();
        learned.observe(0, &event(1, 0, comp(10)));
        learned.observe(1, &event(1, 0, handler(20)));
        for id in 2..4 {
            learned.observe(id, &event(1, 0, comp(11)));
            learned.observe(id, &event(1, 0, handler(20)));
        }
        assert_eq!(learned.driver_cq(20), Some((11, 1)));
    }

    #[test]
    fn a_callback_answers_the_first_request_since_the_one_before() {
        let enqueue = |driver_cq| Body::DriverEnqueue(DriverCq { driver_cq, cqn: 1, irq: 5 });
        let mut learned = Learned::default();
        for (id, body) in [(0, enqueue(10)), (1, enqueue(10)), (2, enqueue(11)), (3, comp(10)), (4, enqueue(10)), (5, comp(11))] {
            learned.observe(id, &event(1, 0, body));
        }
        assert_eq!(learned.callback(3).and_then(|it| it.request).map(|it| it.id), Some(0));
        assert_eq!(learned.callback(5).and_then(|it| it.request).map(|it| it.id), Some(2));
        assert_eq!(learned.callback(4), None);
        // A callback that was not recorded: the handler answers for it.
        learned.observe(6, &event(1, 0, handler(20)));
        learned.observe(7, &event(1, 0, enqueue(11)));
        learned.observe(8, &event(1, 0, handler(20)));
        assert_eq!(learned.driver_cq(20), Some((11, 1)));
        assert_eq!(learned.callback(8).and_then(|it| it.request).map(|it| it.id), Some(7));
        learned.forget_before(4);
        assert_eq!(learned.callback(3), None);
    }
}
