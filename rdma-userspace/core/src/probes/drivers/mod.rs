//! Drivers as data: which hooks a driver has, in which order candidates are tried, and how a hook finds the CQ.
//!
//! A new driver is one more file here, its programs in `ebpf-probes`, and a fixture in the planner's tests.

mod bnxt_re;
mod cxgb4;
mod efa;
mod erdma;
mod generic;
mod hns;
mod irdma;
mod mana;
mod mlx4;
mod mlx5;
mod pvrdma;
mod qedr;
mod rdmavt;
mod rxe;
mod siw;

use capture::{CompletionShape, Level};
use ebpf_probes::{Kind, Program};

/// How a hook is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// A kernel tracepoint, raw.
    RawTracepoint,
    /// Entry of a function.
    Kprobe,
    /// Return of a function.
    Kretprobe,
    /// Entry of a function by a trampoline with typed arguments: what a kprobe of the plan becomes where the kernel can.
    Fentry,
    /// A kernel tracepoint with typed arguments: what a raw one of the plan becomes where the kernel can.
    TypedTracepoint,
}

impl HookKind {
    /// Its name in the plan.
    pub const fn name(self) -> &'static str {
        match self {
            HookKind::RawTracepoint => "raw_tp",
            HookKind::Kprobe => "kprobe",
            HookKind::Kretprobe => "kretprobe",
            HookKind::Fentry => "fentry",
            HookKind::TypedTracepoint => "tp_btf",
        }
    }
}

/// What a hook waits for besides its symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    Always,
    /// Some loaded driver completes through a tasklet.
    Tasklet,
    /// Some loaded driver completes through a work item.
    Work,
}

/// One way to get a hook's events.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Tracepoint or function.
    pub symbol: &'static str,
    /// The program for it.
    pub program: Program,
    /// Types that each leading argument may have, where the program depends on them; checked where BTF describes the function.
    pub arguments: &'static [&'static [&'static str]],
}

/// The packet with which an operation ends for its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A request of the peer: its SEND or WRITE.
    Request,
    /// The answer to an own request: an acknowledgement, data that was read, an atomic's result.
    Answer,
}

impl Arrival {
    /// The one that ends the client's operation, by whether the server answers with an operation of its own.
    pub const fn of(server_answers: bool) -> Arrival {
        if server_answers { Arrival::Request } else { Arrival::Answer }
    }

    /// For readers.
    const fn text(self) -> &'static str {
        match self {
            Arrival::Request => "a request of the peer",
            Arrival::Answer => "an answer",
        }
    }

    /// Why a hook on such packets is left out.
    pub(super) fn unwanted(self) -> String {
        format!("no operation asked for ends with {}", self.text())
    }
}

/// A place in the kernel that gives events.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    /// Its name in plans and reports, beginning with the event's name in the stage model.
    pub name: &'static str,
    /// The lowest level that has it.
    pub level: Level,
    /// How it is attached.
    pub kind: HookKind,
    /// True: a kernel whose driver is loaded must have it.
    pub mandatory: bool,
    /// What it waits for.
    pub condition: Condition,
    /// In order of preference.
    pub candidates: &'static [Candidate],
    /// What makes this hook superfluous where the kernel has it.
    pub covered_by: Option<Cover>,
    /// Only operations that end with such a packet need it; `None`: all do.
    pub arrival: Option<Arrival>,
    /// Wanted also where a device of another driver is measured: what is told of it does not depend on the device.
    pub for_every_device: bool,
    /// What it means when the driver is loaded and has none of the functions; `None`: it ought to have one.
    pub if_missing: Option<&'static str>,
    /// The lowest level that has it where interrupt handlers run in threads (PREEMPT_RT, `threadirqs`); `None`: the usual one.
    pub level_if_threaded: Option<Level>,
    /// A function of the driver, and the lowest level that has the hook where the kernel lacks it; `None`: the usual one.
    pub level_without: Option<(&'static str, Level)>,
    /// Offsets (names of the object's globals) without which it gives nothing.
    pub needs: &'static [&'static str],
    /// Kinds of records.
    pub gives: &'static [Kind],
    /// What it means when it never fires.
    pub silence: Option<&'static str>,
}

/// What another hook already tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// A function that this driver has on newer kernels.
    Function(&'static str),
    /// A tracepoint of the kernel.
    Tracepoint(&'static str),
}

/// How far a driver's hooks have been tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// Its events have been seen and checked.
    Fires,
    /// Its events have been seen and checked on an emulated card, under the kernel's own driver.
    FiresEmulated,
    /// Its hooks attach without a device; that they fire has not been seen.
    Attaches,
    /// Written from the driver's source; no kernel at hand has the driver.
    Source,
}

impl Tried {
    /// For readers.
    pub const fn text(self) -> &'static str {
        match self {
            Tried::Fires => "seen firing",
            Tried::FiresEmulated => "seen firing on an emulated card",
            Tried::Attaches => "attaches without a device; firing not seen",
            Tried::Source => "written from the source; never attached",
        }
    }
}

/// The chain from the device to the completion handler, told by the symbols that the kernel has.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    /// Every one of these exists.
    pub has: &'static [&'static str],
    /// None of these exists.
    pub lacks: &'static [&'static str],
    /// Its steps, for readers.
    pub text: &'static str,
}

/// The driver in user space (libibverbs loads `lib<name>-rdmav<N>.so`) of a driver's devices.
#[derive(Clone, Copy, Debug)]
pub enum Provider {
    /// The same for all of them.
    One(&'static str),
    /// By the kernel driver of the device, as sysfs names it.
    ByDevice(&'static [(&'static str, &'static str)]),
}

/// A driver, or a layer that all drivers share.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// Its name.
    pub name: &'static str,
    /// The driver's own modules: it is there when one of them is loaded. Empty for the kernel itself.
    pub modules: &'static [&'static str],
    /// Other modules whose functions the hooks may attach to.
    pub also: &'static [&'static str],
    /// Drivers of the bus functions of its devices, as sysfs names them, beside the modules above.
    pub device_drivers: &'static [&'static str],
    /// Its counterpart in user space; `None` for the layers that all drivers share.
    pub provider: Option<Provider>,
    /// How it comes from its interrupt to the completion handler; `None` for the layers that all drivers share.
    pub completion: Option<CompletionShape>,
    /// A function of the driver's own module, by which it is found when it is built into the kernel.
    pub mark: &'static str,
    /// How it completes on a kernel, by what that has; the first that fits.
    pub chains: &'static [Chain],
    /// How far it has been tried.
    pub tried: Tried,
    /// The hooks.
    pub hooks: &'static [Hook],
    /// Tasklet functions that lead to a completion handler.
    pub tasklets: &'static [&'static str],
    /// Work functions that lead to a completion.
    pub works: &'static [&'static str],
    /// Where its completions run and how a hook finds the CQ, for readers.
    pub contexts: &'static str,
}

/// Every driver that is known, the shared layers first.
pub const DRIVERS: &[Driver] = &[
    generic::KERNEL,
    generic::UVERBS,
    rxe::RXE,
    siw::SIW,
    mlx5::MLX5,
    mlx4::MLX4,
    irdma::IRDMA,
    bnxt_re::BNXT_RE,
    efa::EFA,
    erdma::ERDMA,
    hns::HNS,
    mana::MANA,
    qedr::QEDR,
    cxgb4::CXGB4,
    pvrdma::PVRDMA,
    rdmavt::RDMAVT,
];

/// Tasklet functions that the programs can tell apart (`TASKLET_FUNC_*`).
pub const TASKLETS_MAX: usize = 8;
/// Work functions that the programs can tell apart (`WORK_FUNC_*`).
pub const WORKS_MAX: usize = 4;
/// A function that only kernels with forced interrupt threads have.
pub const THREADED_SYMBOL: &str = "rt_spin_lock";

/// What it means when a hook on a hardware driver's notification never fires.
const SILENT_WHILE_POLLING: &str = "silent by design while polling: no CQ is armed, so the device raises no interrupt, and the kernel runs \
                                    nothing per completion; event rounds with the same probe are the control, which needs a device";

/// Leading arguments of an interrupt handler.
const IRQ_ARGUMENTS: &[&[&str]] = &[&["int"], &["void *"]];
/// Argument of a tasklet's function; a number before 5.9.
const TASKLET_ARGUMENT: &[&[&str]] = &[&["struct tasklet_struct *", "long unsigned int"]];

/// Modules whose BTF and functions matter.
pub fn modules() -> Vec<&'static str> {
    let mut modules: Vec<_> = DRIVERS.iter().flat_map(|driver| driver.modules.iter().chain(driver.also)).copied().collect();
    modules.sort_unstable();
    modules.dedup();
    modules
}

impl Driver {
    /// Whether devices of this kernel driver (as sysfs names it: the driver of the bus function, or the software device's module)
    /// complete through the hooks here. The layers that all drivers share serve every device.
    pub fn serves(&self, device_driver: &str) -> bool {
        self.is_shared() || self.device_names().any(|name| name == device_driver)
    }

    /// The kernel drivers that its devices may have.
    fn device_names(&self) -> impl Iterator<Item = &'static str> {
        self.modules.iter().chain(self.also).chain(self.device_drivers).copied()
    }

    /// A layer that all drivers share.
    fn is_shared(&self) -> bool {
        [generic::KERNEL.name, generic::UVERBS.name].contains(&self.name)
    }
}

/// The driver whose hooks tell of the devices of this kernel driver; `None`: not known here, and they may complete through any of them.
pub fn of_device(device_driver: &str) -> Option<&'static Driver> {
    DRIVERS.iter().find(|driver| !driver.is_shared() && driver.serves(device_driver))
}

/// How devices of this kernel driver come from the interrupt to the completion handler; `None`: not known here.
pub fn completion_shape(device_driver: &str) -> Option<CompletionShape> {
    of_device(device_driver)?.completion
}

/// Name of the provider that serves devices of this kernel driver; `None`: not known here.
pub fn provider_of(device_driver: &str) -> Option<&'static str> {
    match of_device(device_driver)?.provider? {
        Provider::One(name) => Some(name),
        Provider::ByDevice(names) => names.iter().find(|(driver, _)| *driver == device_driver).map(|(_, name)| *name),
    }
}

impl Hook {
    /// What most hooks share: a kprobe of level std that a kernel with the driver must have.
    pub(super) const KPROBE: Hook = Hook {
        name: "",
        level: Level::Std,
        kind: HookKind::Kprobe,
        mandatory: true,
        condition: Condition::Always,
        candidates: &[],
        covered_by: None,
        arrival: None,
        for_every_device: false,
        if_missing: None,
        level_if_threaded: None,
        level_without: None,
        needs: &[],
        gives: &[],
        silence: None,
    };
    /// As [`Hook::KPROBE`], for a raw tracepoint.
    pub(super) const TRACEPOINT: Hook = Hook { kind: HookKind::RawTracepoint, ..Hook::KPROBE };
    /// A step of a hardware driver's notification.
    pub(super) const STEP: Hook = Hook { silence: Some(SILENT_WHILE_POLLING), ..Hook::KPROBE };
    /// K1b: the driver's own interrupt handler. Where handlers are not threaded, K1 tells the same.
    pub(super) const IRQ: Hook = Hook { level: Level::Full, level_if_threaded: Some(Level::Std), gives: &[Kind::DriverIrq], ..Hook::STEP };
    /// K4 by the driver's own function, for kernels without the tasklet tracepoint.
    pub(super) const TASKLET: Hook =
        Hook { covered_by: Some(Cover::Tracepoint("tasklet_entry")), gives: &[Kind::DriverBottomHalf], ..Hook::STEP };
    /// The driver names the CQ, just before its handler.
    pub(super) const COMP: Hook = Hook { gives: &[Kind::DriverComp], ..Hook::STEP };
}

impl Candidate {
    /// A candidate whose arguments need no check.
    pub(super) const fn new(symbol: &'static str, program: Program) -> Self {
        Candidate { symbol, program, arguments: &[] }
    }

    /// A candidate whose leading arguments must have one of the given types.
    pub(super) const fn with(symbol: &'static str, program: Program, arguments: &'static [&'static [&'static str]]) -> Self {
        Candidate { symbol, program, arguments }
    }
}

/// Whether a symbol matters to any driver.
pub fn is_wanted(symbol: &str) -> bool {
    let of_hook = |hook: &Hook| {
        let covering = hook.covered_by.map(|cover| match cover {
            Cover::Function(name) | Cover::Tracepoint(name) => name,
        });
        covering == Some(symbol) || hook.candidates.iter().any(|candidate| candidate.symbol == symbol)
    };
    let of_driver = |driver: &Driver| {
        let mut of_chains = driver.chains.iter().flat_map(|chain| chain.has.iter().chain(chain.lacks));
        driver.hooks.iter().any(of_hook)
            || driver.tasklets.contains(&symbol)
            || driver.works.contains(&symbol)
            || driver.mark == symbol
            || driver.hooks.iter().any(|hook| hook.level_without.is_some_and(|(name, _)| name == symbol))
            || of_chains.any(|name| *name == symbol)
    };
    symbol == THREADED_SYMBOL || DRIVERS.iter().any(of_driver)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_program_but_those_that_are_never_attached_belongs_to_one_hook() {
        // Hits are counted by program: candidates of one hook may share one, because only one of them is attached.
        let mut seen = HashSet::new();
        for hook in DRIVERS.iter().flat_map(|driver| driver.hooks) {
            assert!(!hook.candidates.is_empty(), "{} has no candidate", hook.name);
            let of_hook: HashSet<_> = hook.candidates.iter().map(|candidate| candidate.program).collect();
            for program in of_hook {
                assert!(seen.insert(program), "{program:?} belongs to two hooks");
            }
        }
        let unused: Vec<_> = Program::ALL.iter().filter(|program| !seen.contains(program)).collect();
        assert_eq!(unused, [&Program::ClockProbe, &Program::Syscalls, &Program::CqLook, &Program::Generate]);
    }

    #[test]
    fn names_of_hooks_are_unique() {
        let mut seen = HashSet::new();
        for hook in DRIVERS.iter().flat_map(|driver| driver.hooks) {
            assert!(seen.insert(hook.name), "{} twice", hook.name);
        }
    }

    #[test]
    fn every_driver_says_how_it_completes_and_what_silence_means() {
        for driver in DRIVERS.iter().filter(|driver| !driver.modules.is_empty() && driver.name != "uverbs") {
            assert!(!driver.chains.is_empty() && !driver.contexts.is_empty(), "{}", driver.name);
            assert!(driver.completion.is_some(), "{}", driver.name);
            let last = driver.chains.last().expect("checked");
            assert!(last.has.is_empty() && last.lacks.is_empty(), "{}: the last chain must fit always", driver.name);
            if driver.tried != Tried::Fires {
                assert!(driver.hooks.iter().all(|hook| hook.silence.is_some()), "{}", driver.name);
            }
        }
    }

    #[test]
    fn a_device_belongs_to_one_driver() {
        let mut seen = HashSet::new();
        for driver in DRIVERS.iter().filter(|driver| !driver.is_shared()) {
            for name in driver.device_names() {
                assert!(seen.insert(name), "{name} twice");
                assert_eq!(of_device(name).map(|it| it.name), Some(driver.name));
            }
        }
        assert!(of_device("something_new").is_none() && of_device("unknown").is_none());
    }

    #[test]
    fn every_device_has_a_provider() {
        let cases = [
            ("rdma_rxe", "rxe"),
            ("siw", "siw"),
            ("mlx5_core", "mlx5"),
            ("mlx4_core", "mlx4"),
            ("ice", "irdma"),
            ("bnxt_en", "bnxt_re"),
            ("hns3", "hns"),
            ("hfi1", "hfi1verbs"),
            ("ib_qib", "ipathverbs"),
            ("vmw_pvrdma", "vmw_pvrdma"),
        ];
        for (driver, provider) in cases {
            assert_eq!(provider_of(driver), Some(provider), "{driver}");
        }
        assert_eq!(provider_of("something_new"), None);
        let devices = DRIVERS.iter().filter(|driver| !driver.is_shared()).flat_map(|driver| match driver.provider {
            Some(Provider::ByDevice(names)) => names.iter().map(|(device, _)| *device).collect::<Vec<_>>(),
            _ => driver.device_names().collect(),
        });
        assert!(devices.into_iter().all(|device| provider_of(device).is_some()));
    }

    #[test]
    fn completion_shapes_are_those_that_older_captures_were_read_by() {
        let mut both = 0;
        for driver in DRIVERS.iter().filter(|driver| !driver.is_shared()) {
            for name in driver.device_names() {
                if let Some(older) = CompletionShape::of_older_capture(name) {
                    assert_eq!(completion_shape(name), Some(older), "{name}");
                    both += 1;
                }
            }
        }
        // Every name that older captures carry is known here.
        let names = [
            "mlx5_core",
            "mlx5_ib",
            "mlx4_core",
            "mlx4_ib",
            "efa",
            "qedr",
            "qede",
            "mana",
            "mana_ib",
            "vmw_pvrdma",
            "cxgb4",
            "iw_cxgb4",
            "hns3",
            "hns_roce_hw_v2",
            "hns-roce-hw-v2",
            "hfi1",
            "qib",
            "ib_qib",
            "bnxt_en",
            "bnxt_re",
            "irdma",
            "ice",
            "i40e",
            "erdma",
            "rdma_rxe",
            "siw",
        ];
        assert!(names.iter().all(|name| completion_shape(name).is_some()));
        assert_eq!(both, names.len(), "of_older_capture knows others");
        assert_eq!(completion_shape("unknown"), None);
    }
}
