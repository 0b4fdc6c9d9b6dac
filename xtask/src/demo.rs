//! `cargo xtask demo`: from nothing to a report. Set-up, build, a guest (or two on a wire) with soft-RoCE, every operation in
//! polling and event mode with the probes on, and the report on the host.

use crate::vm::{self, Deadlines, Job, Seen};
use crate::{bpf, exit, paths, process, runner, setup};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Two guests of two CPUs each, and what the emulator itself needs: with fewer cores, pollers starve it.
const CORES_FOR_TWO: usize = 6;
/// A build from nothing on two slow cores.
const BUILD_DEADLINE: Duration = Duration::from_secs(1800);
const REPORT_DEADLINE: Duration = Duration::from_secs(600);
/// Too many lost records, or too noisy a machine: there is a report all the same, and it says so.
const REPORTED: [u8; 3] = [0, 3, 5];

/// Options of `cargo xtask demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kernel: 5.10, 6.1, 6.12, 6.12-rt, 7, or host.
    #[arg(long, default_value = "6.1")]
    kernel: String,
    /// One guest, or two joined by a wire. Default: two where there are at least 6 cores.
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
    let out = output_folder(args)?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let guests = args.guests.unwrap_or(if cores >= CORES_FOR_TWO { 2 } else { 1 });
    step("set-up");
    setup::ensure(&setup::Args { no_install: args.no_install, yes: args.yes })?;
    step("building the probes");
    bpf::ensure()?;
    step("building rdmascope");
    let mut cargo = process::cargo();
    cargo.args(["build", "--release", "--locked", "--package", "rdma-userspace", "--package", "analysis", "--bins"]);
    if process::stream(&mut cargo, BUILD_DEADLINE, |line| println!("{line}"))? != 0 {
        bail!("`{}` failed", process::line(&cargo));
    }
    step(&format!("kernel {}", args.kernel));
    let kernel = vm::ensure_kernel(&args.kernel, false)?;
    println!("{} {}", kernel.release, kernel.packages.join(" "));
    step(if guests == 2 { "measuring in two guests on a wire" } else { "measuring in one guest" });
    let code = measure(args, kernel, guests, &out)?;
    let captures = if guests == 2 { out.join("b") } else { out.clone() };
    if !REPORTED.contains(&code) {
        let said = format!("the measurement ended with {code} (its words above; files in {})", paths::shown(&captures));
        return Err(exit::coded(code, said));
    }
    step("report");
    let mut report = runner::report(&captures)?;
    let reported = process::stream(&mut report, REPORT_DEADLINE, |line| println!("{line}"))?;
    if ![0, 3].contains(&reported) {
        bail!("`{}` failed", process::line(&report));
    }
    let page = captures.join("index.html");
    if !page.is_file() {
        bail!("the report has no {}", paths::shown(&page));
    }
    let (page, report) = (page.canonicalize().unwrap_or(page), paths::target().join("release/rdmascope-report"));
    println!("\nreport: {} (charts, captures and report.json beside it)", page.display());
    println!("every run in full: {} {} --text", paths::shown(&report), paths::shown(&captures));
    // Loss is counted anew by the report, which sees all of a capture.
    match if code == 0 { u8::try_from(reported).unwrap_or(1) } else { code } {
        0 => Ok(()),
        3 => Err(exit::coded(
            3,
            "the report is complete, but a run lost more records than the limit (named at its top; its verdict is withheld). \
             A busy machine does that under emulation: run it again with nothing else running",
        )),
        code => Err(exit::coded(
            code,
            "UNSTABLE: this machine was too noisy for the figures (see the report); run it again with nothing else running",
        )),
    }
}

fn step(what: &str) {
    println!("== {what}");
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
        return Err(exit::coded(2, format!("{} is not empty", out.display())));
    }
    Ok(out.clone())
}

/// Runs the guests; returns the exit code of the measurement.
fn measure(args: &Args, kernel: vm::Kernel, guests: u8, out: &Path) -> Result<u8> {
    let compare = runner::Compare { samples: args.samples, extra: args.extra.clone() };
    let mut job = Job::new(kernel, compare.guests(guests)?);
    job.cpus = args.smp;
    job.memory_mib = 2048;
    job.disk_mib = 8192;
    job.deadlines = Deadlines { silence: Duration::from_secs(300), total: Duration::from_secs(3600), ..Deadlines::default() };
    let mut display = Display::new();
    let outcome = vm::boot(&job, out, &mut |letter, seen| match seen {
        Seen::Console(line) => display.line(&format!("[{letter}] {line}")),
        Seen::Progress(line) => display.progress(line),
    });
    display.end();
    Ok(outcome?.exit)
}

/// A progress line of the program in the guest, or of the guest's first process.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct Progress {
    at_s: f64,
    phase: String,
    text: String,
    done: u64,
    total: u64,
}

impl Progress {
    fn shown(&self) -> String {
        let count = if self.total > 0 { format!(" {}/{}", self.done, self.total) } else { String::new() };
        let text = if self.text.is_empty() { String::new() } else { format!(": {}", self.text) };
        format!("{}{count}{text}", self.phase)
    }
}

/// Shows progress in place on a terminal, else at most one line every few seconds.
struct Display {
    in_place: bool,
    is_open: bool,
    start: Instant,
    last: Option<Instant>,
}

impl Display {
    const EVERY: Duration = Duration::from_secs(5);

    fn new() -> Self {
        Self { in_place: std::io::stdout().is_terminal(), is_open: false, start: Instant::now(), last: None }
    }

    fn line(&mut self, text: &str) {
        self.end();
        println!("{text}");
    }

    fn progress(&mut self, line: &str) {
        let Ok(progress) = serde_json::from_str::<Progress>(line) else { return };
        let text = format!("[{:5.0} s] {}", self.start.elapsed().as_secs_f64(), progress.shown());
        if self.in_place {
            print!("\r\x1b[K{text}");
            // Nobody is told where nobody can be.
            let _ = std::io::stdout().flush();
            self.is_open = true;
        } else if progress.total == 0 || self.last.is_none_or(|last| last.elapsed() >= Self::EVERY) {
            println!("{text}");
            self.last = Some(Instant::now());
        }
    }

    fn end(&mut self) {
        if self.is_open {
            println!();
            self.is_open = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_of_both_kinds_is_shown() {
        let shown = |line: &str| serde_json::from_str::<Progress>(line).unwrap().shown();
        assert_eq!(shown(r#"{"at_s":1.5,"phase":"measure","text":"send event","done":3,"total":12}"#), "measure 3/12: send event");
        assert_eq!(shown(r#"{"guest":"a","phase":"modules"}"#), "modules");
    }
}
