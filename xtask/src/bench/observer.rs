//! `cargo xtask bench observer`: one guest with soft-RoCE, rounds of every level in turn, and a table on the host.
//!
//! By default one CPU whose time counts instructions: repeats to a fraction of a per cent, whatever else the host does. There most waits
//! for an event never sleep; what the wake path costs, `--smp` tells, as ratios of interleaved rounds.

use crate::vm::{self, Deadlines, Guest, Job, Seen};
use crate::{exit, paths, process, runner, setup};
use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;

/// Virtual time under `--icount`, which the machine sets to `shift=1`: 2 ns per instruction.
const NS_PER_INSTRUCTION: &str = "2";
/// Where the bench lies in its guest.
const GUEST_BENCH: &str = "/bin/bench-observer";
/// The goals hold for this kernel.
const GOAL_KERNEL: &str = "6.1";
const TABLE_DEADLINE: Duration = Duration::from_secs(120);

/// Options of `cargo xtask bench observer`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kernel: 5.10, 6.1, 6.12, 6.12-rt, 7, or host. The goals are judged on 6.1.
    #[arg(long, default_value = GOAL_KERNEL)]
    kernel: String,
    /// Two CPUs and the emulator's own time: for the wake path. Nothing is judged; needs an idle host.
    #[arg(long)]
    smp: bool,
    /// Also attach this tracer to the same hooks and compare what both say.
    #[arg(long, value_parser = ["bpftrace"], conflicts_with = "smp")]
    against: Option<String>,
    /// Rounds of every state of the probes.
    #[arg(long, default_value_t = 8)]
    rounds: u32,
    /// Operations in each.
    #[arg(long, short = 'n', default_value_t = 300)]
    samples: u64,
    /// Install nothing that is missing: print the command and end with 69.
    #[arg(long)]
    no_install: bool,
    /// Install without asking.
    #[arg(long, short)]
    yes: bool,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<()> {
    let setup = setup::Args { no_install: args.no_install, yes: args.yes };
    setup::ensure(&setup, setup::Needs::ALL)?;
    if let Some(tracer) = &args.against {
        setup::ensure_tracer(&setup, tracer)?;
    }
    let bench = super::build("observer")?;
    let mut programs = runner::programs()?;
    programs.extend(args.against.clone());
    let unit = if args.smp { String::new() } else { format!(" --ns-per-instruction {NS_PER_INSTRUCTION}") };
    let against = if args.against.is_some() { " --against" } else { "" };
    let command = format!(
        "set -e\ntest -e /sys/kernel/tracing/enabled_functions || mount -t tracefs tracefs /sys/kernel/tracing\n\
         {GUEST_BENCH} measure --out $OUT/observer.json --rounds {} --samples {}{unit}{against}",
        args.rounds, args.samples
    );
    let files = vec![(bench.clone(), GUEST_BENCH.to_owned())];
    let mut job = Job::new(vm::ensure_kernel(&args.kernel, false)?, vec![Guest { programs, files, command, ..Guest::default() }]);
    job.icount = !args.smp;
    job.memory_mib = 2048;
    job.deadlines = Deadlines { total: Duration::from_secs(1200), silence: Duration::from_secs(600), ..Deadlines::default() };
    let out = paths::target().join("bench/observer");
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("clearing {}", out.display()))?;
    }
    let outcome = vm::boot(&job, &out, &mut |_, seen| {
        if let Seen::Console(line) = seen {
            println!("{line}");
        }
    })?;
    if outcome.exit != 0 {
        return Err(exit::coded(outcome.exit, format!("the bench in the guest ended with {}", outcome.exit)));
    }
    let mut table = process::command(bench);
    table.arg("table").arg(out.join("observer.json"));
    if !args.smp && args.kernel == GOAL_KERNEL {
        table.arg("--goals");
    }
    super::judged(process::stream(&mut table, TABLE_DEADLINE, |line| println!("{line}"))?)
}
