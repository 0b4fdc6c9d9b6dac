//! Who or what was in the way in the stage that grew: a machine-readable culprit and the words for it.
use super::Judge;
use super::evidence::{Evidence, Half, Worker};
use crate::correlate::Outcome;
use crate::correlate::flags::Flag;
use crate::interference::totals::{EXPLAINED, PARTLY};
use crate::interference::{Taken, What, names};
use crate::model::Culprit;
use crate::stages::Point;
use crate::units::ns;

/// The stage that a cause is asked for.
#[derive(Clone, Debug)]
pub(super) struct Grown {
    /// Its name.
    pub name: &'static str,
    /// By how much it is longer than its median.
    pub growth_ns: u64,
    /// Its duration.
    pub duration_ns: u64,
    /// Where it lies: (from, to) on the clock, and the milestone at its end.
    pub parts: Vec<(u64, u64, Point)>,
}

/// The culprit and the words for it; an empty text says nothing beyond the stage's name.
pub(super) fn find(judge: &Judge<'_>, grown: &Grown, outcome: &Outcome, evidence: &Evidence) -> (Culprit, String) {
    let own = grown.parts.iter().any(|(_, _, to)| evidence.is_own(*to));
    if own && let Some(found) = taken(judge, grown, evidence) {
        return found;
    }
    let flags = outcome.joined.flags;
    match grown.name {
        "run queue" | "activation and run queue" | "activation" | "idle exit" => waited(judge, grown, outcome, evidence),
        "notify delay" | "bottom-half wait" | "bottom half" | "hard irq" | "irq thread" => {
            late_softirq(judge, grown, evidence.bottom_half.as_ref(), flags.has(Flag::BhDeferred))
        }
        "irq thread wake-up" | "softirq thread wake-up" => thread(judge, grown, evidence),
        "rx interrupt" | "rx softirq" => late_softirq(judge, grown, evidence.receive.as_ref(), flags.has(Flag::BhDeferred)),
        "requester workqueue" => worker(judge, grown, evidence.sender),
        "task workqueue" => worker(judge, grown, evidence.receiver),
        "wire + peer" if flags.has(Flag::Loopback) && own => seen_nothing(judge),
        "wire + peer" => plain("peer", "the peer or the network", "the time passed on the wire or at the peer"),
        "device + network" | "post, device + network" => {
            plain("peer", "the device, the network or the peer", "the time passed in the device, on the wire or at the peer")
        }
        "retransmission" => plain("retransmission", "a lost packet", "a packet was sent again after a timeout or a lost answer"),
        "poll" | "event read without sleep" => plain(
            "own_code",
            "the thread's own code",
            "the thread had its CPU all the time: its own code between the wake-up and the poll, or a stall that leaves no event",
        ),
        _ if own => seen_nothing(judge),
        _ => plain("not_recorded", "not recorded", ""),
    }
}

fn plain(kind: &str, name: &str, text: &str) -> (Culprit, String) {
    (Culprit { kind: kind.into(), name: name.into(), pid: None, taken_ns: None }, text.into())
}

fn seen_nothing(judge: &Judge<'_>) -> (Culprit, String) {
    let missing = judge.not_seen();
    if missing.is_empty() {
        return plain("none_seen", "no kernel cause seen", "no kernel cause seen (hypervisor, SMI, memory or the device)");
    }
    let text = format!("no cause was seen, but {} were not recorded", missing.join(", "));
    plain("not_recorded", "not recorded", &text)
}

/// What took the thread's CPU within the stage, when that is a part of its growth that counts.
fn taken(judge: &Judge<'_>, grown: &Grown, evidence: &Evidence) -> Option<(Culprit, String)> {
    let within = |(from, to, _): &(u64, u64, Point)| evidence.overlay.within(*from, *to).collect::<Vec<_>>();
    let inside: Vec<(Taken, u64)> = grown.parts.iter().flat_map(within).collect();
    let sum: u64 = inside.iter().map(|(_, part)| *part).sum::<u64>().min(grown.duration_ns);
    let mut by_source: Vec<(What, u64, u32)> = Vec::new();
    for (item, part) in &inside {
        match by_source.iter_mut().find(|(what, ..)| judge.names.source(*what) == judge.names.source(item.what)) {
            Some((_, ns, times)) => (*ns, *times) = (*ns + part, *times + 1),
            None => by_source.push((item.what, *part, 1)),
        }
    }
    let (what, most_ns, times) = by_source.into_iter().max_by_key(|(_, ns, _)| *ns)?;
    let share = sum as f64 / grown.growth_ns.max(1) as f64;
    if share < PARTLY {
        return None;
    }
    let mut text = told(judge, what, most_ns, times);
    if let What::Preempted { by, last } = what
        && by != last
    {
        text = format!("{text} (in the end {} ran)", judge.names.thread(last));
    }
    if sum > most_ns + most_ns / 20 {
        text = format!("{text}; with all else that took its CPU {}", ns(sum as f64));
    }
    if share < EXPLAINED {
        text = format!("{text}; no kernel cause seen for the rest");
    }
    let name = match what {
        What::Preempted { by, .. } => judge.names.comm(by).unwrap_or_else(|| judge.names.thread(by)),
        other => judge.names.source(other),
    };
    Some((Culprit { kind: what.kind().into(), name, pid: what.pid(), taken_ns: Some(most_ns) }, text))
}

fn told(judge: &Judge<'_>, what: What, taken_ns: u64, times: u32) -> String {
    let long = ns(taken_ns as f64);
    let often = if times > 1 { format!(" ({times} times)") } else { String::new() };
    match what {
        What::Preempted { by, .. } => format!("{} had its CPU for {long}{often}", judge.names.thread(by)),
        What::Migrated { from, to, by } => {
            let by = judge.names.thread(by);
            format!("it was moved from CPU {from} to CPU {to} and ran nowhere for {long}{often}; {by} got the CPU that it left")
        }
        What::Blocked => format!("it slept in the kernel for {long}{often}"),
        other => format!("{} took its CPU for {long}{often}", judge.names.source(other)),
    }
}

/// The thread was due and did not have its CPU.
fn waited(judge: &Judge<'_>, grown: &Grown, outcome: &Outcome, evidence: &Evidence) -> (Culprit, String) {
    let culprit = &outcome.joined.culprit;
    let moved = evidence.moved_to.last().map_or(String::new(), |cpu| format!("; it was moved to CPU {cpu}"));
    // In a run queue the thread stood behind another one, also where its CPU had been idle before.
    let queued = matches!(grown.name, "run queue" | "activation and run queue");
    match (culprit.before, culprit.idle_exit_cpu) {
        (Some((pid, comm)), idle) if pid != 0 && (queued || idle.is_none()) => {
            let own = if outcome.joined.flags.has(Flag::Observer) { ", a thread of this tool" } else { "" };
            let (comm, long) = (names::text(&comm), ns(grown.duration_ns as f64));
            let text = format!("behind {comm} (thread {pid}{own}), which left the CPU {long} after the thread was due{moved}");
            (Culprit { kind: "run_queue".into(), name: comm, pid: Some(pid), taken_ns: Some(grown.duration_ns) }, text)
        }
        (_, Some(cpu)) => {
            let name = format!("idle exit of CPU {cpu}");
            plain("idle_exit", &name, &format!("CPU {cpu} was idle and had to leave its idle state{moved}"))
        }
        (Some(_), None) => plain("idle_exit", "an idle CPU", &format!("its CPU was idle{moved}")),
        (None, None) => seen_nothing(judge),
    }
}

fn late_softirq(judge: &Judge<'_>, grown: &Grown, half: Option<&Half>, deferred: bool) -> (Culprit, String) {
    let Some(half) = half else { return plain("not_recorded", "not recorded", "") };
    let mut said = Vec::new();
    let mut culprit =
        Culprit { kind: "bottom_half".into(), name: format!("softirqs of CPU {}", half.cpu), pid: None, taken_ns: Some(grown.duration_ns) };
    if deferred || half.pid != half.cause_pid {
        let thread = match judge.names.comm(half.pid) {
            Some(comm) => format!("{comm} (thread {})", half.pid),
            None => format!("thread {} (ksoftirqd, or what ran next)", half.pid),
        };
        said.push(format!("the softirq was deferred to {thread} on CPU {}", half.cpu));
        culprit = Culprit { name: format!("softirq deferred on CPU {}", half.cpu), pid: Some(half.pid), ..culprit };
    }
    let before: Vec<String> = half.before.iter().map(|(what, times)| format!("{} ({times} times)", judge.names.source(*what))).collect();
    if !before.is_empty() {
        said.push(format!("before it CPU {} ran {}", half.cpu, before.join(", ")));
        if let Some((What::Softirq(_), _)) = half.before.iter().max_by_key(|(_, times)| *times) {
            culprit.name = before[0].clone();
        }
    }
    if said.is_empty() {
        said.push(format!("nothing that is recorded ran on CPU {} before it", half.cpu));
    }
    (culprit, said.join("; "))
}

fn thread(judge: &Judge<'_>, grown: &Grown, evidence: &Evidence) -> (Culprit, String) {
    let longest = grown.parts.iter().max_by_key(|(from, to, _)| to.saturating_sub(*from)).map(|(_, _, to)| *to);
    let Some((_, it)) = evidence.threads.iter().find(|(point, _)| Some(*point) == longest) else {
        return plain("bottom_half", "a thread of the interrupt path", "the thread that handles it waited for a CPU");
    };
    let thread = judge.names.thread(it.pid);
    let behind = match it.behind {
        0 => format!("CPU {} was idle", it.cpu),
        pid => format!("on CPU {} behind {}", it.cpu, judge.names.thread(pid)),
    };
    let name = if it.behind == 0 { thread.clone() } else { judge.names.comm(it.behind).unwrap_or_else(|| judge.names.thread(it.behind)) };
    let pid = if it.behind == 0 { it.pid } else { it.behind };
    let culprit = Culprit { kind: "bottom_half".into(), name, pid: Some(pid), taken_ns: Some(grown.duration_ns) };
    (culprit, format!("{thread} handles it and waited {behind}"))
}

fn worker(judge: &Judge<'_>, grown: &Grown, worker: Option<Worker>) -> (Culprit, String) {
    let Some(worker) = worker else { return plain("worker", "a kernel worker", "the work waited for a kernel worker") };
    let name = judge.names.comm(worker.pid).unwrap_or_else(|| format!("kernel worker {}", worker.pid));
    let text = format!("the work waited for {name} (thread {}) to get CPU {}", worker.pid, worker.cpu);
    (Culprit { kind: "worker".into(), name, pid: Some(worker.pid), taken_ns: Some(grown.duration_ns) }, text)
}
