//! A trace as text: what was watched, what is wrong, a table per CQ, interrupts, histograms.
use super::cq::Outcomes;
use super::model::{CqReport, HistogramReport, InterruptReport, TraceReport};
use super::times::Log2;
use capture::text::units::{count, ns, percent};
use ebpf_probes::Kind;
use std::fmt::Write;

/// Characters of the longest bar.
const BAR_CHARS: u64 = 40;
/// CPUs that are listed per interrupt.
const CPUS_SHOWN: usize = 8;

/// The whole text; `histograms`: also those.
pub fn render(report: &TraceReport, histograms: bool) -> String {
    let mut text = String::new();
    head(&mut text, report);
    for condition in &report.conditions {
        let _ = writeln!(text, "! {} (process {}): {}", condition.name.to_uppercase(), condition.tgid, condition.sentence);
    }
    if report.cqs.is_empty() {
        let _ = writeln!(text, "no CQ of the traced programs was seen: {}", why_none(report));
    }
    for cq in &report.cqs {
        write_cq(&mut text, cq);
    }
    interrupts(&mut text, &report.interrupts);
    if histograms {
        for it in &report.histograms {
            histogram(&mut text, it);
        }
        text.push_str(
            "\ndriver poll: not shown. A program's own ibv_poll_cq never enters the kernel; the kernel's poll functions run for kernel \
             consumers only.\n",
        );
    }
    tail(&mut text, report);
    text
}

fn head(text: &mut String, report: &TraceReport) {
    let facts = report.manifest.trace.as_ref();
    let processes: Vec<String> = facts.into_iter().flat_map(|it| &it.processes).map(|it| format!("{} ({})", it.tgid, it.comm)).collect();
    let _ = writeln!(text, "traced {} on {}", ns(report.duration_ns as f64), report.manifest.host.kernel);
    let ended = facts.into_iter().flat_map(|it| &it.processes).filter(|it| it.ended).count();
    let list = if processes.is_empty() { "none was seen".to_owned() } else { processes.join(", ") };
    let _ = writeln!(text, "processes: {list}{}", if ended > 0 { format!("; {ended} ended") } else { String::new() });
}

fn write_cq(text: &mut String, cq: &CqReport) {
    let id = cq.restrack_id.map_or_else(|| "id not known".to_owned(), |id| format!("cqn {id} of `rdma resource show cq`"));
    let mut facts = vec![id];
    facts.extend(cq.device.clone().map(|device| format!("on {device}")));
    facts.extend(cq.depth.map(|depth| format!("holds {depth} CQEs")));
    facts.push(if cq.was_created { "created during the trace".to_owned() } else { "older than the trace".to_owned() });
    if cq.was_destroyed {
        facts.push("destroyed".to_owned());
    }
    let address = if cq.user_handle == 0 { String::new() } else { format!(" {:#x}", cq.user_handle) };
    let _ = writeln!(text, "\nCQ{address} of {} ({}): {}", cq.tgid, cq.comm, facts.join(", "));
    let posted = match (cq.cqes, cq.arms) {
        (Some(cqes), Some(arms)) => {
            let errors = if cq.error_cqes > 0 { format!(" ({} with an error)", count(cq.error_cqes)) } else { String::new() };
            let unread = cq.unread_cqes.map_or_else(String::new, |cqes| format!(", {cqes} unread at the end"));
            format!(
                "{} CQEs posted{errors}, {} after the last event{unread}; armed {} times",
                count(cqes),
                cq.cqes_since_event,
                count(arms)
            )
        }
        _ => "CQEs, arming and unread CQEs: not visible with this driver".to_owned(),
    };
    match &cq.note {
        Some(note) => {
            let _ = writeln!(text, "  0 events: {note}");
            if cq.cqes.is_some() {
                let _ = writeln!(text, "  {posted}");
            }
            return;
        }
        None => outcomes(text, cq),
    }
    let _ = writeln!(text, "  {posted}");
    let _ = writeln!(text, "  {:<24} {:>9} {:>10} {:>10} {:>10} {:>10}", "", "n", "p50", "p90", "p99", "max");
    for row in &cq.stages {
        let it = row.spread;
        let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), ns);
        let _ = writeln!(
            text,
            "  {:<24} {:>9} {:>10} {:>10} {:>10} {:>10}",
            row.name,
            count(it.n),
            value(it.p50_ns),
            value(it.p90_ns),
            value(it.p99_ns),
            ns(it.max_ns)
        );
    }
}

fn outcomes(text: &mut String, cq: &CqReport) {
    let Outcomes { woken, woken_on_cpu, runnable, running, elsewhere, incomplete, unmatched, discarded, unread } = cq.outcomes;
    let mut parts = vec![
        format!("{} woke a sleeper", count(woken)),
        format!("{} came while it was already woken", count(runnable)),
        format!("{} while it was running", count(running)),
    ];
    if woken_on_cpu > 0 {
        parts.push(format!("{} as it was about to sleep", count(woken_on_cpu)));
    }
    if elsewhere > 0 {
        parts.push(format!("{} while it slept on something else", count(elsewhere)));
    }
    if discarded > 0 {
        parts.push(format!("{} went with their CQ unread", count(discarded)));
    }
    if unread > 0 {
        parts.push(format!("{} not read at the end", count(unread)));
    }
    let _ = writeln!(text, "  {} events: {}, {} unresolved", cq.events, parts.join(", "), incomplete + unmatched);
    if let Some(share) = cq.complete_share {
        let _ = writeln!(text, "  complete: {} of the {} events that were read", percent(share), count(cq.outcomes.due()));
    }
    let readers = |threads: &[u32]| threads.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let from =
        if cq.from_process > 0 { format!("; {} handlers were called by a process itself", count(cq.from_process)) } else { String::new() };
    let _ = writeln!(text, "  read by thread {}; woken {}{from}", readers(&cq.readers), readers(&cq.waiters));
}

fn interrupts(text: &mut String, rows: &[InterruptReport]) {
    if rows.is_empty() {
        text.push_str("\nno device interrupt came\n");
        return;
    }
    let _ = writeln!(text, "\ninterrupts per vector and CPU");
    for row in rows {
        let shown: Vec<String> = row.counts.iter().take(CPUS_SHOWN).map(|(cpu, n)| format!("CPU {cpu}: {}", count(*n))).collect();
        let more = row.counts.len().saturating_sub(CPUS_SHOWN);
        let more = if more > 0 { format!(", {more} more CPU{}", if more == 1 { "" } else { "s" }) } else { String::new() };
        let handling = row.handling.map_or_else(String::new, |it| {
            format!("; handling p50 {}, max {}", it.p50_ns.map_or_else(|| "-".to_owned(), ns), ns(it.max_ns))
        });
        let _ = writeln!(text, "  {:>4} {:<40} {}{more}{handling}", row.irq, row.name, shown.join(", "));
    }
}

fn histogram(text: &mut String, it: &HistogramReport) {
    let _ = writeln!(text, "\n{}: {}", it.name, it.meaning);
    match it.absent {
        Some(why) => drop(writeln!(text, "  none: {why}")),
        None => bins(text, &it.histogram, it.is_time),
    }
}

/// The bins with bars, from the first to the last that is not empty.
fn bins(text: &mut String, histogram: &Log2, is_time: bool) {
    let most = histogram.bins.iter().max().copied().unwrap_or(0).max(1);
    let first = histogram.bins.iter().position(|n| *n > 0).unwrap_or(0);
    for (bin, n) in histogram.bins.iter().enumerate().skip(first) {
        let (from, below) = bin_ends(bin, is_time);
        let bar = "█".repeat((n * BAR_CHARS).div_ceil(most) as usize);
        let _ = writeln!(text, "  {:>9} - {:>9} {:>9} {bar}", from, below, count(*n));
    }
}

/// Where a bin of a [`Log2`] begins and what it stays below, as text: times in their unit, counts as they are. The first begins at 0.
pub(crate) fn bin_ends(bin: usize, is_time: bool) -> (String, String) {
    let bound = |power: usize| if is_time { ns((power as f64).exp2()) } else { count(1 << power.min(63)) };
    (if bin == 0 { "0".to_owned() } else { bound(bin) }, bound(bin + 1))
}

fn tail(text: &mut String, report: &TraceReport) {
    let losses = &report.manifest.losses;
    let delivered: u64 = losses.iter().map(|row| row.delivered).sum();
    let lost: u64 = losses.iter().map(|row| row.lost).sum();
    let missed = report.manifest.missed_probes.map_or_else(|| "unknown".to_owned(), count);
    let _ = writeln!(text, "\n{} records, {} lost; probe runs skipped by the kernel: {missed}", count(delivered), count(lost));
    if report.early_reads > 0 {
        let _ = writeln!(text, "{} events were read that had come before the trace began", count(report.early_reads));
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "note: {warning}");
    }
    text.push_str("note: what a program finds by polling, and when, cannot be seen from outside: it does not enter the kernel\n");
}

/// Why there is no CQ, as far as the hit counts tell.
fn why_none(report: &TraceReport) -> String {
    let facts = report.manifest.trace.as_ref();
    if facts.is_none_or(|facts| facts.processes.is_empty()) {
        return "no such process was there or created a CQ".to_owned();
    }
    match report.manifest.plan.iter().find(|row| row.gives.iter().any(|kind| kind == Kind::CompHandler.name())) {
        Some(row) if row.symbol.is_none() => format!("the handler's probe is absent ({})", row.reason),
        Some(row) if row.hits == Some(0) => {
            "no completion handler ran on this machine: the program polls, is idle, uses no completion channel, or no verbs at all"
                .to_owned()
        }
        Some(row) => format!("completion handlers ran {} times, all for other processes", count(row.hits.unwrap_or(0))),
        None => "the handler's probe is not in the plan".to_owned(),
    }
}
