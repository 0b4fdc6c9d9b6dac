//! The trace as text.

use std::io::{self, Write};

use super::Trace;
use super::join::{CqTrace, Times};

/// A percentile is shown from this many samples beyond it on.
const SAMPLES_BEYOND: f64 = 10.0;
/// CQEs after the last event that are worth a sentence.
const CQES_WITHOUT_EVENT: u64 = 2;

/// Writes the whole table.
pub(super) fn write(trace: &Trace, pid: u32, out: &mut impl Write) -> io::Result<()> {
    let ended = if trace.process_ended { "; the process ended" } else { "" };
    writeln!(out, "traced {:.1} s{ended}", trace.duration.as_secs_f64())?;
    if trace.cqs.is_empty() {
        writeln!(out, "no completion event of process {pid} was seen: {}", why_none(trace))?;
    }
    for cq in &trace.cqs {
        write_cq(cq, out)?;
    }
    write_losses(trace, out)
}

fn write_cq(cq: &CqTrace, out: &mut impl Write) -> io::Result<()> {
    let id = cq.restrack_id.map_or_else(|| "id not known".to_owned(), |id| format!("cqn {id} of `rdma resource show cq`"));
    let mut waiters: Vec<u32> = cq.waiters.iter().copied().collect();
    waiters.sort_unstable();
    writeln!(out, "\nCQ {:#x} ({id}), woken threads {waiters:?}", cq.user_handle)?;
    writeln!(
        out,
        "  {} events: {} woke a sleeper, {} came while it was already woken, {} while it was running, {} unresolved",
        cq.events, cq.woken, cq.runnable, cq.running, cq.unresolved
    )?;
    writeln!(out, "  {:<22} {:>9} {:>10} {:>10} {:>10} {:>10}   microseconds", "", "n", "p50", "p99", "p99.9", "max")?;
    let rows = [
        ("handler → waking", &cq.handler_to_waking),
        ("waking → wakeup", &cq.waking_to_wakeup),
        ("wakeup → run", &cq.wakeup_to_run),
        ("handler → run", &cq.handler_to_run),
    ];
    for (name, times) in rows {
        writeln!(
            out,
            "  {name:<22} {:>9} {:>10} {:>10} {:>10} {:>10}",
            times.len(),
            at(times, 0.5),
            at(times, 0.99),
            at(times, 0.999),
            max(times)
        )?;
    }
    if cq.cqes > 0 {
        writeln!(out, "  {} CQEs posted", cq.cqes)?;
    }
    if cq.cqes_since_event >= CQES_WITHOUT_EVENT {
        writeln!(
            out,
            "  {} CQEs were posted after the last event: the CQ was not armed. A program that sleeps on its channel now sleeps on finished work \
             (it must poll once more after arming, and poll every CQ of the channel).",
            cq.cqes_since_event
        )?;
    }
    Ok(())
}

fn write_losses(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    let delivered: u64 = trace.losses.kinds.iter().map(|kind| kind.delivered).sum();
    let missed = trace.losses.missed_probes.map_or_else(|| "unknown".to_owned(), |missed| missed.to_string());
    writeln!(
        out,
        "\n{delivered} records, {} lost, {} of an unknown kind; probe runs skipped by the kernel: {missed}",
        trace.losses.lost(),
        trace.unknown_records
    )?;
    for hook in trace.hooks.iter().filter(|hook| hook.planned.symbol.is_none() && hook.planned.mandatory) {
        writeln!(out, "absent: {}: {}", hook.planned.hook, hook.planned.reason)?;
    }
    Ok(())
}

/// Why a process had no event, as far as the hit counts tell.
fn why_none(trace: &Trace) -> String {
    let handler = trace.hooks.iter().find(|hook| hook.planned.hook == super::HANDLER);
    match handler {
        Some(hook) if hook.planned.symbol.is_none() => format!("the handler's probe is absent ({})", hook.planned.reason),
        Some(hook) if hook.hits == 0 => {
            "no completion handler ran on this machine: the program polls, is idle, or uses no completion channel".to_owned()
        }
        Some(hook) => format!("completion handlers ran {} times, all for other processes", hook.hits),
        None => "the handler's probe is not in the plan".to_owned(),
    }
}

fn at(times: &Times, quantile: f64) -> String {
    if times.len() as f64 * (1.0 - quantile) < SAMPLES_BEYOND { "-".to_owned() } else { micros(times.value_at_quantile(quantile)) }
}

fn max(times: &Times) -> String {
    if times.is_empty() { "-".to_owned() } else { micros(times.max()) }
}

fn micros(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1000.0)
}
