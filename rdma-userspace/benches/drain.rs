//! How fast the reader of the ring is: a BPF program writes records on one CPU, `Drain` reads them on another, at rates that are stepped up
//! until something is lost. Used by `cargo xtask bench drain`; ends with 4 when a million records a second are too many, with 69 where the
//! kernel takes no BPF program.
use anyhow::{Context, bail};
use clap::Parser;
use rdmascope_core::probes::{Drain, Generator, ProbeError};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The goal: records per second without a loss.
const GOAL: f64 = 1e6;
/// A goal was not met.
const GATE: u8 = 4;
/// The kernel takes no BPF program, or not from this user.
const INFRASTRUCTURE: u8 = 69;
/// Rates in million records per second.
const STEPS: [f64; 11] = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0];

/// Measures the reader of the ring.
#[derive(Parser)]
struct Args {
    /// Seconds per rate.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Size of the ring in bytes.
    #[arg(long, default_value_t = 16 << 20)]
    ring_bytes: u32,
    /// The reader sleeps this long whenever it has drained the ring.
    #[arg(long, default_value_t = 5)]
    pause_ms: u64,
}

/// What one rate gave.
struct Step {
    attempted: u64,
    delivered: u64,
    lost: u64,
    /// Records per second that were written.
    rate: f64,
    /// Share of its CPU that the reader was busy.
    busy: f64,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    if let Err(error) = Generator::load(args.ring_bytes) {
        let is_refused = !matches!(error, ProbeError::NoObject | ProbeError::NotInObject { .. });
        eprintln!("bench_drain: {error}");
        return Ok(if is_refused { ExitCode::from(INFRASTRUCTURE) } else { ExitCode::FAILURE });
    }
    let cpus = cpus()?;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").context("reading the kernel's release")?;
    println!("kernel {}, ring of {} bytes, records of 56 bytes, the reader rests {} ms", kernel.trim(), args.ring_bytes, args.pause_ms);
    println!("{:>10} {:>12} {:>12} {:>12} {:>10} {:>12}", "wanted/s", "written/s", "written", "read", "lost", "reader busy");
    let mut best: f64 = 0.0;
    for million in STEPS {
        let step = step(&args, cpus, million * 1e6)?;
        println!(
            "{:>9.2}M {:>11.3}M {:>12} {:>12} {:>10} {:>10.0} %",
            million,
            step.rate / 1e6,
            step.attempted,
            step.delivered,
            step.lost,
            step.busy * 100.0
        );
        if step.attempted != step.delivered + step.lost {
            bail!("{} records are neither read nor counted as lost", step.attempted.abs_diff(step.delivered + step.lost));
        }
        if step.lost > 0 {
            break;
        }
        best = best.max(step.rate);
        if step.rate < million * 1e6 * 0.95 {
            println!("the writer can do no more");
            break;
        }
    }
    let is_met = best >= GOAL * 0.99;
    println!("highest rate without a loss: {:.2} M records/s; goal 1 M: {}", best / 1e6, if is_met { "met" } else { "MISSED" });
    Ok(if is_met { ExitCode::SUCCESS } else { ExitCode::from(GATE) })
}

fn step(args: &Args, [writer, reader_cpu]: [usize; 2], rate: f64) -> anyhow::Result<Step> {
    let (mut generator, drain) = Generator::load(args.ring_bytes)?;
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, pause) = (Arc::clone(&stop), Duration::from_millis(args.pause_ms));
    let reader = std::thread::spawn(move || read(drain, reader_cpu, &stopped, pause));
    pin(writer)?;
    let begin = Instant::now();
    let mut written = 0_u64;
    while begin.elapsed().as_secs_f64() < args.seconds {
        if (written as f64) < begin.elapsed().as_secs_f64() * rate {
            written += generator.run().context("running the program that writes records")?;
        } else {
            std::hint::spin_loop();
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let busy = reader.join().map_err(|_| anyhow::anyhow!("the reader panicked"))??;
    let losses = generator.losses()?;
    Ok(Step {
        attempted: losses.attempted,
        delivered: losses.delivered,
        lost: losses.lost,
        rate: written as f64 / seconds,
        busy: busy / seconds,
    })
}

/// Reads as a session does, copying every record, until it is told to stop and the ring is empty. Seconds that it was busy.
fn read(mut drain: Drain, cpu: usize, stop: &AtomicBool, pause: Duration) -> anyhow::Result<f64> {
    pin(cpu)?;
    let mut records = Vec::with_capacity(64 << 20);
    let mut busy = Duration::ZERO;
    loop {
        let is_last = stop.load(Ordering::Relaxed);
        let begin = Instant::now();
        let mut count = 1;
        while count > 0 {
            records.clear();
            count = drain.drain(|record| records.extend_from_slice(record));
        }
        busy += begin.elapsed();
        if is_last {
            return Ok(busy.as_secs_f64());
        }
        std::thread::sleep(pause);
    }
}

/// Pins this thread to a CPU.
fn pin(cpu: usize) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).with_context(|| format!("pinning to CPU {cpu}"))
}

/// The first two CPUs that this process may use, for the writer and the reader.
fn cpus() -> anyhow::Result<[usize; 2]> {
    let allowed = sched_getaffinity(None)?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    match (cpus.next(), cpus.next()) {
        (Some(writer), Some(reader)) => Ok([writer, reader]),
        _ => bail!("two CPUs are needed, one to write and one to read"),
    }
}
