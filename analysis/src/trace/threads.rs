//! What is known of threads: whether each runs, wants to run or sleeps, and who woke it last.
use super::queue::Seq;
use std::collections::HashMap;

/// What a thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not seen yet.
    #[default]
    Unknown,
    /// On a CPU.
    Running,
    /// Woken or preempted: wants a CPU.
    Runnable,
    /// Asleep.
    Sleeping,
}

/// The wake-up of a thread by a completion event.
#[derive(Clone, Copy, Debug)]
pub struct Wake {
    /// Channel of the event.
    pub channel: u64,
    /// The event.
    pub seq: Seq,
    /// K6.
    pub waking_ns: u64,
    /// K7.
    pub wakeup_ns: Option<u64>,
    /// K8.
    pub run_ns: Option<u64>,
    /// What the thread was doing just before.
    pub before: State,
}

/// One thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thread {
    /// What it does.
    pub state: State,
    /// Since when.
    pub since_ns: u64,
    /// When it last left its CPU.
    pub left_ns: u64,
    /// Whether it left because it was preempted.
    pub was_preempted: bool,
    /// When it last got a CPU.
    pub run_ns: u64,
    /// When it was last woken, by whomever.
    pub waking_ns: u64,
    /// Its last wake-up by a completion event.
    pub wake: Option<Wake>,
    /// The channel that it read last.
    pub channel: u64,
}

/// All threads that were seen.
#[derive(Debug, Default)]
pub struct Threads(HashMap<u32, Thread>);

impl Threads {
    /// One thread, as far as known.
    pub fn get(&self, thread: u32) -> Thread {
        self.0.get(&thread).copied().unwrap_or_default()
    }

    /// One thread, to be changed.
    pub fn of(&mut self, thread: u32) -> &mut Thread {
        self.0.entry(thread).or_default()
    }

    /// The state in which a thread was found at `at_ns`; what was seen of it later counts more.
    pub fn found(&mut self, thread: u32, state: State, at_ns: u64) {
        let it = self.of(thread);
        if it.since_ns <= at_ns {
            (it.state, it.since_ns) = (state, at_ns);
            if state == State::Sleeping {
                it.left_ns = at_ns;
            }
        }
    }

    /// K6.
    pub fn waking(&mut self, thread: u32, now: u64, by: Option<(u64, Seq)>) {
        let it = self.of(thread);
        let before = it.state;
        if let Some((channel, seq)) = by {
            it.wake = Some(Wake { channel, seq, waking_ns: now, wakeup_ns: None, run_ns: None, before });
        }
        it.waking_ns = now;
        if before != State::Running {
            (it.state, it.since_ns) = (State::Runnable, now);
        }
    }

    /// K7.
    pub fn wakeup(&mut self, thread: u32, now: u64) {
        if let Some(wake) = self.0.get_mut(&thread).and_then(|it| it.wake.as_mut()).filter(|wake| wake.run_ns.is_none()) {
            wake.wakeup_ns.get_or_insert(now);
        }
    }

    /// K8: `left` leaves a CPU to `next`. Thread 0 is the idle one and is not kept.
    pub fn switch(&mut self, left: u32, next: u32, was_preempted: bool, now: u64) {
        if left != 0 {
            let it = self.of(left);
            // Woken on its way out: it does not sleep.
            let wants_to_run = was_preempted || (it.state == State::Running && it.waking_ns > it.run_ns && it.waking_ns > it.since_ns);
            it.state = if wants_to_run { State::Runnable } else { State::Sleeping };
            (it.since_ns, it.left_ns, it.was_preempted) = (now, now, was_preempted);
        }
        if next != 0 {
            let it = self.of(next);
            (it.state, it.since_ns, it.run_ns) = (State::Running, now, now);
            if let Some(wake) = &mut it.wake {
                wake.run_ns.get_or_insert(now);
            }
        }
    }

    /// Whether the thread is asleep, as far as known.
    pub fn is_asleep(&self, thread: u32) -> bool {
        self.get(thread).state == State::Sleeping
    }
}
