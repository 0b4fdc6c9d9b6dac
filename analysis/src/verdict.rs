//! Why one sample was slow: its stages against their medians, the stage that grew most, who was in the way, what to try next.
use crate::capture::Sample;
use crate::correlate::Outcome;
use crate::correlate::flags::{Flag, Flags};
use crate::model::{SlowSample, SlowStage};
use crate::stages::{STAGES, UNATTRIBUTED};
use crate::units::{ns, percent};
use crate::words::printable;

/// Explains a sample. `medians`: per stage of [`STAGES`], and last that of the unattributed time.
pub fn explain(sample: &Sample, outcome: &Outcome, medians: &[Option<u64>]) -> SlowSample {
    let total_ns = sample.latency_ns().unwrap_or(0);
    let mut stages: Vec<SlowStage> = Vec::new();
    for gap in outcome.joined.chain.gaps() {
        let index = gap.stage.unwrap_or(STAGES.len());
        let name = STAGES.get(index).map_or(UNATTRIBUTED, |stage| stage.name);
        let (Ok(start_ns), Ok(duration_ns)) = (u64::try_from(gap.start_ns), u64::try_from(gap.duration_ns)) else { continue };
        match stages.last_mut() {
            Some(last) if last.name == name => last.duration_ns = last.duration_ns.saturating_add(duration_ns),
            _ => stages.push(SlowStage { name: name.into(), start_ns, duration_ns, median_ns: medians.get(index).copied().flatten() }),
        }
    }
    SlowSample {
        wr_id: sample.begin_wr_id,
        round: sample.round,
        total_ns,
        verdict: sentence(total_ns, &stages, outcome),
        flags: outcome.joined.flags.iter().map(|flag| flag.name().to_string()).collect(),
        stages,
    }
}

fn sentence(total_ns: u64, stages: &[SlowStage], outcome: &Outcome) -> String {
    let flags = outcome.joined.flags;
    let complete = if flags.has(Flag::Lost) {
        " Events complete: no, records are missing, so this is a lower bound."
    } else {
        " Events complete: yes."
    };
    // A stage without a median is too rare to have one: all of it is growth.
    let grown = stages.iter().max_by_key(|stage| stage.duration_ns.saturating_sub(stage.median_ns.unwrap_or(0)));
    let Some(stage) = grown else { return format!("{} in all; no stage is known.{complete}", ns(total_ns as f64)) };
    let usual = stage.median_ns.map_or("rare, no median".to_string(), |median| format!("median {}", ns(median as f64)));
    let share = if total_ns == 0 { 0.0 } else { stage.duration_ns as f64 / total_ns as f64 };
    let culprit = culprit(&stage.name, outcome).map_or(String::new(), |text| format!("; {text}"));
    format!(
        "{} took {} of {} ({}; {usual}){culprit}.{complete} Next: {}.",
        stage.name,
        ns(stage.duration_ns as f64),
        ns(total_ns as f64),
        percent(share),
        advice(&stage.name, flags)
    )
}

fn culprit(stage: &str, outcome: &Outcome) -> Option<String> {
    let culprit = &outcome.joined.culprit;
    let flags = outcome.joined.flags;
    let taken = || {
        culprit.preempted_by.map(|it| {
            let who = match (it.pid, it.comm) {
                (0, _) => "the idle task".to_string(),
                (pid, Some(name)) => format!("{} (thread {pid})", comm(&name)),
                (pid, None) => format!("thread {pid}"),
            };
            match it.away_ns {
                Some(away) => format!("{who} had its CPU for {}", ns(away as f64)),
                None => format!("{who} took its CPU"),
            }
        })
    };
    let noise = || {
        (culprit.irqs + culprit.softirqs > 0)
            .then(|| format!("{} interrupts and {} softirqs ran on its CPU meanwhile", culprit.irqs, culprit.softirqs))
    };
    match stage {
        "run queue" | "activation and run queue" | "activation" | "idle exit" => match (culprit.before, culprit.idle_exit_cpu) {
            (_, Some(cpu)) => Some(format!("CPU {cpu} was idle and had to leave its idle state")),
            (Some((0, _)), None) => Some("its CPU was idle".into()),
            (Some((pid, name)), None) => {
                let own = if flags.has(Flag::Observer) { ", a thread of this tool" } else { "" };
                Some(format!("behind {} (thread {pid}{own})", comm(&name)))
            }
            _ => noise(),
        },
        "notify delay" | "bottom-half wait" | "rx interrupt" | "rx softirq" | "task queue" if flags.has(Flag::BhDeferred) => {
            Some("the softirq was deferred to another thread (ksoftirqd)".into())
        }
        "return to user"
        | "poll"
        | "detect"
        | "event read"
        | "post return after completion"
        | "device, network and detection"
        | "protocol and detection" => taken()
            .or_else(noise)
            .or_else(|| Some("no kernel cause was seen (a stall of the hypervisor or the machine looks like this)".into())),
        "requester workqueue" | "task workqueue" => Some("the work waited for a kernel worker".into()),
        "retransmission" => Some("a packet was sent again after a timeout or a lost answer".into()),
        _ => None,
    }
}

fn advice(stage: &str, flags: Flags) -> &'static str {
    match stage {
        "wire + peer" if flags.has(Flag::Loopback) => {
            "the peer shares this machine: give its thread a CPU of its own, or look at what it waits for"
        }
        "run queue" | "activation and run queue" => "give the thread a CPU of its own (--cpu) or a real-time priority",
        "idle exit" | "activation" => "hold /dev/cpu_dma_latency at 0, or place the waiter on the CPU that handles the completion",
        "requester workqueue" | "task workqueue" => "leave a CPU free for the kernel workers of rxe",
        "wire + peer" | "device + network" => "look at the other side: its own capture shows where the answer stayed",
        "notify delay" | "bottom-half wait" | "bottom half" | "rx softirq" | "rx interrupt" | "hard irq" => {
            "see which softirqs and interrupts share that CPU (/proc/interrupts, /proc/softirqs)"
        }
        "retransmission" => "read the port's retransmission counters and look for drops on the way",
        "detect"
        | "poll"
        | "return to user"
        | "post return after completion"
        | "device, network and detection"
        | "protocol and detection" => "keep other threads and interrupts off the thread's CPU",
        _ => "compare with the samples around it and repeat with more samples",
    }
}

fn comm(name: &[u8; 16]) -> String {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    printable(&String::from_utf8_lossy(&name[..end]))
}
