//! The probes as a session uses them: attached for traced rounds, gone for untraced ones, drained in between.
//! Where they cannot be had, the session goes on without them and says which stages are missing and why.
use crate::machine::Root;
use crate::probes::{Arrival, Config, HookState, KindLoss, Losses, Plan, ProbeError, Probes, SyscallCounter};
use capture::Level;
use capture::manifest::{ClockCheck, KernelThread, LossRow, PlanRow};
use std::collections::BTreeMap;

/// Looks at the ring until no record is under way.
const SETTLE_LOOKS: u32 = 100;

/// What one traced round gave.
#[derive(Debug, Default)]
pub struct RoundRecords {
    /// Raw records, back to back, in ring order.
    pub bytes: Vec<u8>,
    /// Hits per hook within the round.
    pub hits: Vec<(String, u64)>,
    /// Records by kind within the round.
    pub losses: Vec<LossRow>,
    /// Hits that the kernel dropped within the round; `None`: this kernel does not tell.
    pub missed: Option<u64>,
}

/// Which probes a session loads.
#[derive(Clone, Debug)]
pub struct ProbeSelection {
    /// The level.
    pub level: Level,
    /// The packets with which the operations end.
    pub arrivals: Vec<Arrival>,
    /// Kernel driver of the measured device; `None`: not known, and every driver's hooks are attached.
    pub device_driver: Option<String>,
    /// Size of the ring in bytes (a power of two of at least a page is taken).
    pub ring_bytes: u32,
}

impl ProbeSelection {
    /// What the passive side needs: the client's requests reach it.
    pub fn for_server(level: Level, device_driver: Option<String>) -> ProbeSelection {
        ProbeSelection { level, arrivals: vec![Arrival::Request], device_driver, ring_bytes: Config::default().ring_bytes }
    }

    /// None.
    pub fn none() -> ProbeSelection {
        ProbeSelection { level: Level::None, arrivals: Vec::new(), device_driver: None, ring_bytes: Config::default().ring_bytes }
    }
}

/// The probes, or the reason why there are none.
pub struct ProbeSession {
    level: Level,
    probes: Result<Probes, String>,
    attached: bool,
    /// The plan as it was when the probes were attached last.
    plan: Vec<PlanRow>,
    hits: BTreeMap<&'static str, u64>,
    losses: Losses,
    syscalls: Option<SyscallCounter>,
}

impl ProbeSession {
    /// Loads the probes of a selection. Never fails: without probes a session still measures.
    pub fn load(selection: &ProbeSelection) -> ProbeSession {
        let level = selection.level;
        let probes = match level {
            Level::None => Err("level none, so no probes were asked for".to_owned()),
            _ => load(selection),
        };
        ProbeSession { level, probes, attached: false, plan: Vec::new(), hits: BTreeMap::new(), losses: Losses::default(), syscalls: None }
    }

    /// Is there anything to attach?
    pub fn can_trace(&self) -> bool {
        self.probes.is_ok()
    }

    /// What the user should know before the run.
    pub fn summary(&self) -> String {
        match &self.probes {
            Ok(_) => {
                let plan = self.plan();
                let absent = plan.iter().filter(|row| row.symbol.is_none()).count();
                format!(
                    "level {}: {} hooks, {absent} more are not on this kernel or not of this device (the report has the plan)",
                    self.level,
                    plan.len() - absent
                )
            }
            Err(why) => format!("none, so every stage inside the kernel is absent: {why}"),
        }
    }

    /// Why there are no probes; `None`: there are some.
    pub fn absence(&self) -> Option<&str> {
        self.probes.as_ref().err().map(String::as_str)
    }

    /// A sentence for the manifest where there are no probes.
    pub fn note(&self) -> Option<String> {
        self.probes.as_ref().err().map(|why| format!("no probes: {why}; every stage inside the kernel is absent"))
    }

    /// The plan as the manifest carries it, with what the last attaching made of it; the hits are counted by the recording.
    pub fn plan(&self) -> Vec<PlanRow> {
        if !self.plan.is_empty() {
            return self.plan.clone();
        }
        let hooks = self.probes.as_ref().ok().and_then(|probes| probes.hooks().ok()).unwrap_or_default();
        hooks.iter().map(plan_row).collect()
    }

    /// Proof that the probes' clock is ours.
    pub fn clock_check(&self) -> Option<ClockCheck> {
        let check = self.probes.as_ref().ok()?.clock_check();
        Some(ClockCheck { before_ns: check.before_ns, kernel_ns: check.kernel_ns, after_ns: check.after_ns })
    }

    /// Records the completion events of this process, the scheduling of a thread and the rxe events of a queue pair; of a thread that
    /// polls also everything that takes its CPU.
    ///
    /// # Errors
    /// When a set of the probes is full.
    pub fn track(&mut self, tgid: u32, tid: u32, qpn: u32, polls: bool) -> Result<(), ProbeError> {
        let Ok(probes) = &mut self.probes else { return Ok(()) };
        probes.track_tgid(tgid)?;
        if polls {
            probes.track_poller(tid)?;
        } else {
            probes.track_pid(tid)?;
        }
        probes.track_qpn(qpn)
    }

    /// Records the scheduling of kernel threads; those that were recorded are returned for the manifest.
    ///
    /// # Errors
    /// When the set of threads is full.
    pub fn track_kernel_threads(&mut self, threads: Vec<KernelThread>) -> Result<Vec<KernelThread>, ProbeError> {
        let Ok(probes) = &mut self.probes else { return Ok(Vec::new()) };
        for thread in &threads {
            probes.track_pid(thread.pid)?;
        }
        Ok(threads)
    }

    /// Stops recording a thread and a queue pair. What was not recorded does not matter.
    pub fn untrack(&mut self, tid: u32, qpn: u32) {
        if let Ok(probes) = &mut self.probes {
            let _ = probes.untrack_pid(tid);
            let _ = probes.untrack_qpn(qpn);
        }
    }

    /// Attaches the probes, or drops every link. Tells whether that changed anything.
    ///
    /// # Errors
    /// When not one hook attaches.
    pub fn set_attached(&mut self, attached: bool) -> Result<bool, ProbeError> {
        let Ok(probes) = &mut self.probes else { return Ok(false) };
        if attached == self.attached {
            return Ok(false);
        }
        if attached {
            probes.attach()?;
        } else {
            probes.detach();
        }
        self.attached = attached;
        if attached {
            self.plan = probes.hooks()?.iter().map(plan_row).collect();
        }
        // What happened outside of a round belongs to none.
        self.discard_records()?;
        Ok(true)
    }

    /// Counts the system calls of a thread of ours from now on, until [`ProbeSession::syscalls`].
    ///
    /// # Errors
    /// A sentence why that is not possible here.
    pub fn count_syscalls(&mut self, tid: u32) -> Result<(), String> {
        self.probes.as_ref().map_err(Clone::clone)?;
        let text = |error: ProbeError| capture::text::chain(&error);
        let counter = match self.syscalls.take() {
            Some(counter) => counter,
            None => SyscallCounter::load().map_err(text)?,
        };
        self.syscalls.insert(counter).begin(tid).map_err(text)
    }

    /// Stops counting, and gives the calls by number.
    ///
    /// # Errors
    /// A sentence why they cannot be read.
    pub fn syscalls(&mut self) -> Result<Vec<(u32, u64)>, String> {
        let counter = self.syscalls.as_mut().ok_or_else(|| "nothing was counted".to_owned())?;
        counter.end().map_err(|error| capture::text::chain(&error))
    }

    /// Throws away what has come since the last time.
    ///
    /// # Errors
    /// As [`ProbeSession::take_records`].
    pub fn discard_records(&mut self) -> Result<(), ProbeError> {
        self.take_records().map(drop)
    }

    /// What has come since the last time.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub fn take_records(&mut self) -> Result<RoundRecords, ProbeError> {
        let Ok(probes) = &mut self.probes else { return Ok(RoundRecords::default()) };
        let mut records = Vec::new();
        let mut drain = |probes: &mut Probes| {
            probes.drain(|record| records.extend_from_slice(record));
            probes.losses()
        };
        // While probes are attached a record may be attempted between the look at the ring and the look at the counters: look again, so
        // that rounds begin and end with attempted = delivered + lost.
        let mut losses = drain(probes)?;
        for _ in 0..SETTLE_LOOKS {
            if losses.kinds.iter().all(|kind| kind.attempted == kind.delivered + kind.lost) {
                break;
            }
            losses = drain(probes)?;
        }
        let hits: BTreeMap<&'static str, u64> = probes.hits()?.into_iter().collect();
        let round = RoundRecords {
            bytes: records,
            hits: hits.iter().map(|(hook, now)| ((*hook).to_owned(), now - self.hits.get(hook).copied().unwrap_or(0).min(*now))).collect(),
            losses: since(&losses, &self.losses),
            missed: losses.missed_probes.map(|now| now.saturating_sub(self.losses.missed_probes.unwrap_or(0))),
        };
        self.hits = hits;
        self.losses = losses;
        Ok(round)
    }
}

fn load(selection: &ProbeSelection) -> Result<Probes, String> {
    let plan = Plan::for_kernel(Root::live(), selection.level).map_err(|error| capture::text::chain(&error))?;
    let plan = plan.for_arrivals(&selection.arrivals);
    let plan = match &selection.device_driver {
        Some(driver) => plan.for_device_of(driver),
        None => plan,
    };
    let config = Config { ring_bytes: selection.ring_bytes, ..Config::default() };
    Probes::load(&plan, &config).map_err(|error| capture::text::chain(&error))
}

/// A row of the manifest from a hook as it is now. Hits start at zero: the recording adds those of its own rounds.
fn plan_row(hook: &HookState) -> PlanRow {
    hook.row(hook.attached, 0)
}

fn since(now: &Losses, before: &Losses) -> Vec<LossRow> {
    let row = |kind: &KindLoss| {
        let old = before.of(kind.kind);
        LossRow {
            kind: kind.kind.name().to_owned(),
            attempted: kind.attempted.saturating_sub(old.attempted),
            delivered: kind.delivered.saturating_sub(old.delivered),
            lost: kind.lost.saturating_sub(old.lost),
        }
    };
    now.kinds.iter().map(row).filter(|row| row.attempted + row.delivered > 0).collect()
}
