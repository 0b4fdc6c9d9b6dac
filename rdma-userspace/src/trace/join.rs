//! From kernel records to one line per completion event: handler → waking → wakeup → run.
//!
//! Rules (docs/stages.md): a waking on the handler's CPU, after the handler began and before that CPU does something else that
//! is recorded, belongs to the handler. A handler whose waiter is already on a CPU, or already woken, needs no waking.

use std::collections::{BTreeMap, HashMap, HashSet};

use ebpf_probes::{Body, CompHandler, Event};
use hdrhistogram::Histogram;

/// Longest time that is recorded as itself, in nanoseconds; longer ones are counted as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Times of one stage over all events of a CQ.
pub type Times = Histogram<u64>;

/// What was seen of one CQ.
#[derive(Clone, Debug)]
pub struct CqTrace {
    /// Address of the program's `struct ibv_cq`.
    pub user_handle: u64,
    /// What `rdma resource show cq` prints as `cqn`; `None` where not known.
    pub restrack_id: Option<u32>,
    /// Address of the completion channel in the kernel.
    pub channel: u64,
    /// Completion events: runs of the handler.
    pub events: u64,
    /// Events that woke a sleeping thread, whole chain seen.
    pub woken: u64,
    /// Events that came while the waiter had been woken and did not run yet.
    pub runnable: u64,
    /// Events that came while the waiter was on a CPU.
    pub running: u64,
    /// Events without a chain: nobody waited, several threads may have, or records are missing.
    pub unresolved: u64,
    /// Threads that were woken.
    pub waiters: HashSet<u32>,
    /// Completion handler → waking.
    pub handler_to_waking: Times,
    /// Waking → activated on its CPU.
    pub waking_to_wakeup: Times,
    /// Activated → runs.
    pub wakeup_to_run: Times,
    /// Completion handler → the waiter runs; events of `woken` and `runnable`.
    pub handler_to_run: Times,
    /// CQEs posted (drivers that show them: soft-RoCE).
    pub cqes: u64,
    /// CQEs posted after the last event.
    pub cqes_since_event: u64,
    /// Last event, `CLOCK_MONOTONIC` ns.
    pub last_event_ns: u64,
    /// Last CQE, where shown.
    pub last_cqe_ns: Option<u64>,
}

impl CqTrace {
    fn new(handler: &CompHandler) -> Self {
        let times = || Times::new_with_bounds(1, LONGEST_NS, 3).expect("constant bounds are valid");
        CqTrace {
            user_handle: handler.user_handle,
            restrack_id: (handler.restrack_id != u32::MAX).then_some(handler.restrack_id),
            channel: handler.channel,
            events: 0,
            woken: 0,
            runnable: 0,
            running: 0,
            unresolved: 0,
            waiters: HashSet::new(),
            handler_to_waking: times(),
            waking_to_wakeup: times(),
            wakeup_to_run: times(),
            handler_to_run: times(),
            cqes: 0,
            cqes_since_event: 0,
            last_event_ns: 0,
            last_cqe_ns: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Running,
    /// Woken or preempted: wants a CPU.
    Runnable,
    Sleeping,
}

/// An event whose waiter does not run yet.
#[derive(Clone, Copy, Debug)]
struct Chain {
    cq: u64,
    handler_ns: u64,
    /// `None`: the waiter was runnable before.
    waking_ns: Option<u64>,
    wakeup_ns: Option<u64>,
}

#[derive(Debug)]
struct Thread {
    state: State,
    since_ns: u64,
    chains: Vec<Chain>,
}

/// The state of a trace.
#[derive(Debug)]
pub struct Join {
    tgid: u32,
    threads: HashMap<u32, Thread>,
    /// Handler that a CPU is in, as far as records tell.
    open: HashMap<u32, Chain>,
    cqs: BTreeMap<u64, CqTrace>,
}

impl Join {
    /// A trace of process `tgid` with these threads.
    pub fn new(tgid: u32, threads: &[u32]) -> Self {
        let mut join = Join { tgid, threads: HashMap::new(), open: HashMap::new(), cqs: BTreeMap::new() };
        for thread in threads {
            join.add_thread(*thread);
        }
        join
    }

    /// Adds a thread; true when it is new.
    pub fn add_thread(&mut self, thread: u32) -> bool {
        let mut is_new = false;
        self.threads.entry(thread).or_insert_with(|| {
            is_new = true;
            Thread { state: State::Unknown, since_ns: 0, chains: Vec::new() }
        });
        is_new
    }

    /// Tells the state in which a thread was found at `at_ns`.
    pub fn set_running(&mut self, thread: u32, is_running: Option<bool>, at_ns: u64) {
        let state = match is_running {
            Some(true) => State::Running,
            Some(false) => State::Sleeping,
            None => return,
        };
        self.set(thread, state, at_ns);
    }

    /// Takes the next record; records come in the order of their time.
    pub fn event(&mut self, event: &Event) {
        let (cpu, now) = (event.header.cpu, event.header.ts_ns);
        match event.body {
            Body::CompHandler(handler) if handler.owner_tgid == self.tgid => self.handler(cpu, now, &handler),
            Body::CompHandler(_) => self.close(cpu),
            Body::SchedWaking(wake) => self.waking(cpu, now, wake.target_pid),
            Body::SchedWakeup(wake) => {
                let thread = self.threads.get_mut(&wake.target_pid);
                for chain in thread.into_iter().flat_map(|thread| &mut thread.chains).filter(|chain| chain.waking_ns.is_some()) {
                    chain.wakeup_ns.get_or_insert(now);
                }
            }
            Body::SchedSwitch(switch) => {
                self.close(cpu);
                let left = if switch.preempted != 0 { State::Runnable } else { State::Sleeping };
                self.set(switch.prev_pid, left, now);
                self.runs(switch.next_pid, now);
            }
            Body::CqPost(post) => {
                if let Some(cq) = self.cqs.get_mut(&post.cq) {
                    cq.cqes += 1;
                    cq.cqes_since_event += 1;
                    cq.last_cqe_ns = Some(now);
                }
            }
            _ => {}
        }
    }

    fn handler(&mut self, cpu: u32, now: u64, handler: &CompHandler) {
        self.close(cpu);
        let cq = self.cqs.entry(handler.cq).or_insert_with(|| CqTrace::new(handler));
        cq.events += 1;
        cq.cqes_since_event = 0;
        cq.last_event_ns = now;
        let chain = Chain { cq: handler.cq, handler_ns: now, waking_ns: None, wakeup_ns: None };
        let waiter = Self::waiter(&self.threads, cq);
        let state = waiter.and_then(|waiter| self.threads.get(&waiter)).map(|thread| thread.state);
        match (state, waiter) {
            (Some(State::Running), _) => cq.running += 1,
            (Some(State::Runnable), Some(waiter)) => {
                self.threads.entry(waiter).and_modify(|thread| thread.chains.push(chain));
            }
            _ => drop(self.open.insert(cpu, chain)),
        }
    }

    /// The thread that waits on the CQ's channel, where only one can be meant.
    fn waiter(threads: &HashMap<u32, Thread>, cq: &CqTrace) -> Option<u32> {
        let mut candidates: Box<dyn Iterator<Item = u32>> =
            if cq.waiters.is_empty() { Box::new(threads.keys().copied()) } else { Box::new(cq.waiters.iter().copied()) };
        let first = candidates.next()?;
        candidates.next().is_none().then_some(first)
    }

    fn waking(&mut self, cpu: u32, now: u64, target: u32) {
        let Some(thread) = self.threads.get_mut(&target) else { return };
        thread.state = State::Runnable;
        thread.since_ns = now;
        if let Some(chain) = self.open.remove(&cpu) {
            if let Some(cq) = self.cqs.get_mut(&chain.cq) {
                cq.waiters.insert(target);
            }
            thread.chains.push(Chain { waking_ns: Some(now), ..chain });
        }
    }

    /// The CPU left its handler without a waking.
    fn close(&mut self, cpu: u32) {
        if let Some(chain) = self.open.remove(&cpu)
            && let Some(cq) = self.cqs.get_mut(&chain.cq)
        {
            cq.unresolved += 1;
        }
    }

    fn set(&mut self, thread: u32, state: State, now: u64) {
        if let Some(thread) = self.threads.get_mut(&thread).filter(|thread| thread.since_ns <= now) {
            thread.state = state;
            thread.since_ns = now;
        }
    }

    fn runs(&mut self, thread: u32, now: u64) {
        self.set(thread, State::Running, now);
        let Some(thread) = self.threads.get_mut(&thread) else { return };
        for chain in thread.chains.drain(..) {
            let Some(cq) = self.cqs.get_mut(&chain.cq) else { continue };
            record(&mut cq.handler_to_run, chain.handler_ns, now);
            match (chain.waking_ns, chain.wakeup_ns) {
                (Some(waking_ns), Some(wakeup_ns)) => {
                    cq.woken += 1;
                    record(&mut cq.handler_to_waking, chain.handler_ns, waking_ns);
                    record(&mut cq.waking_to_wakeup, waking_ns, wakeup_ns);
                    record(&mut cq.wakeup_to_run, wakeup_ns, now);
                }
                // A thread that was still on its CPU is woken without being queued anew: no wakeup is seen.
                (Some(waking_ns), None) => {
                    cq.woken += 1;
                    record(&mut cq.handler_to_waking, chain.handler_ns, waking_ns);
                }
                (None, _) => cq.runnable += 1,
            }
        }
    }

    /// Ends the trace: what is open stays unresolved.
    pub fn finish(mut self) -> Vec<CqTrace> {
        let open = self.open.drain().map(|(_, chain)| chain);
        let waiting = self.threads.drain().flat_map(|(_, thread)| thread.chains);
        for chain in open.chain(waiting) {
            if let Some(cq) = self.cqs.get_mut(&chain.cq) {
                cq.unresolved += 1;
            }
        }
        self.cqs.into_values().collect()
    }
}

fn record(times: &mut Times, from_ns: u64, to_ns: u64) {
    times.saturating_record(to_ns.saturating_sub(from_ns));
}

#[cfg(test)]
#[path = "join_tests.rs"]
mod tests;
