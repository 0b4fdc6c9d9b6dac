//! Tests in guests. `rdma-userspace/tests/vm/`, `tests/pair/` and `tests/card/` are a test binary each, whose tests are
//! `#[ignore = "runs in the VM"]`. The first runs in one guest with soft-RoCE as root, one thread, a process per module; the second in
//! guest b of two, with `rdmascope serve` in guest a; the third in one guest with an emulated card.

use super::modules::{self, Kind, Module};
use super::results::{self, Counts, Outcome, Row};
use super::{PHASE_DEADLINE, output_folder};
use crate::vm::{self, Card, Deadlines, Guest, Job, Seen};
use crate::{artifacts, exit, paths, process, runner};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where guest a of two has a shell for guest b (nobody else is on their wire).
const SHELL_PORT: u16 = 18_999;

/// Set: the plans that `vm_plan` finds become the expected ones.
const UPDATE_PLANS: &str = "RDMASCOPE_UPDATE_PLANS";
const PLANS: &str = "rdma-userspace/tests/fixtures/plans";

fn updates_plans() -> bool {
    std::env::var_os(UPDATE_PLANS).is_some_and(|value| !value.is_empty())
}

/// Keeps the plan that a guest found as the expected one of its kernel.
fn take_plan(out: &Path, kernel: &str) -> Result<()> {
    let from = out.join("plan.txt");
    if from.is_file() {
        let to = paths::root().join(PLANS).join(format!("{kernel}.txt"));
        fs::copy(&from, &to).with_context(|| format!("writing {}", to.display()))?;
        println!("written: {}", paths::shown(&to));
    }
    Ok(())
}

/// A built test binary with the modules of it that are to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// What it is for.
    pub kind: Kind,
    /// The program.
    pub path: PathBuf,
    /// In the order in which they run; at least one.
    pub modules: Vec<Module>,
}

impl Binary {
    /// The folder below a kernel's that gets what its guests write.
    fn folder(&self) -> &'static str {
        match self.kind {
            Kind::Vm => "single",
            Kind::Pair => "pair",
            Kind::Card => "card",
        }
    }
}

/// Builds the guest test binaries and chooses their modules (see [`modules::chosen`]).
pub fn build(filter: Option<&str>, thorough: bool) -> Result<Vec<Binary>> {
    let mut cargo = process::cargo();
    // Release: an emulated CPU is slow enough, and the dependencies are built for release already.
    cargo.args(["test", "--locked", "--release", "--no-run", "--package", "rdma-userspace"]);
    cargo.args(Kind::ALL.iter().flat_map(|kind| ["--test", kind.name()]));
    let built = artifacts::built(&mut cargo, PHASE_DEADLINE)?;
    let mut all = Vec::new();
    for kind in Kind::ALL {
        let path = artifacts::path_of(&built, "test", kind.name())?;
        let listing = process::output(process::command(path).args(["--list", "--ignored"]))?;
        all.extend(modules::of_listing(kind, &listing, &modules::files(kind)?)?);
    }
    let chosen = modules::chosen(all, filter, thorough)?;
    let mut binaries = Vec::new();
    for kind in Kind::ALL {
        let modules: Vec<Module> = chosen.iter().filter(|module| module.kind == kind).cloned().collect();
        if !modules.is_empty() {
            let path = artifacts::path_of(&built, "test", kind.name())?.to_owned();
            let names: Vec<String> = modules.iter().map(Module::to_string).collect();
            println!("{}: {}", paths::shown(&path), names.join(" "));
            binaries.push(Binary { kind, path, modules });
        }
    }
    Ok(binaries)
}

/// What an everyday kernel runs that is not the first: all but the modules that one kernel is enough for.
pub fn without_once(binaries: &[Binary]) -> Vec<Binary> {
    let rest = binaries.iter().map(|binary| Binary { modules: modules::without_once(&binary.modules), ..binary.clone() });
    rest.filter(|binary| !binary.modules.is_empty()).collect()
}

/// Runs every binary on one kernel; adds the results, and a row for each module.
///
/// `card`: the one for the tests that want one.
pub fn run(kernel: &str, binaries: &[Binary], card: Option<&Card>, counts: &mut Counts, rows: &mut Vec<Row>) -> Result<()> {
    let kernel = vm::ensure_kernel(kernel, false)?;
    println!("kernel {} ({})", kernel.release, kernel.packages.join(" "));
    let before = counts.failed;
    for binary in binaries {
        let is_pair = binary.kind == Kind::Pair;
        let out = output_folder(&kernel.name).join(binary.folder());
        if out.exists() {
            fs::remove_dir_all(&out)?;
        }
        fs::create_dir_all(&out)?;
        let card = card.map(|card| with_log(card, &out));
        let binary = &fitting(binary, card.as_ref());
        if binary.modules.is_empty() {
            continue;
        }
        let job = job(kernel.clone(), binary, card.as_ref())?;
        let outcome = vm::boot(&job, &out, &mut |letter, seen| match seen {
            Seen::Console(line) if is_pair => println!("[{letter}] {line}"),
            Seen::Console(line) => println!("{line}"),
            Seen::Progress(_) => {}
        })?;
        if updates_plans() && binary.kind == Kind::Vm {
            take_plan(&out, &kernel.name)?;
        }
        let logs = if is_pair { out.join("b") } else { out };
        for module in &binary.modules {
            let outcome = result_of(&logs, module)?;
            counts.add(outcome.counts);
            rows.push(Row { module: module.to_string(), kernel: kernel.name.clone(), outcome });
        }
        if outcome.exit != 0 && counts.failed == before {
            bail!("the guest's command ended with {} although no test failed", outcome.exit);
        }
    }
    match counts.failed - before {
        0 => Ok(()),
        failed => Err(exit::coded(1, format!("{failed} tests failed on {}", kernel.name))),
    }
}

/// The binary with those of its modules that the card's link lets run; what is left out is said.
fn fitting(binary: &Binary, card: Option<&Card>) -> Binary {
    let Some(card) = card.filter(|_| binary.kind == Kind::Card) else { return binary.clone() };
    let modules = modules::fitting(&binary.modules, card.link);
    println!("the card is on {}", card.link.name());
    for module in binary.modules.iter().filter(|module| !modules.contains(module)) {
        println!("{module} is left out: it wants --link {}", vm::Link::Ethernet.name());
    }
    Binary { modules, ..binary.clone() }
}

/// The result of one module; ending without one (a crash, a kill) is a failure, and so is running fewer tests than it has.
fn result_of(logs: &Path, module: &Module) -> Result<Outcome> {
    let log = logs.join(format!("{module}.log"));
    let text = fs::read(&log).with_context(|| format!("{module} left no output"))?;
    let Some(outcome) = results::of_output(&String::from_utf8_lossy(&text)) else {
        println!("{module} ended without a result");
        return Ok(Outcome { counts: Counts { passed: 0, failed: 1 }, seconds: None });
    };
    let ran = outcome.counts.passed + outcome.counts.failed;
    if ran != module.tests {
        bail!("{module} ran {ran} of its {} tests in the guest", module.tests);
    }
    Ok(outcome)
}

/// Shell text that runs each module in a process of its own, with a log of its own.
fn command(binary: &Binary) -> String {
    let program = guest_path(binary.kind);
    let mut command = String::from("set -o pipefail\ncode=0\n");
    for module in &binary.modules {
        let filter = module.filter();
        command.push_str(&format!(
            "echo '## {module}'\n{program} --ignored --test-threads=1 {filter} 2>&1 | tee /out/{module}.log || code=1\n"
        ));
    }
    command.push_str("exit $code");
    command
}

/// Where a binary lies in its guest.
fn guest_path(kind: Kind) -> String {
    format!("/tests/{}", kind.name())
}

/// The card, which writes its log beside what its guest leaves unless it was told where to.
fn with_log(card: &Card, out: &Path) -> Card {
    Card { log: card.log.clone().or_else(|| Some(out.join("card.log"))), ..card.clone() }
}

fn job(kernel: vm::Kernel, binary: &Binary, card: Option<&Card>) -> Result<Job> {
    let is_pair = binary.kind == Kind::Pair;
    let mut guest =
        Guest { programs: runner::programs()?, with_drivers: binary.kind == Kind::Vm, command: command(binary), ..Guest::default() };
    // Foreign programs for the tests of `rdmascope trace`; the tests that inject delays give their threads a real-time priority.
    guest.programs.extend(["ib_send_lat", "ib_write_lat", "chrt"].map(str::to_owned));
    guest.files.push((binary.path.clone(), guest_path(binary.kind)));
    if updates_plans() {
        guest.command = format!("export {UPDATE_PLANS}=1\n{}", guest.command);
    }
    let mut guests = vec![guest];
    if is_pair {
        let token = runner::token_file()?;
        guests[0].files.push((token.clone(), runner::GUEST_TOKEN.to_owned()));
        let mut server = runner::serving_guest(&token)?;
        // The tests that inject delays set those of the server's network from the other guest.
        server.command = format!("nc -ll -p {SHELL_PORT} -e /bin/sh &\n{}", server.command);
        guests.insert(0, server);
    }
    let mut job = Job::new(kernel, guests);
    if binary.kind == Kind::Card {
        job.card = Some(card.context("a card for the tests that want one")?.clone());
    }
    job.deadlines = Deadlines { total: Duration::from_secs(2400), silence: Duration::from_secs(420), ..Deadlines::default() };
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, tests: u64) -> Module {
        Module { kind: Kind::Vm, name: name.to_owned(), tests }
    }

    #[test]
    fn each_module_is_a_process_with_a_log_of_its_own() {
        let binary = Binary { kind: Kind::Vm, path: PathBuf::new(), modules: vec![module("verbs", 3), module("drivers", 2)] };
        let text = command(&binary);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("/tests/")).collect();
        assert_eq!(
            lines,
            [
                "/tests/vm --ignored --test-threads=1 verbs:: 2>&1 | tee /out/vm_verbs.log || code=1",
                "/tests/vm --ignored --test-threads=1 drivers:: 2>&1 | tee /out/vm_drivers.log || code=1",
            ]
        );
    }

    #[test]
    fn the_cards_log_lies_with_its_guests_files_unless_told_otherwise() {
        let mut card = Card::new(PathBuf::from("/x/card"), vm::Link::Infiniband);
        assert_eq!(with_log(&card, Path::new("/out")).log.unwrap(), Path::new("/out/card.log"));
        card.log = Some(PathBuf::from("/told"));
        assert_eq!(with_log(&card, Path::new("/out")), card);
    }

    #[test]
    fn a_crash_fails_and_no_test_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let x = module("x", 2);
        assert!(result_of(folder.path(), &x).is_err());
        let log = folder.path().join("vm_x.log");
        fs::write(&log, "running 2 tests\ntest a ... Segmentation fault\n").unwrap();
        let crashed = result_of(folder.path(), &x).unwrap();
        assert_eq!((crashed.counts, crashed.seconds), (Counts { passed: 0, failed: 1 }, None));
        let ended = |passed: u64| {
            fs::write(
                &log,
                format!("test result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; 5 filtered out; finished in 1.50s\n"),
            )
            .unwrap();
            result_of(folder.path(), &x)
        };
        assert!(ended(0).is_err());
        let few = ended(1).unwrap_err().to_string();
        assert!(few.contains("1 of its 2 tests"), "{few}");
        assert_eq!(ended(2).unwrap(), Outcome { counts: Counts { passed: 2, failed: 0 }, seconds: Some(1.5) });
    }
}
