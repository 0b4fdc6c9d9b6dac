//! From kernel records to the fate of every completion event: handler → waking → wakeup → run → read.
//!
//! Rules (docs/trace.md): events leave a channel in the order in which they came. A waking on the handler's CPU, before that CPU does
//! something else that is recorded, is the handler's. An event whose reader is on its CPU, or woken already, needs no waking. A thread that
//! sleeps on a channel proves it empty: events that are older cannot lie in it any more, their read was not seen.
use super::cpu::Cpus;
use super::cq::{CqTrace, Stage};
use super::queue::{Pending, Queues, Seq};
use super::threads::{State, Threads};
use capture::manifest::KnownCq;
use ebpf_probes::config::NONE;
use ebpf_probes::{Body, CompHandler, CqCreate, Event, EventRead};
use std::collections::HashMap;

/// The state of a trace.
#[derive(Debug, Default)]
pub struct Join {
    threads: Threads,
    queues: Queues,
    /// What CPUs are in, and what interrupts cost.
    pub cpus: Cpus,
    /// Handler that a CPU is in, as far as records tell: channel, event, index of the CQ.
    open: HashMap<u32, (u64, Seq, usize)>,
    cqs: Vec<CqTrace>,
    by_address: HashMap<u64, usize>,
    /// Reads of events that were queued before the trace began.
    pub early_reads: u64,
    /// Not all probes were attached before this, `CLOCK_MONOTONIC` ns: events and reads before it are half a story and are left out.
    pub begin_ns: u64,
}

impl Join {
    /// CQs that existed before the trace, as the kernel lists them: without an address until their first event.
    pub fn know(&mut self, known: &KnownCq) {
        let has = |cq: &CqTrace| cq.tgid == known.tgid && cq.restrack_id == Some(known.restrack_id) && cq.destroyed_ns.is_none();
        if !self.cqs.iter().any(has) {
            let restrack_id = Some(known.restrack_id);
            self.cqs.push(CqTrace { tgid: known.tgid, restrack_id, depth: known.depth, ..CqTrace::default() });
        }
    }

    /// The state in which a thread was found at `at_ns`: running (or wanting to), or asleep.
    pub fn found_thread(&mut self, thread: u32, is_running: bool, at_ns: u64) {
        self.threads.found(thread, if is_running { State::Running } else { State::Sleeping }, at_ns);
    }

    /// Every CQ that was seen, of whichever process.
    pub fn cqs(&self) -> &[CqTrace] {
        &self.cqs
    }

    /// Starts a new interval.
    pub fn clear_interval(&mut self) {
        for cq in &mut self.cqs {
            let it = &mut cq.interval;
            (it.events, it.cqes) = (0, 0);
            for times in [&mut it.origin, &mut it.handler_to_run, &mut it.run_to_read, &mut it.handler_to_read] {
                times.clear();
            }
        }
    }

    /// Whether the thread is asleep, as far as known.
    pub fn is_asleep(&self, thread: u32) -> bool {
        self.threads.is_asleep(thread)
    }

    /// The CQ that has this address now.
    pub fn at(&self, address: u64) -> Option<&CqTrace> {
        self.by_address.get(&address).and_then(|index| self.cqs.get(*index))
    }

    /// Takes the next record; records come in the order of their time.
    pub fn event(&mut self, event: &Event) {
        let (cpu, now, thread) = (event.header.cpu, event.header.ts_ns, event.header.pid);
        match event.body {
            Body::CompHandler(_) | Body::EventRead(_) if now < self.begin_ns => {}
            Body::CompHandler(handler) => self.handler(cpu, now, thread, &handler),
            Body::SchedWaking(wake) => self.waking(cpu, now, wake.target_pid),
            Body::SchedWakeup(wake) => self.threads.wakeup(wake.target_pid, now),
            Body::SchedSwitch(switch) => {
                self.open.remove(&cpu);
                self.threads.switch(switch.prev_pid, switch.next_pid, switch.preempted != 0, now);
            }
            Body::EventRead(read) => {
                self.open.remove(&cpu);
                self.read(now, thread, &read);
            }
            Body::CqCreate(create) => self.create(now, event.header.tgid, &create),
            Body::CqDestroy(destroy) => self.destroy(destroy.cq, now),
            Body::CqArm(arm) => {
                self.open.remove(&cpu);
                if let Some(cq) = self.cq_mut(arm.cq) {
                    cq.arms += 1;
                    cq.is_armed = true;
                    cq.arms_over_unread += u64::from(arm.unread != 0 && arm.unread != NONE);
                }
            }
            Body::CqError(error) => {
                if let Some(cq) = self.cq_mut(error.cq) {
                    cq.errors.push((now, error.event));
                }
            }
            Body::CqPost(post) => {
                self.open.remove(&cpu);
                if let Some(cq) = self.cq_mut(post.cq) {
                    cq.cqes += 1;
                    cq.interval.cqes += 1;
                    cq.cqes_since_event += 1;
                    cq.error_cqes += u64::from(post.status != 0);
                    cq.last_cqe_ns = Some(now);
                }
            }
            Body::TaskletEntry(_) | Body::DriverBottomHalf(_) | Body::WorkStart(_) | Body::SoftirqExit(_) => {
                self.open.remove(&cpu);
                self.cpus.event(event);
            }
            _ => self.cpus.event(event),
        }
    }

    fn cq_mut(&mut self, address: u64) -> Option<&mut CqTrace> {
        self.by_address.get(&address).and_then(|index| self.cqs.get_mut(*index))
    }

    fn create(&mut self, now: u64, tgid: u32, create: &CqCreate) {
        self.destroy(create.cq, now);
        self.by_address.insert(create.cq, self.cqs.len());
        self.cqs.push(CqTrace {
            cq: create.cq,
            tgid,
            user_handle: create.user_handle,
            restrack_id: (create.restrack_id != NONE).then_some(create.restrack_id),
            channel: create.channel,
            depth: (create.depth != NONE).then_some(create.depth),
            created_ns: Some(now),
            ..CqTrace::default()
        });
    }

    fn destroy(&mut self, address: u64, now: u64) {
        let Some(index) = self.by_address.remove(&address) else { return };
        let cq = &mut self.cqs[index];
        cq.destroyed_ns = Some(now);
        cq.outcomes.discarded += self.queues.discard(cq.channel, index);
    }

    /// The CQ of a handler, made known where this is its first event.
    fn cq_of(&mut self, now: u64, handler: &CompHandler) -> usize {
        let restrack_id = (handler.restrack_id != NONE).then_some(handler.restrack_id);
        if let Some(index) = self.by_address.get(&handler.cq).copied() {
            let cq = &self.cqs[index];
            if (cq.user_handle, cq.restrack_id) == (handler.user_handle, restrack_id) {
                return index;
            }
            // Another CQ has the address of one whose end was not seen.
            self.destroy(handler.cq, now);
        }
        let is_listed = |cq: &CqTrace| cq.cq == 0 && cq.tgid == handler.owner_tgid && cq.restrack_id == restrack_id;
        let index = match self.cqs.iter().position(is_listed) {
            Some(index) => index,
            None => {
                self.cqs.push(CqTrace { tgid: handler.owner_tgid, restrack_id, ..CqTrace::default() });
                self.cqs.len() - 1
            }
        };
        let cq = &mut self.cqs[index];
        (cq.cq, cq.user_handle, cq.channel) = (handler.cq, handler.user_handle, handler.channel);
        self.by_address.insert(handler.cq, index);
        index
    }

    fn handler(&mut self, cpu: u32, now: u64, thread: u32, handler: &CompHandler) {
        let index = self.cq_of(now, handler);
        let origin = self.cpus.origin(cpu, thread);
        self.cqs[index].handler(now, &origin);
        let (seq, given_up) = self.queues.push(handler.channel, index, now);
        if let Some(given_up) = given_up {
            self.cqs[given_up.cq].outcomes.unread += 1;
        }
        self.open.insert(cpu, (handler.channel, seq, index));
    }

    fn waking(&mut self, cpu: u32, now: u64, target: u32) {
        let by = self.open.get(&cpu).copied();
        let was_asleep = self.threads.get(target).state != State::Running;
        self.threads.waking(target, now, by.map(|(channel, seq, _)| (channel, seq)));
        let Some((channel, seq, index)) = by else { return };
        if was_asleep {
            for stale in self.queues.stale(channel, seq) {
                self.cqs[stale.cq].outcomes.unmatched += 1;
            }
        }
        self.cqs[index].waiters.insert(target);
    }

    fn read(&mut self, now: u64, thread: u32, read: &EventRead) {
        if read.result <= 0 {
            return;
        }
        let known = self.threads.get(thread);
        let channel = match (read.channel, known.wake) {
            // The read began before the probe: the channel that woke the thread, or that it read last.
            (0, Some(wake)) => wake.channel,
            (0, None) => known.channel,
            (channel, _) => channel,
        };
        self.threads.of(thread).channel = channel;
        match self.queues.pop(channel) {
            Some(pending) => self.picked_up(now, thread, &pending),
            None => self.early_reads += 1,
        }
    }

    /// An event reached its reader.
    fn picked_up(&mut self, now: u64, thread: u32, pending: &Pending) {
        let (reader, handler_ns) = (self.threads.get(thread), pending.handler_ns);
        let cq = &mut self.cqs[pending.cq];
        cq.readers.insert(thread);
        cq.record(Stage::HandlerToRead, handler_ns, now);
        let outcomes = &mut cq.outcomes;
        if let Some(wake) = reader.wake.filter(|wake| wake.seq == pending.seq) {
            match wake.run_ns {
                Some(run_ns) => {
                    outcomes.woken += 1;
                    cq.record(Stage::HandlerToWaking, handler_ns, wake.waking_ns);
                    if let Some(wakeup_ns) = wake.wakeup_ns {
                        cq.record(Stage::WakingToWakeup, wake.waking_ns, wakeup_ns);
                        cq.record(Stage::WakeupToRun, wakeup_ns, run_ns);
                    }
                    cq.record(Stage::HandlerToRun, handler_ns, run_ns);
                    cq.record(Stage::RunToRead, run_ns, now);
                }
                // Not known to have left its CPU: woken on its way to sleep.
                None if wake.before != State::Sleeping => {
                    outcomes.woken_on_cpu += 1;
                    cq.record(Stage::HandlerToWaking, handler_ns, wake.waking_ns);
                }
                None => outcomes.incomplete += 1,
            }
            return;
        }
        if reader.run_ns <= handler_ns {
            outcomes.running += 1;
            return;
        }
        if reader.left_ns > handler_ns {
            // On its CPU when the event came; it left and got one again since.
            outcomes.running += 1;
            return;
        }
        // It got a CPU after the handler. Where it had gone to sleep before that, somebody must have woken it.
        let slept = !reader.was_preempted && reader.left_ns > 0;
        if slept && reader.waking_ns <= reader.left_ns {
            outcomes.incomplete += 1;
            return;
        }
        if slept && reader.waking_ns > handler_ns {
            outcomes.elsewhere += 1;
        } else {
            outcomes.runnable += 1;
        }
        cq.record(Stage::HandlerToRun, handler_ns, reader.run_ns);
        cq.record(Stage::RunToRead, reader.run_ns, now);
    }

    /// Ends the trace: events that are still in a channel count as unread.
    pub fn end(&mut self) {
        for pending in self.queues.left() {
            self.cqs[pending.cq].outcomes.unread += 1;
        }
        self.queues = Queues::default();
    }
}

#[cfg(test)]
mod tests;
