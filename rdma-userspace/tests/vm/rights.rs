//! Rights in a guest: an ordinary user with CAP_BPF and CAP_PERFMON gets the kernel stages, one without is told what is missing, and
//! no thread but that of the probes keeps the rights.
//!
//! Ignored by default: `cargo xtask test` runs them inside the guest, as root.

use crate::support::program::{End, Program, rdmascope, wait_for};
use analysis::report::model::{Report, RunReport};
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set, set_capabilities, set_keep_capabilities, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(400);
const NOBODY: u32 = 65_534;
/// Bits of `linux/capability.h`.
const PERFMON_AND_BPF: u64 = 1 << 38 | 1 << 39;

/// Starts the program as nobody with these rights (user and rights belong to the thread that starts it).
fn as_nobody(rights: CapabilitySet, arguments: Vec<String>) -> Program {
    std::thread::spawn(move || {
        let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        set_keep_capabilities(true).expect("kept over the change of user");
        set_thread_groups(&[]).expect("no groups");
        set_thread_res_gid(gid, gid, gid).expect("its group");
        set_thread_res_uid(uid, uid, uid).expect("its user");
        set_capabilities(None, CapabilitySets { effective: rights, permitted: rights, inheritable: rights }).expect("its rights");
        for one in rights.iter() {
            configure_capability_in_ambient_set(one, true).expect("handed on to the program");
        }
        rdmascope(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    })
    .join()
    .expect("starts")
}

fn arguments(out: &Path, samples: u64) -> Vec<String> {
    let out = out.to_str().expect("a plain path").to_owned();
    let words = ["run", "--loopback", "--device", "rxe0", "--op", "send", "--mode", "event", "--no-report", "-n"];
    words.iter().map(|it| (*it).to_owned()).chain([samples.to_string(), "--out".to_owned(), out]).collect()
}

/// A folder in which everybody may write.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("opened");
    folder
}

fn measured(rights: CapabilitySet) -> (End, Report) {
    let folder = open_folder();
    let out = folder.path().join("out");
    let end = as_nobody(rights, arguments(&out, 400)).end_within(PATIENCE);
    assert_eq!(end.code, Some(0), "{}", end.text);
    println!("{}", end.text);
    let report = analysis::report::of_folder(&out).expect("the captures open");
    (end, report)
}

fn stages(run: &RunReport) -> Vec<&str> {
    let breakdown = run.breakdown.as_ref();
    breakdown.iter().flat_map(|it| &it.stages).filter(|it| it.n > 0).map(|it| it.stage.name()).collect()
}

#[test]
#[ignore = "runs in the VM"]
fn two_capabilities_are_enough_for_the_kernel_stages() {
    // Debian's 3 keeps kprobes from everybody but root; the plan says so.
    std::fs::write("/proc/sys/kernel/perf_event_paranoid", "2").expect("root in the guest");
    let (_, report) = measured(CapabilitySet::BPF | CapabilitySet::PERFMON);
    let run = &report.runs[0];
    for row in &run.manifest.plan {
        println!("{}: {:?}, attached {}, {:?} hits; {}", row.hook, row.symbol, row.attached, row.hits, row.reason);
    }
    for stage in ["handler", "activation", "run queue", "return to user", "wire + peer"] {
        assert!(stages(run).contains(&stage), "{stage} is not among {:?}; {:?}", stages(run), run.manifest.notes);
    }
    let breakdown = run.breakdown.as_ref().expect("joined");
    assert!(breakdown.samples >= 300 && breakdown.coverage >= 0.95, "{} {}", breakdown.samples, breakdown.coverage);
    assert!(run.manifest.syscalls.as_ref().is_some_and(|it| it.absent.is_none()), "{:?}", run.manifest.syscalls);
}

#[test]
#[ignore = "runs in the VM"]
fn what_is_missing_is_named_and_the_run_goes_on_without_probes() {
    for (rights, named, not_named) in [
        (CapabilitySet::empty(), "CAP_BPF and CAP_PERFMON are missing", "is missing"),
        (CapabilitySet::PERFMON, "CAP_BPF is missing", "CAP_PERFMON are"),
        (CapabilitySet::BPF, "CAP_PERFMON is missing", "CAP_BPF is missing"),
    ] {
        let (end, report) = measured(rights);
        let run = &report.runs[0];
        assert!(run.traced.is_none() && run.untraced.as_ref().is_some_and(|it| it.n >= 300), "{:?}", run.manifest.notes);
        let note = run.manifest.notes.iter().find(|note| note.contains("no probes")).unwrap_or_else(|| panic!("{:?}", run.manifest.notes));
        assert!(note.contains(named) && !note.contains(not_named), "{note}");
        assert!(end.text.contains(named), "{}", end.text);
        assert!(run.bypass.as_ref().is_some_and(|it| it.is_proven.is_none() && it.calls_absent.is_some()), "{:?}", run.bypass);
    }
}

/// (name, effective, permitted) of each thread of a process.
fn threads(pid: u32) -> Vec<(String, u64, u64)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let one = |status: String| {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(|it| it.trim().to_owned());
        let mask = |name: &str| u64::from_str_radix(&field(name)?, 16).ok();
        Some((field("Name:")?, mask("CapEff:")?, mask("CapPrm:")?))
    };
    tasks.filter_map(|task| one(std::fs::read_to_string(task.path().join("status")).ok()?)).collect()
}

/// The threads of a running measurement, once its measured thread is there.
fn while_measuring(mut program: Program) -> Vec<(String, u64, u64)> {
    let mut seen = Vec::new();
    let begun = wait_for(PATIENCE, || {
        seen = threads(program.id());
        !program.is_running() || seen.iter().any(|(name, _, _)| name.starts_with("rs-client"))
    });
    assert!(begun && program.is_running(), "{}", program.text());
    program.signal("KILL");
    program.end_within(PATIENCE);
    println!("{seen:x?}");
    seen
}

#[test]
#[ignore = "runs in the VM"]
fn no_thread_but_that_of_the_probes_keeps_the_rights() {
    let folder = open_folder();
    let rights = CapabilitySet::BPF | CapabilitySet::PERFMON;
    let of_nobody = while_measuring(as_nobody(rights, arguments(&folder.path().join("a"), 50_000_000)));
    let as_root: Vec<String> = arguments(&folder.path().join("b"), 50_000_000);
    let of_root = while_measuring(rdmascope(&as_root.iter().map(String::as_str).collect::<Vec<_>>()));
    for (threads, who) in [(of_nobody, "nobody"), (of_root, "root")] {
        assert!(threads.len() >= 4, "{who}: {threads:x?}");
        for (name, effective, permitted) in threads {
            let keeps = name == "rs-probes";
            assert_eq!(permitted & PERFMON_AND_BPF == PERFMON_AND_BPF, keeps, "{who}: {name} {permitted:x}");
            assert!(keeps || (effective | permitted) & PERFMON_AND_BPF == 0, "{who}: {name} {effective:x} {permitted:x}");
        }
    }
}
