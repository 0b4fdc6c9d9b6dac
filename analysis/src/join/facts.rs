//! Facts of the run that the join needs: who is looked for, and what the probes could have recorded. All from the manifest.
use super::threads::Threads;
use capture::manifest::Round;
use capture::{CompletionShape, Manifest};
use ebpf_probes::{CompHandler, Kind, path};
use std::collections::BTreeSet;

/// A round in which the hypervisor took more than this share of the CPUs' time is flagged GUEST.
pub const STEAL_SHARE: f64 = 0.01;

/// Threads, queues and facts of the run that the join needs.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
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
    /// True when the thread may sleep until a completion event wakes it.
    pub may_sleep: bool,
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
    /// How the driver comes from its interrupt to the handler (no matter on rxe); `None`: not known, so that no such chain is looked for.
    pub shape: Option<CompletionShape>,
    /// Interrupt of the CQ's completion vector, where the device tells.
    pub irq: Option<u32>,
    /// Rounds in which a hypervisor took more than [`STEAL_SHARE`] of the CPUs' time.
    pub stolen_rounds: BTreeSet<u32>,
    /// The kernel threads whose scheduling was recorded.
    pub threads: Threads,
    kinds: u64,
}

impl RunFacts {
    /// From the manifest. A plan that names no kinds (an old writer) counts as "everything may be recorded".
    pub fn of(manifest: &Manifest) -> RunFacts {
        let run = &manifest.run;
        let workers = manifest.workers();
        let worker = workers.first();
        let (qp, cq) = (worker.and_then(|it| it.queue_pairs.first()), worker.and_then(|it| it.completion_queues.first()));
        let mode = worker.map_or(run.mode, |it| it.mode);
        let mut kinds = 0u64;
        for row in manifest.plan.iter().filter(|row| row.attached) {
            for name in &row.gives {
                kinds |= Kind::ALL.iter().filter(|kind| kind.name() == name).map(|kind| 1u64 << *kind as u16).sum::<u64>();
            }
        }
        RunFacts {
            tgid: manifest.placement.tgid,
            tid: worker.map_or(0, |it| it.tid),
            cq_handle: cq.map_or(0, |it| it.handle),
            qpn: qp.map_or(0, |it| it.qpn),
            ends_with_request: run.op.server_answers(),
            has_cqe: run.op.has_cqe(),
            may_sleep: mode.may_sleep(),
            depth: run.depth,
            rxe: manifest.device.is_soft_roce(),
            same_kernel: run.same_kernel,
            realtime: manifest.host.realtime,
            clock_unsure: manifest
                .clock_check
                .as_ref()
                .is_some_and(|check| check.kernel_ns < check.before_ns || check.kernel_ns > check.after_ns),
            shape: manifest.device.shape(),
            irq: cq.and_then(|it| it.irq),
            stolen_rounds: manifest.rounds.iter().filter(|round| is_stolen(round, manifest.host.cpus)).map(|round| round.index).collect(),
            threads: Threads::of(&manifest.kernel_threads, manifest.host.realtime),
            kinds: if kinds == 0 { u64::MAX } else { kinds },
        }
    }

    /// Could this kind have been recorded?
    pub fn records(&self, kind: Kind) -> bool {
        self.kinds & (1 << kind as u16) != 0
    }

    /// Can the events say when a CQE of a sample was written?
    pub fn shows_cqe(&self) -> bool {
        self.has_cqe && self.rxe && self.records(Kind::CqPost)
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
