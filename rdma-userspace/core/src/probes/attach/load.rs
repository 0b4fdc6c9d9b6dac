//! Loading the BPF object into the kernel: the values of its globals, the sizes of its maps, its programs.

use aya::programs::{Program as Loaded, ProgramError};
use aya::{Ebpf, EbpfLoader};
use capture::Level;
use ebpf_probes::Program;
use ebpf_probes::config::{COUNTERS_MAP, RING_MAP};

use super::config::Config;
use super::object::object;
use crate::machine::Root;
use crate::machine::proc_text::cpu_list;
use crate::probes::ProbeError;
use crate::probes::drivers::{TASKLETS_MAX, WORKS_MAX};
use crate::probes::plan::{Plan, PlannedHook};

/// Values for the programs: offsets, addresses, switches, by the name of the object's global.
pub(super) fn globals(plan: &Plan, config: &Config) -> Vec<(String, Vec<u8>)> {
    let padded = |addresses: &[u64], length| -> Vec<u64> { addresses.iter().copied().chain(std::iter::repeat(0)).take(length).collect() };
    let (tasklets, works) = (padded(&plan.tasklets, TASKLETS_MAX), padded(&plan.works, WORKS_MAX));
    let (auto_track, auto_name_0, auto_name_1) = config.auto_track.globals();
    let switches = [
        ("SWITCH_TELLS_STATE", u32::from(plan.switch_tells_state)),
        ("TASKLET_FILTER", u32::from(!plan.all_tasklets)),
        ("WORK_FILTER", u32::from(!plan.all_works)),
        ("IRQ_FILTER", u32::from(!config.irqs.is_empty())),
        ("EVERY_END", u32::from(plan.level >= Level::Full)),
        ("TASKLET_SOFTIRQS", u32::from(needs_tasklet_softirqs(plan))),
        ("TRACE_ALL_QPS", u32::from(config.trace_all_qps)),
        ("TRACE_ALL_CQS", u32::from(config.trace_all_cqs)),
        ("IFINDEX", config.ifindex),
        ("TRACK_BY_PROCESS", u32::from(config.by_process)),
        ("AUTO_TRACK", auto_track),
    ];
    let log_level = if config.debug { aya_log::Level::Debug as u8 } else { 0 };
    let mut globals = vec![(aya_log::LEVEL.to_owned(), vec![log_level])];
    globals.extend(plan.offsets.iter().map(|(name, offset)| (name.to_owned(), offset.bytes.to_ne_bytes().to_vec())));
    globals.extend(switches.map(|(name, value)| (name.to_owned(), value.to_ne_bytes().to_vec())));
    for (name, addresses) in [("TASKLET_FUNC", tasklets), ("WORK_FUNC", works)] {
        globals.extend(addresses.iter().enumerate().map(|(at, address)| (format!("{name}_{at}"), address.to_ne_bytes().to_vec())));
    }
    globals.extend(
        [("AUTO_NAME_0", auto_name_0), ("AUTO_NAME_1", auto_name_1)].map(|(name, half)| (name.to_owned(), half.to_ne_bytes().to_vec())),
    );
    globals
}

/// Whether softirqs that run tasklets are worth a record of their own: where each tasklet has one they say nothing new.
fn needs_tasklet_softirqs(plan: &Plan) -> bool {
    let tells_tasklets = plan.hooks.iter().any(|hook| hook.program == Program::TaskletEntry && hook.symbol.is_some());
    plan.level >= Level::Full || plan.threaded_irqs || !tells_tasklets
}

/// Makes the maps and reads the programs; none is loaded yet.
pub(super) fn load_object(globals: &[(String, Vec<u8>)], ring_bytes: u32) -> Result<Ebpf, ProbeError> {
    let mut loader = EbpfLoader::new();
    loader.map_max_entries(RING_MAP, ring_bytes).map_max_entries(COUNTERS_MAP, possible_cpus());
    for (name, bytes) in globals {
        loader.override_global(name, bytes.as_slice(), true);
    }
    loader.load(object()).map_err(ProbeError::from_object)
}

/// Loads the program of a hook as what the object says that it is.
pub(super) fn load_program(ebpf: &mut Ebpf, hook: &PlannedHook) -> Result<(), ProbeError> {
    let name = hook.program.symbol();
    let program = ebpf.program_mut(name).ok_or(ProbeError::NotInObject { what: "program", name })?;
    let loaded = match program {
        Loaded::KProbe(program) => program.load(),
        Loaded::RawTracePoint(program) => program.load(),
        _ => Err(ProgramError::UnexpectedProgramType),
    };
    loaded.map_err(|error| ProbeError::from_program("load", name, error))
}

/// Kernels before 5.11 count BPF maps against the limit of locked memory.
pub(super) fn lift_memlock() {
    let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `unlimited` is valid for the whole call. A refusal shows up as a map that cannot be created.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &unlimited) };
}

/// CPUs that may ever be there: numbers of CPUs are below this.
fn possible_cpus() -> u32 {
    let possible = Root::live().text("/sys/devices/system/cpu/possible").and_then(|list| cpu_list(&list));
    let last = possible.unwrap_or_default().into_iter().max();
    last.map_or_else(|| std::thread::available_parallelism().map_or(1, |count| count.get() as u32), |last| last + 1)
}

pub(super) fn page_bytes() -> u32 {
    // SAFETY: sysconf has no precondition.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u32::try_from(bytes).unwrap_or(4096)
}
