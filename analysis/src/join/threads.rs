//! The kernel threads of the path: what each is for, and how it came to run.
use super::context::same;
use super::window::Window;
use capture::manifest::KernelThread;
use ebpf_probes::{Body, Event, Irq, Switch, Wake};
use std::collections::BTreeMap;

/// What a kernel thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Handles this interrupt.
    Irq(u32),
    /// Runs softirqs that were put off (`ksoftirqd/N`, `ktimers/N`).
    Softirq,
    /// Polls network devices (`napi/…`, `backlog_napi/N`): there is no softirq around it.
    Napi,
}

/// What a kernel thread is for, by its name; `None` for a thread that is in no path.
pub fn duty_of(name: &str) -> Option<Duty> {
    if let Some(rest) = name.strip_prefix("irq/") {
        return rest.split('-').next()?.parse().ok().map(Duty::Irq);
    }
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if starts(&["ksoftirqd/", "ktimers/"]) {
        Some(Duty::Softirq)
    } else if starts(&["napi/", "backlog_napi/"]) {
        Some(Duty::Napi)
    } else {
        None
    }
}

/// The kernel threads whose scheduling was recorded.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    duties: BTreeMap<u32, Duty>,
    /// Interrupt handlers may run in threads: PREEMPT_RT, or threads of interrupts are known.
    forced: bool,
}

/// How a thread got its CPU: positions in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// It is about to be woken.
    pub waking: usize,
    /// Its CPU switches to it.
    pub switch: usize,
}

/// The interrupt behind an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    /// K1.
    pub entry: Option<usize>,
    /// The wake-up of the thread that handles it, where it does.
    pub thread: Option<Entry>,
}

impl Threads {
    /// From the manifest: the threads that it names, and whether the kernel is PREEMPT_RT.
    pub fn of(threads: &[KernelThread], realtime: bool) -> Threads {
        let duties: BTreeMap<u32, Duty> = threads.iter().filter_map(|thread| Some((thread.pid, duty_of(&thread.name)?))).collect();
        let forced = realtime || duties.values().any(|role| matches!(role, Duty::Irq(_)));
        Threads { duties, forced }
    }

    /// What the thread is for.
    pub fn duty(&self, pid: u32) -> Option<Duty> {
        self.duties.get(&pid).copied()
    }

    /// May interrupt handlers run in threads?
    pub fn forced(&self) -> bool {
        self.forced
    }

    /// How the softirq (or NAPI) thread that did `at` came to run since `since_ns`: the first wake-up after its last sleep. `None` where
    /// another thread did it, or where it was running all the time.
    pub fn softirq_entry(&self, window: &Window<'_>, at: usize, since_ns: u64) -> Option<Entry> {
        let pid = window.events[at].header.pid;
        if !matches!(self.duty(pid)?, Duty::Softirq | Duty::Napi) {
            return None;
        }
        let mut waking = None;
        for (position, event) in window.before(at).take_while(|(_, event)| event.header.ts_ns >= since_ns) {
            match event.body {
                Body::SchedWaking(Wake { target_pid, .. }) if target_pid == pid => waking = Some(position),
                // It fell asleep: what woke it before is over.
                Body::SchedSwitch(Switch { prev_pid, preempted: 0, .. }) if prev_pid == pid => break,
                _ => {}
            }
        }
        let waking = waking?;
        Some(Entry { waking, switch: switch_to(window, pid, waking, at)? })
    }

    /// The interrupt that led to the event at `at`: on top of the same context, or handled by the thread in which that happened.
    /// `irq`: its number where the event tells.
    pub fn interrupt(&self, window: &Window<'_>, at: usize, irq: Option<u32>, since_ns: u64) -> Interrupt {
        let header = &window.events[at].header;
        if let Some(Duty::Irq(own)) = self.duty(header.pid) {
            return self.threaded(window, at, own, since_ns);
        }
        let here = |event: &Event| same(&event.header, header) && event.header.cpu == header.cpu;
        let nested = entries(window, at, since_ns).find(|(_, event, number)| here(event) && irq.is_none_or(|irq| irq == *number));
        // The thread of an interrupt may not have been recorded: then only its number connects the two.
        let by_number = || entries(window, at, since_ns).find(|(.., number)| self.forced && irq == Some(*number));
        Interrupt { entry: nested.or_else(by_number).map(|(position, ..)| position), thread: None }
    }

    /// The handler runs in thread `irq/N-…`: the latest interrupt that woke it. A thread that ran already takes another interrupt along.
    fn threaded(&self, window: &Window<'_>, at: usize, irq: u32, since_ns: u64) -> Interrupt {
        let pid = window.events[at].header.pid;
        let mut last = None;
        for (entry, event, _) in entries(window, at, since_ns).filter(|(.., number)| *number == irq) {
            last = last.or(Some(entry));
            let waking = window
                .after(entry)
                .take_while(|(position, _)| *position < at)
                .take_while(|(_, later)| !matches!(later.body, Body::IrqEntry(Irq { irq: number, .. }) if number == irq))
                .find(|(_, later)| {
                    same(&later.header, &event.header)
                        && matches!(later.body, Body::SchedWaking(Wake { target_pid, .. }) if target_pid == pid)
                })
                .map(|(position, _)| position);
            let Some(waking) = waking else { continue };
            let Some(switch) = switch_to(window, pid, waking, at) else { continue };
            // The handler ran more than once since the thread came: the run that did this began with a later interrupt.
            let again = window
                .after(switch)
                .take_while(|(position, _)| *position < at)
                .filter(|(_, later)| later.header.pid == pid && matches!(later.body, Body::DriverIrq(_)));
            if again.count() > 1 {
                break;
            }
            return Interrupt { entry: Some(entry), thread: Some(Entry { waking, switch }) };
        }
        Interrupt { entry: last, thread: None }
    }
}

/// The interrupts before `at`, latest first, with their numbers.
fn entries<'a>(window: &Window<'a>, at: usize, since_ns: u64) -> impl Iterator<Item = (usize, &'a Event, u32)> {
    window.before(at).take_while(move |(_, event)| event.header.ts_ns >= since_ns).filter_map(|(position, event)| match event.body {
        Body::IrqEntry(Irq { irq, .. }) => Some((position, event, irq)),
        _ => None,
    })
}

/// The first switch to the thread between the two positions.
fn switch_to(window: &Window<'_>, pid: u32, after: usize, before: usize) -> Option<usize> {
    window
        .after(after)
        .take_while(|(position, _)| *position < before)
        .find(|(_, event)| matches!(event.body, Body::SchedSwitch(Switch { next_pid, .. }) if next_pid == pid))
        .map(|(position, _)| position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_kernel_thread_tells_its_role() {
        assert_eq!(duty_of("irq/25-virtio0-input.0"), Some(Duty::Irq(25)));
        assert_eq!(duty_of("irq/61-s-mlx5"), Some(Duty::Irq(61)));
        assert_eq!(duty_of("ksoftirqd/3"), Some(Duty::Softirq));
        assert_eq!(duty_of("ktimers/0"), Some(Duty::Softirq));
        assert_eq!(duty_of("backlog_napi/1"), Some(Duty::Napi));
        assert_eq!(duty_of("napi/eth0-8193"), Some(Duty::Napi));
        for other in ["irq/x", "kworker/0:1", "ksoftirqd", "", "irq/"] {
            assert_eq!(duty_of(other), None, "{other}");
        }
    }
}
