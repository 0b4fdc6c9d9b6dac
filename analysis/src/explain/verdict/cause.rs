//! Who or what was in the way in the stage that grew: a machine-readable culprit and the words for it.
use super::baseline::Baseline;
use super::evidence::{Evidence, Half, Worker};
use super::growth::Grown;
use crate::explain::interference::totals::{EXPLAINED, PARTLY};
use crate::explain::interference::{Taken, What, names};
use crate::explain::model::{Cause, Culprit};
use crate::join::Outcome;
use crate::join::flags::Flag;
use crate::stages::{Point, StageId};
use capture::text::units::ns;

/// The culprit and the words for it; an empty text says nothing beyond the stage's name.
pub(super) fn find(baseline: &Baseline<'_>, grown: &Grown, outcome: &Outcome, evidence: &Evidence) -> (Culprit, String) {
    let own = grown.parts.iter().any(|(_, _, to)| evidence.is_own(*to));
    if own && let Some(found) = taken(baseline, grown, evidence) {
        return found;
    }
    let flags = outcome.joined.flags;
    let deferred = flags.has(Flag::BhDeferred);
    match grown.stage {
        StageId::RunQueue | StageId::ActivationRunQueue | StageId::Activation | StageId::IdleExit => {
            waited(baseline, grown, outcome, evidence)
        }
        StageId::NotifyDelay | StageId::BottomHalfWait | StageId::BottomHalf | StageId::HardIrq | StageId::IrqThread => {
            late_softirq(baseline, grown, evidence.bottom_half.as_ref(), deferred)
        }
        StageId::IrqThreadWakeup | StageId::SoftirqThreadWakeup => thread(baseline, grown, evidence),
        StageId::RxInterrupt | StageId::RxSoftirq => late_softirq(baseline, grown, evidence.receive.as_ref(), deferred),
        StageId::RequesterWorkqueue => worker(baseline, grown, evidence.sender),
        StageId::TaskWorkqueue => worker(baseline, grown, evidence.receiver),
        StageId::WirePeer if flags.has(Flag::Loopback) && own => seen_nothing(baseline, outcome),
        StageId::WirePeer => plain(Cause::Peer, "the peer or the network", "the time passed on the wire or at the peer"),
        StageId::DeviceNetwork | StageId::PostDeviceNetwork => {
            plain(Cause::Peer, "the device, the network or the peer", "the time passed in the device, on the wire or at the peer")
        }
        StageId::Retransmission => {
            plain(Cause::Retransmission, "a lost packet", "a packet was sent again after a timeout or a lost answer")
        }
        StageId::Poll | StageId::EventReadNoSleep => plain(
            Cause::OwnCode,
            "the thread's own code",
            "the thread had its CPU all the time: its own code between the wake-up and the poll, or a stall that leaves no event",
        ),
        StageId::Post
        | StageId::DeviceNetworkDetection
        | StageId::RequesterQueue
        | StageId::Requester
        | StageId::RequesterStartUnseen
        | StageId::TxStack
        | StageId::TaskQueue
        | StageId::Protocol
        | StageId::ProtocolStartUnseen
        | StageId::ProtocolDetection
        | StageId::PostReturn
        | StageId::Detect
        | StageId::Handler
        | StageId::EventRead
        | StageId::ReturnToUser
        | StageId::Unattributed => {
            if own {
                seen_nothing(baseline, outcome)
            } else {
                plain(Cause::NotRecorded, "not recorded", "")
            }
        }
    }
}

fn plain(kind: Cause, name: &str, text: &str) -> (Culprit, String) {
    (Culprit { kind, name: name.into(), pid: None, taken_ns: None }, text.into())
}

fn seen_nothing(baseline: &Baseline<'_>, outcome: &Outcome) -> (Culprit, String) {
    let missing = baseline.not_seen();
    if missing.is_empty() {
        let stolen = if outcome.joined.flags.has(Flag::Guest) { "; a hypervisor took CPU time in this round" } else { "" };
        let text = format!("no kernel cause seen (hypervisor, SMI, memory or the device){stolen}");
        return plain(Cause::NoneSeen, "no kernel cause seen", &text);
    }
    let text = format!("no cause was seen, but {} were not recorded", missing.join(", "));
    plain(Cause::NotRecorded, "not recorded", &text)
}

/// What took the thread's CPU within the stage, when that is a part of its growth that counts.
fn taken(baseline: &Baseline<'_>, grown: &Grown, evidence: &Evidence) -> Option<(Culprit, String)> {
    let within = |(from, to, _): &(u64, u64, Point)| evidence.overlay.within(*from, *to).collect::<Vec<_>>();
    let inside: Vec<(Taken, u64)> = grown.parts.iter().flat_map(within).collect();
    let sum: u64 = inside.iter().map(|(_, part)| *part).sum::<u64>().min(grown.duration_ns);
    let mut by_source: Vec<(What, u64, u32)> = Vec::new();
    for (item, part) in &inside {
        match by_source.iter_mut().find(|(what, ..)| baseline.names.source(*what) == baseline.names.source(item.what)) {
            Some((_, ns, times)) => (*ns, *times) = (*ns + part, *times + 1),
            None => by_source.push((item.what, *part, 1)),
        }
    }
    let (what, most_ns, times) = by_source.into_iter().max_by_key(|(_, ns, _)| *ns)?;
    let share = sum as f64 / grown.growth_ns.max(1) as f64;
    if share < PARTLY {
        return None;
    }
    let mut text = told(baseline, what, most_ns, times);
    if let What::Preempted { by, last } = what
        && by != last
    {
        text = format!("{text} (in the end {} ran)", baseline.names.thread(last));
    }
    if sum > most_ns + most_ns / 20 {
        text = format!("{text}; with all else that took its CPU {}", ns(sum as f64));
    }
    if share < EXPLAINED {
        text = format!("{text}; no kernel cause seen for the rest");
    }
    let name = match what {
        What::Preempted { by, .. } => baseline.names.comm(by).unwrap_or_else(|| baseline.names.thread(by)),
        other => baseline.names.source(other),
    };
    Some((Culprit { kind: what.kind(), name, pid: what.pid(), taken_ns: Some(most_ns) }, text))
}

fn told(baseline: &Baseline<'_>, what: What, taken_ns: u64, times: u32) -> String {
    let long = ns(taken_ns as f64);
    let often = if times > 1 { format!(" ({times} times)") } else { String::new() };
    match what {
        What::Preempted { by, .. } => format!("{} had its CPU for {long}{often}", baseline.names.thread(by)),
        What::Migrated { from, to, by } => {
            let by = baseline.names.thread(by);
            format!("it was moved from CPU {from} to CPU {to} and ran nowhere for {long}{often}; {by} got the CPU that it left")
        }
        What::Blocked => format!("it slept in the kernel for {long}{often}"),
        other => format!("{} took its CPU for {long}{often}", baseline.names.source(other)),
    }
}

/// The thread was due and did not have its CPU.
fn waited(baseline: &Baseline<'_>, grown: &Grown, outcome: &Outcome, evidence: &Evidence) -> (Culprit, String) {
    let joined = &outcome.joined;
    let moved = evidence.moved_to.last().map_or(String::new(), |cpu| format!("; it was moved to CPU {cpu}"));
    // In a run queue the thread stood behind another one, also where its CPU had been idle before.
    let queued = matches!(grown.stage, StageId::RunQueue | StageId::ActivationRunQueue);
    match (joined.ran_before, joined.idle_exit_cpu) {
        (Some((pid, comm)), idle) if pid != 0 && (queued || idle.is_none()) => {
            let own = if outcome.joined.flags.has(Flag::Observer) { ", a thread of this tool" } else { "" };
            let (comm, long) = (names::text(&comm), ns(grown.duration_ns as f64));
            let text = format!("behind {comm} (thread {pid}{own}), which left the CPU {long} after the thread was due{moved}");
            (Culprit { kind: Cause::RunQueue, name: comm, pid: Some(pid), taken_ns: Some(grown.duration_ns) }, text)
        }
        (_, Some(cpu)) => {
            let name = format!("idle exit of CPU {cpu}");
            plain(Cause::IdleExit, &name, &format!("CPU {cpu} was idle and had to leave its idle state{moved}"))
        }
        (Some(_), None) => plain(Cause::IdleExit, "an idle CPU", &format!("its CPU was idle{moved}")),
        (None, None) => seen_nothing(baseline, outcome),
    }
}

fn late_softirq(baseline: &Baseline<'_>, grown: &Grown, half: Option<&Half>, deferred: bool) -> (Culprit, String) {
    let Some(half) = half else { return plain(Cause::NotRecorded, "not recorded", "") };
    let mut said = Vec::new();
    let mut culprit =
        Culprit { kind: Cause::BottomHalf, name: format!("softirqs of CPU {}", half.cpu), pid: None, taken_ns: Some(grown.duration_ns) };
    if deferred || half.pid != half.cause_pid {
        let thread = match baseline.names.comm(half.pid) {
            Some(comm) => format!("{comm} (thread {})", half.pid),
            None => format!("thread {} (ksoftirqd, or what ran next)", half.pid),
        };
        said.push(format!("the softirq was deferred to {thread} on CPU {}", half.cpu));
        culprit = Culprit { name: format!("softirq deferred on CPU {}", half.cpu), pid: Some(half.pid), ..culprit };
    }
    let before: Vec<String> = half.before.iter().map(|(what, times)| format!("{} ({times} times)", baseline.names.source(*what))).collect();
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

fn thread(baseline: &Baseline<'_>, grown: &Grown, evidence: &Evidence) -> (Culprit, String) {
    let longest = grown.parts.iter().max_by_key(|(from, to, _)| to.saturating_sub(*from)).map(|(_, _, to)| *to);
    let Some((_, it)) = evidence.threads.iter().find(|(point, _)| Some(*point) == longest) else {
        return plain(Cause::BottomHalf, "a thread of the interrupt path", "the thread that handles it waited for a CPU");
    };
    let thread = baseline.names.thread(it.pid);
    let behind = match it.behind {
        0 => format!("CPU {} was idle", it.cpu),
        pid => format!("on CPU {} behind {}", it.cpu, baseline.names.thread(pid)),
    };
    let name =
        if it.behind == 0 { thread.clone() } else { baseline.names.comm(it.behind).unwrap_or_else(|| baseline.names.thread(it.behind)) };
    let pid = if it.behind == 0 { it.pid } else { it.behind };
    let culprit = Culprit { kind: Cause::BottomHalf, name, pid: Some(pid), taken_ns: Some(grown.duration_ns) };
    (culprit, format!("{thread} handles it and waited {behind}"))
}

fn worker(baseline: &Baseline<'_>, grown: &Grown, worker: Option<Worker>) -> (Culprit, String) {
    let Some(worker) = worker else { return plain(Cause::Worker, "a kernel worker", "the work waited for a kernel worker") };
    let name = baseline.names.comm(worker.pid).unwrap_or_else(|| format!("kernel worker {}", worker.pid));
    let text = format!("the work waited for {name} (thread {}) to get CPU {}", worker.pid, worker.cpu);
    (Culprit { kind: Cause::Worker, name, pid: Some(worker.pid), taken_ns: Some(grown.duration_ns) }, text)
}
