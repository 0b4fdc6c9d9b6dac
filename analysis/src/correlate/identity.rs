//! Who the join looks for, and what the probes could have recorded: both from the manifest.
use super::context::Threads;
use super::hardware::Shape;
use crate::capture::Manifest;
use crate::capture::manifest::Round;
use ebpf_probes::{CompHandler, Kind, path};
use std::collections::BTreeSet;

/// A round in which the hypervisor took more than this share of the CPUs' time is flagged GUEST.
pub const STEAL_SHARE: f64 = 0.01;

/// Threads, queues and facts of the run that the join needs.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Process of the client.
    pub tgid: u32,
    /// The measured thread.
    pub tid: u32,
    /// The CQ as its owner knows it.
    pub cq_handle: u64,
    /// Queue pair on this side.
    pub qpn: u32,
    /// True when the packet that ends a sample is a request of the peer (ping-pongs), false when it is an answer.
    pub ends_with_request: bool,
    /// True when a CQE ends the samples (not for `write-pp`).
    pub has_cqe: bool,
    /// True for completion events.
    pub event_mode: bool,
    /// Outstanding WRs.
    pub depth: u32,
    /// True when rxe's own hooks can be seen.
    pub rxe: bool,
    /// Both ends run on one kernel: packets do not pass a network device.
    pub same_kernel: bool,
    /// PREEMPT_RT.
    pub realtime: bool,
    /// The clock check was made and failed.
    pub clock_unsure: bool,
    /// How the driver comes from its interrupt to the handler (no matter on rxe).
    pub shape: Shape,
    /// Interrupt of the CQ's completion vector, where the device tells.
    pub irq: Option<u32>,
    /// Rounds in which a hypervisor took more than [`STEAL_SHARE`] of the CPUs' time.
    pub stolen_rounds: BTreeSet<u32>,
    /// The kernel threads whose scheduling was recorded.
    pub threads: Threads,
    kinds: u64,
}

impl Identity {
    /// From the manifest. A plan that names no kinds (an old writer) counts as "everything may be recorded".
    pub fn of(manifest: &Manifest) -> Identity {
        let run = &manifest.run;
        let mut kinds = 0u64;
        for row in manifest.plan.iter().filter(|row| row.attached) {
            for name in &row.gives {
                kinds |= Kind::ALL.iter().filter(|kind| kind.name() == name).map(|kind| 1u64 << *kind as u16).sum::<u64>();
            }
        }
        Identity {
            tgid: manifest.placement.tgid,
            tid: manifest.placement.tid,
            cq_handle: manifest.placement.cq_handle,
            qpn: manifest.placement.qpn,
            ends_with_request: matches!(run.op.as_str(), "send" | "send-imm" | "write-imm" | "write-pp"),
            has_cqe: run.op != "write-pp",
            event_mode: run.mode != "poll",
            depth: run.depth,
            rxe: manifest.device.driver.contains("rxe"),
            same_kernel: run.same_kernel,
            realtime: manifest.host.realtime,
            clock_unsure: manifest
                .clock_check
                .as_ref()
                .is_some_and(|check| check.kernel_ns < check.before_ns || check.kernel_ns > check.after_ns),
            shape: Shape::of(&manifest.device.driver),
            irq: manifest.placement.irq,
            stolen_rounds: manifest.rounds.iter().filter(|round| is_stolen(round, manifest.host.cpus)).map(|round| round.index).collect(),
            threads: Threads::of(&manifest.kernel_threads, manifest.host.realtime),
            kinds: if kinds == 0 { u64::MAX } else { kinds },
        }
    }

    /// Could this kind have been recorded?
    pub fn records(&self, kind: Kind) -> bool {
        self.kinds & (1 << kind as u16) != 0
    }

    /// Is this handler call for the CQ that ends the samples?
    pub fn is_our_cq(&self, body: &CompHandler) -> bool {
        body.user_handle == self.cq_handle && (body.owner_tgid == self.tgid || body.owner_tgid == 0)
    }

    /// Is this rxe task the one that handles the packet which ends a sample?
    pub fn is_ending_task(&self, task: u32) -> bool {
        if self.ends_with_request {
            matches!(task, path::RESPONDER | path::RECEIVER)
        } else {
            matches!(task, path::COMPLETER | path::SENDER)
        }
    }

    /// The receive path of the packet that ends a sample.
    pub fn ending_path(&self) -> u32 {
        if self.ends_with_request { path::RESPONDER } else { path::COMPLETER }
    }
}

fn is_stolen(round: &Round, cpus: u32) -> bool {
    let elapsed_ns = round.end_ns.saturating_sub(round.begin_ns) as f64 * f64::from(cpus.max(1));
    round.steal_ns.is_some_and(|stolen| stolen as f64 > elapsed_ns * STEAL_SHARE)
}
