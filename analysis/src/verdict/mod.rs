//! Why a sample was slow: its stages against their medians, the stage that grew most, who was in the way, what to try next.
mod cause;
pub mod evidence;

use crate::capture::Sample;
use crate::correlate::Outcome;
use crate::correlate::chain::Chain;
use crate::correlate::flags::{Flag, Flags};
use crate::correlate::identity::Identity;
use crate::interference::{Names, RESTS_ON, Totals};
use crate::model::{Culprit, OverlayItem, SlowSample, SlowStage};
use crate::stages::{STAGES, UNATTRIBUTED};
use crate::units::{ns, percent};
use cause::Grown;
use evidence::Evidence;

/// Stages of [`STAGES`], and the unattributed time as the last one.
pub const COUNT: usize = STAGES.len() + 1;

/// Name of a stage by its index in [`STAGES`]; what is beyond is the unattributed time.
pub fn stage_name(index: usize) -> &'static str {
    STAGES.get(index).map_or(UNATTRIBUTED, |stage| stage.name)
}

/// How long each stage of a chain took; a stage in several parts is added up, a negative part is left out, an absent one is `None`.
pub fn durations(chain: &Chain) -> [Option<u64>; COUNT] {
    let mut sums = [None; COUNT];
    for gap in chain.gaps() {
        if let Ok(duration) = u64::try_from(gap.duration_ns) {
            let sum: &mut Option<u64> = &mut sums[gap.stage.unwrap_or(STAGES.len())];
            *sum = Some(sum.unwrap_or(0).saturating_add(duration));
        }
    }
    sums
}

/// The stage where the time of a sample went: the one that grew most over its median, and by how much. A stage without a median is too
/// rare to have one: all of it is growth. `None` when nothing of the chain is known.
pub fn culprit_stage(durations: &[Option<u64>; COUNT], medians: &[Option<u64>]) -> Option<(usize, i64)> {
    let growth = |(index, duration): (usize, &Option<u64>)| {
        let usual = medians.get(index).copied().flatten().unwrap_or(0);
        let grown = i128::from((*duration)?) - i128::from(usual);
        Some((index, i64::try_from(grown).unwrap_or(i64::MAX)))
    };
    // The first of equals: what came later along the path is more likely a consequence.
    durations.iter().enumerate().filter_map(growth).rev().max_by_key(|(_, grown)| *grown)
}

/// What verdicts are given against: the medians of the run, and what is known by name.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// Per stage of [`STAGES`], and last that of the unattributed time.
    pub medians: &'a [Option<u64>],
    /// Threads and interrupts.
    pub names: &'a Names,
    /// What the run's samples usually lose.
    pub totals: &'a Totals,
    /// What could be recorded.
    pub identity: &'a Identity,
}

impl Judge<'_> {
    fn not_seen(&self) -> Vec<&'static str> {
        RESTS_ON.iter().filter(|(kind, _)| !self.identity.records(*kind)).map(|(_, what)| *what).collect()
    }

    /// Stage and culprit of a sample, and the words for the culprit.
    pub fn verdict(&self, outcome: &Outcome, evidence: &Evidence) -> Option<(usize, i64, Culprit, String)> {
        let durations = durations(&outcome.joined.chain);
        let (stage, grown_ns) = culprit_stage(&durations, self.medians)?;
        let clock = |relative: i64| outcome.joined.chain.get(crate::stages::Point::PostBegin).unwrap_or(0).saturating_add_signed(relative);
        let parts = outcome.joined.chain.gaps().filter(|gap| gap.stage.unwrap_or(STAGES.len()) == stage);
        let grown = Grown {
            name: stage_name(stage),
            growth_ns: u64::try_from(grown_ns).unwrap_or(0),
            duration_ns: durations[stage].unwrap_or(0),
            parts: parts.map(|gap| (clock(gap.start_ns), clock(gap.start_ns.saturating_add(gap.duration_ns)), gap.to)).collect(),
        };
        let (culprit, text) = cause::find(self, &grown, outcome, evidence);
        Some((stage, grown_ns, culprit, text))
    }

    /// Explains a slow sample.
    pub fn explain(&self, sample: &Sample, outcome: &Outcome, evidence: &Evidence) -> SlowSample {
        let total_ns = sample.latency_ns().unwrap_or(0);
        let mut stages: Vec<SlowStage> = Vec::new();
        for gap in outcome.joined.chain.gaps() {
            let index = gap.stage.unwrap_or(STAGES.len());
            let name = stage_name(index);
            let (Ok(start_ns), Ok(duration_ns)) = (u64::try_from(gap.start_ns), u64::try_from(gap.duration_ns)) else { continue };
            match stages.last_mut() {
                Some(last) if last.name == name => last.duration_ns = last.duration_ns.saturating_add(duration_ns),
                _ => {
                    let median_ns = self.medians.get(index).copied().flatten();
                    stages.push(SlowStage { name: name.into(), start_ns, duration_ns, median_ns });
                }
            }
        }
        let verdict = self.verdict(outcome, evidence);
        let overlay = evidence.overlay.items.iter().map(|item| OverlayItem {
            kind: item.what.kind().into(),
            name: self.names.source(item.what),
            pid: item.what.pid(),
            start_ns: item.start_ns.saturating_sub(sample.post_begin_ns),
            duration_ns: item.duration_ns,
        });
        let explained_share = self.totals.explained(total_ns, evidence.overlay.taken_ns);
        SlowSample {
            wr_id: sample.begin_wr_id,
            round: sample.round,
            total_ns,
            verdict: self.sentence(total_ns, verdict.as_ref(), outcome, explained_share),
            culprit_stage: verdict.as_ref().map(|(stage, ..)| stage_name(*stage).to_string()),
            culprit: verdict.map(|(_, _, culprit, _)| culprit),
            flags: outcome.joined.flags.iter().map(|flag| flag.name().to_string()).collect(),
            stages,
            overlay: overlay.collect(),
            taken_ns: evidence.overlay.taken_ns,
            explained_share,
        }
    }

    fn sentence(
        &self,
        total_ns: u64,
        verdict: Option<&(usize, i64, Culprit, String)>,
        outcome: &Outcome,
        explained_share: Option<f64>,
    ) -> String {
        let flags = outcome.joined.flags;
        let complete = if flags.has(Flag::Lost) {
            " Events complete: no, records are missing, so this is a lower bound."
        } else {
            " Events complete: yes."
        };
        let Some((index, _, culprit, text)) = verdict else {
            return format!("{} in all; no stage is known.{complete}", ns(total_ns as f64));
        };
        let stage = stage_name(*index);
        let duration_ns = durations(&outcome.joined.chain)[*index].unwrap_or(0);
        let median = self.medians.get(*index).copied().flatten();
        let usual = median.map_or("rare, no median".to_string(), |median| format!("median {}", ns(median as f64)));
        let share = if total_ns == 0 { 0.0 } else { duration_ns as f64 / total_ns as f64 };
        let cause = if text.is_empty() { String::new() } else { format!("; {text}") };
        let overlay = match explained_share {
            Some(share) if !self.identity.event_mode => {
                format!(" What took the thread's CPU explains {} of the excess over the median.", percent(share))
            }
            _ => String::new(),
        };
        format!(
            "{stage} took {} of {} ({}; {usual}){cause}.{overlay}{complete} Next: {}.",
            ns(duration_ns as f64),
            ns(total_ns as f64),
            percent(share),
            advice(stage, &culprit.kind, flags)
        )
    }
}

fn advice(stage: &str, kind: &str, flags: Flags) -> &'static str {
    match kind {
        "preempted" => return "keep other threads off the thread's CPU (isolcpus, cpusets, a CPU of its own)",
        "migrated" => return "pin the thread (--cpu), and look for who changes its CPU set",
        "irq" | "softirq" => return "move that interrupt to another CPU (/proc/irq/*/smp_affinity_list)",
        "tick" => return "a CPU of its own with nohz_full has few ticks",
        "blocked" | "page_fault" => return "lock and touch the memory beforehand (mlockall), and see what the thread waited for",
        "none_seen" => return "compare with a run on another CPU, and look at the hypervisor's steal time, SMIs and the device's counters",
        _ => {}
    }
    match stage {
        "wire + peer" if flags.has(Flag::Loopback) => {
            "the peer shares this machine: give its thread a CPU of its own, or look at what it waits for"
        }
        "run queue" | "activation and run queue" => "give the thread a CPU of its own (--cpu) or a real-time priority",
        "idle exit" | "activation" => "hold /dev/cpu_dma_latency at 0, or place the waiter on the CPU that handles the completion",
        "requester workqueue" | "task workqueue" => "leave a CPU free for the kernel workers of rxe",
        "wire + peer" | "device + network" | "post, device + network" => {
            "look at the other side: its own capture shows where the answer stayed"
        }
        "notify delay" | "bottom-half wait" | "bottom half" | "rx softirq" | "rx interrupt" | "hard irq" => {
            "see which softirqs and interrupts share that CPU (/proc/interrupts, /proc/softirqs)"
        }
        "irq thread wake-up" | "softirq thread wake-up" | "irq thread" => {
            "give the thread that handles it a higher real-time priority or a CPU of its own"
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
