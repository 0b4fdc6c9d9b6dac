//! `cargo xtask demo`: from nothing to a report. Set-up, build, a guest (or two on a wire) with soft-RoCE, every operation in
//! polling and event mode with the probes on, a guest with an emulated card for the event path, and one report on the host.

mod display;
mod ending;
mod legs;

use crate::setup::{self, Needs};
use crate::vm::{self, Card, CardArgs, Deadlines, Device, Job, Seen};
use crate::{bpf, exit, paths, process, runner};
use anyhow::{Context, Result, bail};
use display::Display;
use ending::Ending;
use legs::Leg;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The kernel to start with: on it every operation sleeps in event mode, also where both ends are in one guest. Up to 6.8 soft-RoCE
/// completes a READ, WRITE or atomic inside its own post there, nobody sleeps, and four of five verdicts are withheld.
const KERNEL: &str = "6.12";
/// Two guests of two CPUs each, and what the emulator itself needs: with fewer cores, pollers starve it.
const CORES_FOR_TWO: usize = 6;
/// A build from nothing on two slow cores.
const BUILD_DEADLINE: Duration = Duration::from_secs(1800);
const REPORT_DEADLINE: Duration = Duration::from_secs(600);

/// Options of `cargo xtask demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kernel: 5.10, 6.1, 6.12, 6.12-rt, 7, or host.
    #[arg(long, default_value = KERNEL)]
    kernel: String,
    /// One RDMA device alone. Default: soft-RoCE, and an emulated card where it can be had.
    #[arg(long)]
    device: Option<Device>,
    #[command(flatten)]
    card: CardArgs,
    /// Soft-RoCE in one guest, or in two joined by a wire. Default: two where there are at least 6 cores.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=2))]
    guests: Option<u8>,
    /// Folder for captures and report. Default: target/demo/KERNEL, replaced if it is there.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Install nothing that is missing: print the command and end with 69.
    #[arg(long)]
    no_install: bool,
    /// Install without asking.
    #[arg(long, short)]
    yes: bool,
    /// Samples per operation and mode.
    #[arg(long, short = 'n', default_value_t = 10_000)]
    samples: u64,
    /// Virtual CPUs of each guest.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    smp: u32,
    /// More arguments for `rdmascope compare` in the guest.
    #[arg(last = true)]
    extra: Vec<String>,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<()> {
    if vm::kernels_named(std::slice::from_ref(&args.kernel))? != [args.kernel.as_str()] {
        return Err(exit::coded(exit::USAGE, "the demo takes one kernel"));
    }
    let out = output_folder(args)?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let guests = args.guests.unwrap_or(if cores >= CORES_FOR_TWO { 2 } else { 1 });
    let start = Instant::now();
    let step = |what: &str| println!("== [{:.0} s] {what}", start.elapsed().as_secs_f64());
    step("set-up");
    let object = bpf::ready();
    let needs = Needs { tests: false, bpf: object.is_err() };
    setup::ensure(&setup::Args { no_install: args.no_install, yes: args.yes }, needs)?;
    step("the probes");
    match object {
        Ok(object) => println!("{}", object.take()?),
        Err(why) => {
            println!("{why:#}: building one");
            bpf::ensure()?;
        }
    }
    step(&format!("building; what the guests need (kernel {}) is fetched meanwhile", args.kernel));
    let wants_card = args.device != Some(Device::Rxe);
    let (built, fetched) = std::thread::scope(|scope| {
        let fetched = scope.spawn(|| (vm::fetch(&args.kernel), wants_card.then(vm::fetch_for_card)));
        let built = build().map(|()| wants_card.then(|| args.card.card()));
        (built, fetched.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (card, (kernel, emulator)) = (built?, fetched);
    let kernel = kernel?;
    println!("kernel {} {}", kernel.release, kernel.packages.join(" "));
    let card = match (card.transpose(), emulator.transpose()) {
        (Ok(card), Ok(_)) => card,
        (Err(why), _) | (_, Err(why)) if args.device.is_some() => return Err(why),
        (Err(why), _) | (_, Err(why)) => {
            println!("no emulated card, so soft-RoCE alone: {why:#}");
            None
        }
    };
    let devices: Vec<Device> = match (args.device, &card) {
        (Some(device), _) => vec![device],
        (None, Some(_)) => vec![Device::Rxe, Device::Mlx5],
        (None, None) => vec![Device::Rxe],
    };
    let compare = runner::Compare { samples: args.samples, extra: args.extra.clone() };
    let legs = legs::of(&devices, guests, &out, &compare);
    let mut measured = exit::DONE;
    for (at, leg) in legs.iter().enumerate() {
        step(&leg.says());
        // What an earlier part has measured is reported all the same.
        let code = match measure(args, kernel.clone(), card.as_ref(), leg) {
            Err(error) if at > 0 => {
                eprintln!("xtask: {error:#}");
                exit::code_of(&error).max(exit::FAILED)
            }
            code => code?,
        };
        if !ending::has_done_its_work(code) {
            eprintln!("xtask: the measurement ended with {code}; its files are in {}", paths::shown(&leg.out));
            if at == 0 {
                return Ending::of(code, None).outcome();
            }
        }
        measured = if measured == exit::DONE || !ending::has_done_its_work(code) { code } else { measured };
    }
    let captures = legs::captures(&legs, &out);
    step("report");
    let mut report = runner::report(&captures)?;
    let reported = exit::of_program(process::stream(&mut report, REPORT_DEADLINE, |line| println!("{line}"))?);
    if ending::has_done_its_work(reported) {
        show_where(&captures)?;
    } else {
        eprintln!("xtask: `{}` ended with {reported}", process::line(&report));
    }
    Ending::of(measured, Some(reported)).outcome()
}

/// Says where the report is.
fn show_where(captures: &Path) -> Result<()> {
    let page = captures.join("index.html");
    if !page.is_file() {
        bail!("the report has no {}", paths::shown(&page));
    }
    let (page, report) = (page.canonicalize().unwrap_or(page), paths::target().join("release/rdmascope-report"));
    println!("\nreport: {} (charts, captures and report.json beside it)", page.display());
    println!("every run in full: {} {} --text", paths::shown(&report), paths::shown(captures));
    Ok(())
}

/// Builds the two programs.
fn build() -> Result<()> {
    let mut cargo = process::cargo();
    cargo.args(["build", "--release", "--locked", "--package", "rdma-userspace", "--package", "analysis", "--bins"]);
    if process::stream(&mut cargo, BUILD_DEADLINE, |line| println!("{line}"))? != 0 {
        bail!("`{}` failed", process::line(&cargo));
    }
    Ok(())
}

/// The folder that the demo fills: a new one, or the default one emptied.
fn output_folder(args: &Args) -> Result<PathBuf> {
    let Some(out) = &args.out else {
        let out = paths::target().join("demo").join(&args.kernel);
        if out.exists() {
            fs::remove_dir_all(&out).with_context(|| format!("clearing {}", out.display()))?;
        }
        return Ok(out);
    };
    if out.exists() && fs::read_dir(out).with_context(|| format!("listing {}", out.display()))?.next().is_some() {
        return Err(exit::coded(exit::USAGE, format!("{} is not empty", out.display())));
    }
    Ok(out.clone())
}

/// Runs the guests; returns the exit code of the measurement.
fn measure(args: &Args, kernel: vm::Kernel, card: Option<&Card>, leg: &Leg) -> Result<u8> {
    let mut job = Job::new(kernel, leg.compare.guests(leg.guests)?);
    job.card = card.filter(|_| leg.device == Device::Mlx5).cloned();
    job.cpus = args.smp;
    job.memory_mib = 2048;
    job.disk_mib = 8192;
    job.deadlines = Deadlines { silence: Duration::from_secs(300), total: Duration::from_secs(3600), ..Deadlines::default() };
    let mut display = Display::new();
    let outcome = vm::boot(&job, &leg.out, &mut |letter, seen| match seen {
        Seen::Console(line) => display.line(&format!("[{letter}] {line}")),
        Seen::Progress(line) => display.progress(line),
    });
    display.end();
    Ok(outcome?.exit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_readme_names_the_page_of_the_kernel_that_is_the_default() {
        let kernel = Cli::parse_from(["demo"]).args.kernel;
        assert_eq!(vm::kernels_named(std::slice::from_ref(&kernel)).unwrap(), [kernel.as_str()]);
        let readme = fs::read_to_string(paths::root().join("README.md")).unwrap();
        assert!(readme.contains(&format!("`target/demo/{kernel}/index.html`")), "{kernel}");
        assert_eq!(Cli::parse_from(["demo", "--kernel", "6.1"]).args.kernel, "6.1");
    }
}
