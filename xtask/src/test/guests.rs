//! Tests in guests. A test binary `rdma-userspace/tests/vm_*.rs` holds tests that are `#[ignore = "runs in the VM"]`; each is
//! run in one guest with soft-RoCE as root, one thread. `pair_*.rs` runs in guest b of two, with `rdmascope serve` in guest a.

use super::results::{self, Counts};
use super::{PHASE_DEADLINE, output_folder};
use crate::vm::{self, Deadlines, Guest, Job, Seen};
use crate::{exit, paths, process, runner};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where guest a of two has a shell for guest b (nobody else is on their wire).
const SHELL_PORT: u16 = 18_999;

/// Set: the plans that `vm_plan` finds become the expected ones.
const UPDATE_PLANS: &str = "RDMASCOPE_UPDATE_PLANS";
const PLANS: &str = "rdma-userspace/tests/fixtures/plans";

/// Runs after all others in its guest: it loads the drivers of cards and leaves them, and every later plan would have their hooks.
const LAST: &str = "vm_drivers";

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

/// A built test binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// Name of the test file.
    pub name: String,
    /// The program.
    pub path: PathBuf,
}

impl Binary {
    fn is_pair(&self) -> bool {
        self.name.starts_with("pair_")
    }
}

/// Part of the names of tests that take minutes each and that change with the analysis rather than with the kernel.
const LONG: &str = "_delay";

/// Builds the guest test binaries; it is an error when there is none. Long ones are left out unless `thorough` or a filter asks.
pub fn build(filter: Option<&str>, thorough: bool) -> Result<Vec<Binary>> {
    let mut cargo = process::cargo();
    // Release: an emulated CPU is slow enough, and the dependencies are built for release already.
    cargo.args([
        "test",
        "--locked",
        "--release",
        "--no-run",
        "--package",
        "rdma-userspace",
        "--tests",
        "--message-format",
        "json-render-diagnostics",
    ]);
    let mut binaries = Vec::new();
    let code = process::stream(&mut cargo, PHASE_DEADLINE, |line| binaries.extend(artifact(line)))?;
    if code != 0 {
        bail!("`{}` failed", process::line(&cargo));
    }
    binaries.retain(|binary: &Binary| match filter {
        Some(wanted) => binary.name.contains(wanted),
        None => thorough || !binary.name.contains(LONG),
    });
    binaries.sort_by(|one, other| (one.name == LAST, &one.name).cmp(&(other.name == LAST, &other.name)));
    if binaries.is_empty() {
        bail!("there is no guest test binary (rdma-userspace/tests/vm_*.rs or pair_*.rs)");
    }
    for binary in &binaries {
        println!("{}: {}", binary.name, paths::shown(&binary.path));
    }
    Ok(binaries)
}

/// The guest test binary that a line of cargo's JSON output announces.
fn artifact(line: &str) -> Option<Binary> {
    #[derive(Deserialize)]
    struct Message {
        target: Target,
        executable: Option<PathBuf>,
    }
    #[derive(Deserialize)]
    struct Target {
        kind: Vec<String>,
        name: String,
    }
    let message: Message = serde_json::from_str(line).ok()?;
    let is_ours = message.target.name.starts_with("vm_") || message.target.name.starts_with("pair_");
    let is_test = message.target.kind.iter().any(|kind| kind == "test");
    (is_ours && is_test).then_some(())?;
    Some(Binary { name: message.target.name, path: message.executable? })
}

/// Runs every binary on one kernel and adds the results.
pub fn run(kernel: &str, binaries: &[Binary], counts: &mut Counts) -> Result<()> {
    let kernel = vm::ensure_kernel(kernel, false)?;
    println!("kernel {} ({})", kernel.release, kernel.packages.join(" "));
    let before = counts.failed;
    for is_pair in [false, true] {
        let chosen: Vec<&Binary> = binaries.iter().filter(|binary| binary.is_pair() == is_pair).collect();
        if chosen.is_empty() {
            continue;
        }
        let kind = if is_pair { "pair" } else { "single" };
        let out = output_folder(&kernel.name).join(kind);
        if out.exists() {
            fs::remove_dir_all(&out)?;
        }
        let job = job(kernel.clone(), &chosen, is_pair)?;
        let outcome = vm::boot(&job, &out, &mut |letter, seen| match seen {
            Seen::Console(line) if is_pair => println!("[{letter}] {line}"),
            Seen::Console(line) => println!("{line}"),
            Seen::Progress(_) => {}
        })?;
        if updates_plans() && !is_pair {
            take_plan(&out, &kernel.name)?;
        }
        let logs = if is_pair { out.join("b") } else { out };
        for binary in chosen {
            counts.add(result_of(&logs, binary)?);
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

/// The result of one binary; ending without one (a crash, a kill) is a failure, and so is running no test.
fn result_of(logs: &Path, binary: &Binary) -> Result<Counts> {
    let log = logs.join(format!("{}.log", binary.name));
    let text = fs::read(&log).with_context(|| format!("{} left no output", binary.name))?;
    let Some(counts) = results::of_output(&String::from_utf8_lossy(&text)) else {
        println!("{} ended without a result", binary.name);
        return Ok(Counts { passed: 0, failed: 1 });
    };
    if counts == Counts::default() {
        bail!("{} ran no test in the guest", binary.name);
    }
    Ok(counts)
}

fn job(kernel: vm::Kernel, binaries: &[&Binary], is_pair: bool) -> Result<Job> {
    let mut guest = Guest { programs: runner::programs()?, with_drivers: !is_pair, ..Guest::default() };
    // Foreign programs for the tests of `rdmascope trace`; the tests that inject delays give their threads a real-time priority.
    guest.programs.extend(["ib_send_lat", "ib_write_lat", "chrt"].map(str::to_owned));
    let mut command = String::from("set -o pipefail\ncode=0\n");
    if updates_plans() {
        command.push_str(&format!("export {UPDATE_PLANS}=1\n"));
    }
    for binary in binaries {
        let name = &binary.name;
        guest.files.push((binary.path.clone(), format!("/tests/{name}")));
        command.push_str(&format!("echo '## {name}'\n/tests/{name} --ignored --test-threads=1 2>&1 | tee /out/{name}.log || code=1\n"));
    }
    command.push_str("exit $code");
    guest.command = command;
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
    job.deadlines = Deadlines { total: Duration::from_secs(2400), silence: Duration::from_secs(420), ..Deadlines::default() };
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_tests_are_told_from_other_artifacts() {
        let line = |kind: &str, name: &str| {
            format!(r#"{{"reason":"compiler-artifact","target":{{"kind":["{kind}"],"name":"{name}"}},"executable":"/t/{name}-1"}}"#)
        };
        let found = artifact(&line("test", "vm_verbs")).unwrap();
        assert_eq!(found, Binary { name: "vm_verbs".to_owned(), path: PathBuf::from("/t/vm_verbs-1") });
        assert!(artifact(&line("test", "pair_net")).unwrap().is_pair());
        assert_eq!(artifact(&line("test", "other")), None);
        assert_eq!(artifact(&line("lib", "vm_verbs")), None);
        assert_eq!(artifact(r#"{"reason":"build-finished","success":true}"#), None);
    }

    #[test]
    fn a_crash_fails_and_no_test_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let binary = Binary { name: "vm_x".to_owned(), path: PathBuf::new() };
        assert!(result_of(folder.path(), &binary).is_err());
        let log = folder.path().join("vm_x.log");
        fs::write(&log, "running 2 tests\ntest a ... Segmentation fault\n").unwrap();
        assert_eq!(result_of(folder.path(), &binary).unwrap(), Counts { passed: 0, failed: 1 });
        fs::write(&log, "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out; finished in 0.00s\n").unwrap();
        assert!(result_of(folder.path(), &binary).is_err());
    }
}
