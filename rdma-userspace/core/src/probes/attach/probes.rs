//! Loading the object for a plan, and attaching and detaching its programs as often as rounds need it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use aya::Ebpf;
use aya::maps::{Array, RingBuf};
use aya::programs::{KProbe, ProgramError, RawTracePoint};
use aya::programs::{kprobe::KProbeLink, raw_trace_point::RawTracePointLink};
use ebpf_probes::config::{COUNTERS_MAP, RING_MAP};

use super::bpf_calls::attach_tracing;
use super::clock::{self, ClockCheck};
use super::config::Config;
use super::counters::{Counters, Losses, Rows};
use super::debug_log::{self, StderrLog};
use super::drain::{Delivered, Drain};
use super::hook_state::HookState;
use super::load::{globals, lift_memlock, load_object, load_program, page_bytes};
use super::missed::Missed;
use super::object::object;
use super::tracked_sets::TrackedSets;
use super::typed::Typed;
use crate::probes::drivers::HookKind;
use crate::probes::error::{ProbeError, attach_reason};
use crate::probes::plan::{Plan, PlannedHook};

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
    pub(super) tracked: TrackedSets,
    typed: Typed,
    counters: Rows,
    delivered: Arc<Delivered>,
    drain: Drain,
    clock: ClockCheck,
    missed: Missed,
    logger: Option<aya_log::EbpfLogger<StderrLog>>,
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
        let logger = if config.debug { Some(debug_log::logger(&mut ebpf)?) } else { None };
        let mut tracked = TrackedSets::take(&mut ebpf)?;
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
        let drain = Drain::new(ring, delivered.clone(), ring_bytes);
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
            let by_types = self.typed.fd(hook.program).map(attach_tracing);
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

    /// Hands the records in the ring to `sink`, see [`Drain::drain`].
    pub fn drain(&mut self, sink: impl FnMut(&[u8])) -> u64 {
        self.drain.drain(sink)
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
