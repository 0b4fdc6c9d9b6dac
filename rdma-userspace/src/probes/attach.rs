//! Loading the object for a plan, and attaching and detaching its programs as often as rounds need it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use analysis::capture::manifest::PlanRow;
use aya::Ebpf;
use aya::maps::{Array, RingBuf};
use aya::programs::{KProbe, ProgramError, RawTracePoint};
use aya::programs::{kprobe::KProbeLink, raw_trace_point::RawTracePointLink};
use ebpf_probes::config::{COUNTERS_MAP, RING_MAP, TRACKED_POLLER, auto_track};

use super::clock::{self, ClockCheck};
use super::counters::{Counters, Losses, Rows};
use super::drain::{Delivered, Drain};
use super::drivers::HookKind;
use super::error::attach_reason;
use super::load::{globals, lift_memlock, load_object, load_program, page_bytes};
use super::missed::Missed;
use super::plan::{Plan, PlannedHook};
use super::tracked::Tracked;
use super::typed::Typed;
use super::{ProbeError, object, sys, threads_of};

/// How the probes are set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Size of the ring in bytes; rounded up to a power of two of at least a page.
    pub ring_bytes: u32,
    /// Record rxe events of every queue pair, not only of tracked ones.
    pub trace_all_qps: bool,
    /// Record completion handlers of every owner, not only of tracked processes.
    pub trace_all_cqs: bool,
    /// Record only these interrupts; empty means all.
    pub irqs: Vec<u32>,
    /// Record packets of this interface only (level `full`); 0 means all.
    pub ifindex: u32,
    /// Record the scheduling of every thread of a tracked process, not only of tracked threads.
    pub by_process: bool,
    /// Whose CQs are recorded from their creation on, beside those of tracked processes.
    pub auto_track: AutoTrack,
    /// Attach by trampolines and with typed arguments where the kernel can; else by kprobes and raw tracepoints only.
    pub typed: bool,
    /// Let the programs log what they do to standard error ([`Probes::flush_debug`]). Slow: for the tool's own diagnosis.
    pub debug: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            ring_bytes: 16 << 20,
            trace_all_qps: false,
            trace_all_cqs: false,
            irqs: Vec::new(),
            ifindex: 0,
            by_process: false,
            auto_track: AutoTrack::Off,
            typed: true,
            debug: false,
        }
    }
}

/// Creators of CQs that become tracked by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AutoTrack {
    /// None.
    #[default]
    Off,
    /// Those whose thread has this name (its first 15 bytes count).
    Named(String),
    /// All.
    All,
}

impl AutoTrack {
    /// Values of `AUTO_TRACK`, `AUTO_NAME_0` and `AUTO_NAME_1`.
    pub(super) fn globals(&self) -> (u32, u64, u64) {
        let mut comm = [0_u8; 16];
        let mode = match self {
            AutoTrack::Off => auto_track::OFF,
            AutoTrack::All => auto_track::ALL,
            AutoTrack::Named(name) => {
                let length = name.len().min(comm.len() - 1);
                comm[..length].copy_from_slice(&name.as_bytes()[..length]);
                auto_track::BY_NAME
            }
        };
        let half = |from: usize| u64::from_ne_bytes(std::array::from_fn(|at| comm[from + at]));
        (mode, half(0), half(8))
    }
}

/// A hook of the plan and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookState {
    /// The plan's row; its reason is replaced when loading or attaching failed, and its symbol is then `None`.
    pub planned: PlannedHook,
    /// Attached at the last [`Probes::attach`].
    pub attached: bool,
    /// Times the program ran since it was loaded.
    pub hits: u64,
}

impl HookState {
    /// Its row in a manifest, with whether it was attached while recording and the hits of that time. An absent hook has no hits.
    pub(crate) fn row(&self, attached: bool, hits: u64) -> PlanRow {
        let planned = &self.planned;
        PlanRow {
            hook: planned.hook.to_owned(),
            kind: planned.kind.name().to_owned(),
            symbol: planned.symbol.clone(),
            program: planned.program.symbol().to_owned(),
            gives: planned.gives.iter().map(|kind| kind.name().to_owned()).collect(),
            reason: planned.reason.clone(),
            attached,
            hits: planned.symbol.as_ref().map(|_| hits),
            silence: planned.silence.map(str::to_owned),
        }
    }
}

enum Link {
    Kprobe { _link: KProbeLink },
    Tracepoint { _link: RawTracePointLink },
    Typed { _link: OwnedFd },
}

/// The loaded programs of a plan.
pub struct Probes {
    ebpf: Ebpf,
    hooks: Vec<PlannedHook>,
    attached: Vec<bool>,
    links: Vec<Link>,
    tracked: Tracked,
    typed: Typed,
    counters: Rows,
    delivered: Arc<Delivered>,
    drain: Option<Drain>,
    clock: ClockCheck,
    missed: Missed,
    logger: Option<aya_log::EbpfLogger<super::debug::StderrLog>>,
}

impl Probes {
    /// Loads every program of the plan; nothing is attached yet.
    ///
    /// # Errors
    /// [`ProbeError::NoObject`], [`ProbeError::Lockdown`], [`ProbeError::NoPermission`], or what the kernel refused.
    pub fn load(plan: &Plan, config: &Config) -> Result<Self, ProbeError> {
        if object().is_empty() {
            return Err(ProbeError::NoObject);
        }
        if plan.lockdown.as_deref() == Some("confidentiality") {
            return Err(ProbeError::Lockdown);
        }
        if plan.hooks.iter().all(|hook| hook.symbol.is_none()) {
            return Err(ProbeError::NothingAttached { why: nothing_reason(&plan.hooks) });
        }
        lift_memlock();
        let ring_bytes = config.ring_bytes.next_power_of_two().max(page_bytes());
        let globals = globals(plan, config);
        let mut ebpf = load_object(&globals, ring_bytes)?;
        let typed = if config.typed { Typed::load(&ebpf, &globals, plan) } else { Typed::default() };
        let logger = if config.debug { Some(super::debug::logger(&mut ebpf)?) } else { None };
        let mut tracked = Tracked::take(&mut ebpf)?;
        for irq in &config.irqs {
            tracked.irqs.add(*irq)?;
        }
        let clock = clock::check(&mut ebpf)?;
        let counters = {
            let map = ebpf.take_map(COUNTERS_MAP).ok_or(ProbeError::NotInObject { what: "map", name: COUNTERS_MAP })?;
            Array::try_from(map).map_err(|error| ProbeError::from_map(COUNTERS_MAP, error))?
        };
        let ring = {
            let map = ebpf.take_map(RING_MAP).ok_or(ProbeError::NotInObject { what: "map", name: RING_MAP })?;
            RingBuf::try_from(map).map_err(|error| ProbeError::from_map(RING_MAP, error))?
        };
        let mut hooks = plan.hooks.clone();
        for hook in hooks.iter_mut().filter(|hook| hook.symbol.is_some()) {
            match typed.kind(hook.program) {
                Some(kind) => hook.kind = kind,
                None => load_program(&mut ebpf, hook)?,
            }
            if let Some(why) = typed.refusal(hook.program) {
                hook.reason.push_str(&format!("; without typed arguments ({why})"));
            }
        }
        let delivered = Delivered::new();
        let drain = Some(Drain::new(ring, delivered.clone(), ring_bytes));
        let attached = vec![false; plan.hooks.len()];
        Ok(Probes {
            ebpf,
            hooks,
            attached,
            links: Vec::new(),
            tracked,
            typed,
            counters,
            delivered,
            drain,
            clock,
            missed: Missed::new(plan.missed),
            logger,
        })
    }

    /// Attaches every hook that is not attached. A hook that fails becomes absent, with its errno as the reason.
    ///
    /// # Errors
    /// [`ProbeError::NothingAttached`] when no hook attached.
    pub fn attach(&mut self) -> Result<(), ProbeError> {
        for (hook, attached) in self.hooks.iter_mut().zip(&mut self.attached) {
            let Some(symbol) = hook.symbol.as_deref().filter(|_| !*attached) else { continue };
            let planned_kind = match hook.kind {
                HookKind::TypedTracepoint => HookKind::RawTracepoint,
                _ => HookKind::Kprobe,
            };
            let by_types = self.typed.fd(hook.program).map(sys::attach_tracing);
            let outcome = match by_types {
                Some(Ok(link)) => Ok(Link::Typed { _link: link }),
                Some(Err(error)) => {
                    self.typed.refuse(hook.program, error.to_string());
                    hook.kind = planned_kind;
                    hook.reason.push_str(&format!("; without typed arguments ({error})"));
                    load_program(&mut self.ebpf, hook)?;
                    attach(&mut self.ebpf, hook, symbol)
                }
                None => attach(&mut self.ebpf, hook, symbol),
            };
            match outcome {
                Ok(link) => {
                    self.links.push(link);
                    *attached = true;
                }
                Err(error) => {
                    hook.reason = attach_reason(&error);
                    hook.symbol = None;
                }
            }
        }
        if self.links.is_empty() { Err(ProbeError::NothingAttached { why: nothing_reason(&self.hooks) }) } else { Ok(()) }
    }

    /// Detaches everything: the kernel runs none of our code until the next [`Probes::attach`]. Programs stay loaded.
    ///
    /// Each kprobe waits for grace periods of the kernel while it goes; they wait side by side.
    pub fn detach(&mut self) {
        if self.links.is_empty() {
            return;
        }
        self.missed.before_detach(&self.ebpf, &self.hooks);
        std::thread::scope(|scope| {
            for link in self.links.drain(..) {
                scope.spawn(move || drop(link));
            }
        });
        self.attached.fill(false);
    }

    /// Hooks with their state and hits.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the counters cannot be read.
    pub fn hooks(&self) -> Result<Vec<HookState>, ProbeError> {
        let counters = Counters::read(&self.counters)?;
        let state = |(planned, attached): (&PlannedHook, &bool)| HookState {
            planned: planned.clone(),
            attached: *attached,
            hits: counters.hits(planned.program),
        };
        Ok(self.hooks.iter().zip(&self.attached).map(state).collect())
    }

    /// Hits since loading, by hook, for the hooks that this kernel has.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the counters cannot be read.
    pub fn hits(&self) -> Result<Vec<(&'static str, u64)>, ProbeError> {
        let counters = Counters::read(&self.counters)?;
        let present = self.hooks.iter().filter(|hook| hook.symbol.is_some());
        Ok(present.map(|hook| (hook.hook, counters.hits(hook.program))).collect())
    }

    /// Hits since loading, by hook, one number per CPU, for the hooks that this kernel has.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the counters cannot be read.
    pub fn hits_by_cpu(&self) -> Result<Vec<(&'static str, Vec<u64>)>, ProbeError> {
        let counters = Counters::read(&self.counters)?;
        let present = self.hooks.iter().filter(|hook| hook.symbol.is_some());
        Ok(present.map(|hook| (hook.hook, counters.hits_by_cpu(hook.program))).collect())
    }

    /// Records attempted, delivered and lost since loading. After a last drain, attempted = delivered + lost.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the counters cannot be read.
    pub fn losses(&self) -> Result<Losses, ProbeError> {
        let kinds = Counters::read(&self.counters)?.losses(&self.delivered);
        Ok(Losses { kinds, missed_probes: self.missed.total(&self.ebpf, &self.typed, &self.hooks) })
    }

    /// The reader's end of the ring, to be drained elsewhere. `None` when it was taken before.
    pub fn take_drain(&mut self) -> Option<Drain> {
        self.drain.take()
    }

    /// Hands the records in the ring to `sink`, see [`Drain::drain`]. Nothing when the drain was taken.
    pub fn drain(&mut self, sink: impl FnMut(&[u8])) -> u64 {
        self.drain.as_mut().map_or(0, |drain| drain.drain(sink))
    }

    /// The proof that the probes' clock is `CLOCK_MONOTONIC`.
    pub fn clock_check(&self) -> ClockCheck {
        self.clock
    }

    /// Writes what the programs logged to standard error, where [`Config::debug`] is set.
    pub fn flush_debug(&mut self) {
        if let Some(logger) = &mut self.logger {
            logger.flush();
        }
    }

    /// The loaded object.
    pub(super) fn ebpf_mut(&mut self) -> &mut Ebpf {
        &mut self.ebpf
    }

    /// Records the scheduling of a thread.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the set is full.
    pub fn track_pid(&mut self, tid: u32) -> Result<(), ProbeError> {
        self.tracked.pids.add(tid)
    }

    /// As [`Probes::track_pid`], for a thread that polls: also everything that takes its CPU, from begin to end.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the set is full.
    pub fn track_poller(&mut self, tid: u32) -> Result<(), ProbeError> {
        self.tracked.pids.set(tid, TRACKED_POLLER)
    }

    /// Stops recording a thread's scheduling.
    ///
    /// # Errors
    /// [`ProbeError::Map`].
    pub fn untrack_pid(&mut self, tid: u32) -> Result<(), ProbeError> {
        self.tracked.pids.remove(tid)
    }

    /// Records the completion handlers of a process's CQs.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the set is full.
    pub fn track_tgid(&mut self, tgid: u32) -> Result<(), ProbeError> {
        self.tracked.tgids.add(tgid)
    }

    /// Stops recording a process's completion handlers.
    ///
    /// # Errors
    /// [`ProbeError::Map`].
    pub fn untrack_tgid(&mut self, tgid: u32) -> Result<(), ProbeError> {
        self.tracked.tgids.remove(tgid)
    }

    /// Records the rxe events of a queue pair.
    ///
    /// # Errors
    /// [`ProbeError::Map`] when the set is full.
    pub fn track_qpn(&mut self, qpn: u32) -> Result<(), ProbeError> {
        self.tracked.qpns.add(qpn)
    }

    /// Stops recording a queue pair's rxe events.
    ///
    /// # Errors
    /// [`ProbeError::Map`].
    pub fn untrack_qpn(&mut self, qpn: u32) -> Result<(), ProbeError> {
        self.tracked.qpns.remove(qpn)
    }

    /// Records a process: its CQs and the scheduling of all threads that it has now. Returns the threads.
    ///
    /// # Errors
    /// [`ProbeError::NoProcess`] when it is gone, [`ProbeError::Map`] when a set is full.
    pub fn track_process(&mut self, pid: u32) -> Result<Vec<u32>, ProbeError> {
        let threads = threads_of(pid)?;
        self.track_tgid(pid)?;
        for thread in &threads {
            self.track_pid(*thread)?;
        }
        Ok(threads)
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.detach();
    }
}

fn attach(ebpf: &mut Ebpf, hook: &PlannedHook, symbol: &str) -> Result<Link, ProgramError> {
    let program = ebpf.program_mut(hook.program.symbol()).ok_or(ProgramError::NotLoaded)?;
    match hook.kind {
        HookKind::RawTracepoint => {
            let program: &mut RawTracePoint = program.try_into()?;
            let id = program.attach(symbol)?;
            Ok(Link::Tracepoint { _link: program.take_link(id)? })
        }
        // Typed programs are attached by their own descriptors.
        _ => {
            let program: &mut KProbe = program.try_into()?;
            let id = program.attach(symbol, 0)?;
            Ok(Link::Kprobe { _link: program.take_link(id)? })
        }
    }
}

/// The first reasons why hooks are absent.
fn nothing_reason(hooks: &[PlannedHook]) -> String {
    let reasons: Vec<String> = hooks.iter().take(3).map(|hook| format!("{}: {}", hook.hook, hook.reason)).collect();
    if reasons.is_empty() { "the level has no probe".to_owned() } else { reasons.join("; ") }
}
