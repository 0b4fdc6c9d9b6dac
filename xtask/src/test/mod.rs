//! `cargo xtask test`: every check of the project in order, from what fails soonest to the tests in virtual machines. Each
//! phase says its name and how long it took; the first that fails ends the run, but every kernel that was asked for is booted.
//! The last line is `N passed, N failed`.

mod guests;
mod modules;
mod results;

use crate::{bpf, exit, paths, process, setup, tidy, vm};
use anyhow::{Context, Result, bail};
use results::Counts;
use std::process::Command;
use std::time::{Duration, Instant};

/// No phase on the host takes longer, also on a slow machine with nothing built.
const PHASE_DEADLINE: Duration = Duration::from_secs(1800);

/// The kernels of a run that names none: one whose soft-RoCE works in the poster's own call, and one where workqueues do it.
const EVERYDAY: [&str; 2] = ["6.1", "7"];

/// The links that the emulated card has in turn, kernel by kernel, where none is named.
const LINKS: [vm::Link; 2] = [vm::Link::Ethernet, vm::Link::Infiniband];

/// Options of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Install nothing that is missing: print the command and end with 69.
    #[arg(long)]
    no_install: bool,
    /// Kernels that the guests run: 5.10, 6.1, 6.12, 6.12-rt, 7, host, or `all` of the numbered ones. Without it 6.1 and 7, where the
    /// modules that hardly ask the kernel (sessions, costs) run on the first of the two alone.
    #[arg(long, value_delimiter = ',')]
    kernels: Vec<String>,
    /// Only what needs no virtual machine.
    #[arg(long)]
    host_only: bool,
    /// Only the tests in guests, and what they need built.
    #[arg(long, conflicts_with = "host_only")]
    guests_only: bool,
    /// Also the guest tests that take long: delays injected into every stage (`*_delay*`). They run too when `--filter` names them.
    #[arg(long)]
    thorough: bool,
    /// Only the guest tests of modules whose name contains this, such as `vm_session` or `_delay`.
    #[arg(long)]
    filter: Option<String>,
    #[command(flatten)]
    card: vm::CardArgs,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<()> {
    let everyday = || EVERYDAY.map(str::to_owned).to_vec();
    let kernels = vm::kernels_named(&if args.kernels.is_empty() { everyday() } else { args.kernels.clone() })?;
    let mut counts = Counts::default();
    let outcome = phases(args, &kernels, &mut counts);
    let code = match &outcome {
        Ok(()) => 0,
        Err(error) => {
            println!("xtask: {error:#}");
            exit::code_of(error)
        }
    };
    // A phase that failed without a failed test is a failure too.
    if code != 0 && counts.failed == 0 {
        counts.failed = 1;
    }
    println!("{counts}");
    if code == 0 && counts.failed == 0 { Ok(()) } else { Err(exit::coded(code.max(1), "")) }
}

fn phases(args: &Args, kernels: &[String], counts: &mut Counts) -> Result<()> {
    phase("set-up", || setup::ensure(&setup::Args { no_install: args.no_install, yes: true }, setup::Needs::ALL))?;
    if !args.guests_only {
        phase("formatting", || cargo(&["fmt", "--all", "--check"]))?;
        phase("tidy", tidy::run)?;
    }
    phase("BPF object", || {
        bpf::ensure()?;
        bpf::prebuilt_is_reproduced()
    })?;
    if !args.guests_only {
        phase("lints", || {
            cargo(&["clippy", "--locked", "--all-targets", "--", "-D", "warnings"])?;
            cargo(&["clippy", "--locked", "--package", "mlx5-card", "--all-targets", "--", "-D", "warnings"])?;
            cargo(&["clippy", "--locked", "--package", "ebpf-probes", "--lib", "--tests", "--features", "host", "--", "-D", "warnings"])
        })?;
        phase("unit tests", || {
            tests(&["test", "--locked"], counts)?;
            tests(&["test", "--locked", "--package", "mlx5-card"], counts)?;
            tests(&["test", "--locked", "--package", "ebpf-probes", "--lib", "--features", "host"], counts)
        })?;
    }
    if args.host_only {
        return Ok(());
    }
    phase("release build", || {
        cargo(&["build", "--locked", "--release", "--package", "rdma-userspace", "--package", "analysis", "--bins"])
    })?;
    let binaries = phase("guest test binaries", || guests::build(args.filter.as_deref(), args.thorough))?;
    let card = if binaries.iter().any(|binary| binary.kind == modules::Kind::Card) {
        Some(phase("emulated card", || args.card.card())?)
    } else {
        None
    };
    // A kernel that fails says nothing about the next one: all are run, and the first failure is the outcome.
    let (mut first_failure, mut rows) = (None, Vec::new());
    let rest = guests::without_once(&binaries);
    for (at, kernel) in kernels.iter().enumerate() {
        let binaries = if at > 0 && args.kernels.is_empty() && args.filter.is_none() { &rest } else { &binaries };
        let card = card.clone().map(|card| vm::Card { link: args.card.link().unwrap_or(LINKS[at % LINKS.len()]), ..card });
        if let Err(error) = phase(&format!("guest tests on {kernel}"), || guests::run(kernel, binaries, card.as_ref(), counts, &mut rows)) {
            println!("xtask: {error:#}");
            first_failure.get_or_insert(error);
        }
    }
    if !rows.is_empty() {
        println!("== guest tests by module\n{}", results::table(&rows));
    }
    first_failure.map_or(Ok(()), Err)
}

fn phase<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("== {name}");
    let start = Instant::now();
    let outcome = work();
    let how = if outcome.is_ok() { "done" } else { "FAILED" };
    println!("== {name}: {how} in {:.1} s", start.elapsed().as_secs_f64());
    outcome.with_context(|| format!("{name} failed"))
}

fn command(args: &[&str]) -> Command {
    let mut command = process::cargo();
    command.args(args);
    command
}

/// Runs cargo with its output shown.
fn cargo(args: &[&str]) -> Result<()> {
    let mut command = command(args);
    if process::stream(&mut command, PHASE_DEADLINE, |line| println!("{line}"))? != 0 {
        bail!("`{}` failed", process::line(&command));
    }
    Ok(())
}

/// Runs tests on the host and adds their results.
fn tests(args: &[&str], counts: &mut Counts) -> Result<()> {
    let mut command = command(args);
    let before = *counts;
    let code = process::stream(&mut command, PHASE_DEADLINE, |line| {
        println!("{line}");
        counts.add_line(line);
    })?;
    if code != 0 {
        bail!("`{}` failed", process::line(&command));
    }
    if *counts == before {
        bail!("`{}` ran no test", process::line(&command));
    }
    Ok(())
}

/// Where a guest phase leaves what its tests wrote.
fn output_folder(kernel: &str) -> std::path::PathBuf {
    paths::target().join("vm/tests").join(kernel)
}
