//! One run as text: the stage table with bars, and in full everything that is known of it.
use super::parts::{Style, metric, quantile, table};
use crate::report::model::{Breakdown, RunReport};
use crate::report::names;
use crate::show::words::{bypass, costs, overlay};
use capture::text::units::{count, counted, ns, percent};
use std::fmt::Write;

const BAR_CHARS: f64 = 30.0;

/// The stage table of a run with its head line.
pub(super) fn stages(text: &mut String, run: &RunReport, style: Style) {
    let Some(breakdown) = &run.breakdown else { return };
    let slept = run.slept_share.map_or(String::new(), |it| format!(", {} slept", percent(it)));
    let _ = writeln!(
        text,
        "{} ({} traced samples{slept}; named stages cover {})",
        style.bold(&format!("Where the time goes: {}", run.name)),
        count(breakdown.samples),
        percent(breakdown.coverage)
    );
    let mut rows = vec![["stage", "share", "mean", "p50", "p99", "max", "seen in"].map(String::from).to_vec()];
    let mut bars = vec![String::new()];
    let value = |it: Option<u64>| it.map_or("-".into(), |v| ns(v as f64));
    for stage in &breakdown.stages {
        bars.push("█".repeat((stage.share.clamp(0.0, 1.0) * BAR_CHARS).round() as usize));
        rows.push(vec![
            stage.stage.to_string(),
            percent(stage.share),
            ns(stage.mean_of_all_ns),
            value(stage.p50_ns),
            value(stage.p99_ns),
            if stage.n == 0 { "-".into() } else { ns(stage.max_ns as f64) },
            count(stage.n),
        ]);
    }
    for (line, bar) in table(&rows, 1).lines().zip(&bars) {
        let _ = if bar.is_empty() { writeln!(text, "{line}") } else { writeln!(text, "{line}  {}", style.bar(bar)) };
    }
    text.push_str(
        "  (mean: over all joined samples, so the means add up; p50, p99, max: over the samples in which the stage was seen.)\n\n",
    );
}

/// Everything about a run.
pub(super) fn full(text: &mut String, run: &RunReport, style: Style) {
    let (host, setup) = (&run.manifest.host, &run.manifest.run);
    let _ = writeln!(text, "{}", style.bold(&format!("== {} {} ({}) ==", run.manifest.run.op, run.manifest.run.mode, run.path)));
    let _ = writeln!(text, "  kernel {}, {}, {}", host.kernel, counted(host.cpus.into(), "CPU"), host.cpu_model);
    let _ = writeln!(
        text,
        "  device {} ({}), {} {} B, depth {}, probes {}, {}",
        run.manifest.device.name,
        run.manifest.device.driver,
        names::of_transport(setup.transport),
        setup.size_bytes,
        setup.depth,
        setup.level,
        if setup.same_kernel { "both ends on one kernel" } else { "two kernels" }
    );
    if !run.manifest.placement.text.is_empty() {
        let _ = writeln!(text, "  placement: {}", run.manifest.placement.text);
    }
    for (name, latency) in [("untraced", &run.untraced), ("traced", &run.traced)] {
        if let Some(it) = latency {
            let _ = writeln!(
                text,
                "  {name}: {} n={} failed={} min {} mean {} stddev {} p50 {} p90 {} p99 {} p99.9 {} p99.99 {} max {}",
                metric(it),
                count(it.n),
                count(it.failed),
                ns(it.min_ns as f64),
                ns(it.mean_ns),
                ns(it.stddev_ns),
                quantile(it, 0.5),
                quantile(it, 0.9),
                quantile(it, 0.99),
                quantile(it, 0.999),
                quantile(it, 0.9999),
                ns(it.max_ns as f64)
            );
        }
    }
    let cpu = |it: Option<f64>| it.map_or("unknown".into(), ns);
    let _ = writeln!(
        text,
        "  CPU per operation: thread {}, server thread {}, whole machine {} (ticks, everything that ran)",
        cpu(run.cpu.thread_ns_per_op),
        cpu(run.cpu.server_ns_per_op),
        cpu(run.cpu.machine_ns_per_op)
    );
    match &run.observer {
        Some(it) => {
            let (low, high) = it.p50_interval_ns;
            let _ = writeln!(
                text,
                "  probes add {} to the median (95 % interval {} to {}; {} traced, {} untraced rounds)",
                ns(it.p50_diff_ns),
                ns(low),
                ns(high),
                it.rounds.0,
                it.rounds.1
            );
        }
        None => text.push_str("  what the probes add is unknown (it takes two traced and two untraced rounds)\n"),
    }
    poll_and_post(text, run, style);
    proof_of_bypass(text, run, style);
    let missed = run.manifest.missed_probes.map_or("unknown (this kernel does not tell)".into(), count);
    let _ = writeln!(
        text,
        "  records or samples lost: {}; probe hits that the kernel dropped: {missed}",
        capture::text::units::loss(run.loss_share)
    );
    for hook in &run.silent {
        let _ = writeln!(text, "  {} ({}): {} hits; {}", hook.hook, hook.symbol, count(hook.hits), hook.meaning);
    }
    text.push('\n');
    stages(text, run, style);
    if let Some(breakdown) = &run.breakdown {
        interference(text, breakdown, style);
        details(text, breakdown, style);
    }
}

fn proof_of_bypass(text: &mut String, run: &RunReport, style: Style) {
    let lines = bypass::lines(run);
    if !lines.is_empty() {
        let _ = writeln!(text, "  {}", style.bold("proof of bypass"));
    }
    for line in lines {
        let _ = writeln!(text, "    {line}");
    }
}

/// What must be known of the costs of polls and posts, once for all runs.
pub(super) fn cost_sentences(text: &mut String, style: Style) {
    let _ = writeln!(text, "{}", style.bold("What a poll and a post cost: how to read it"));
    for sentence in costs::SENTENCES {
        let _ = writeln!(text, "  {sentence}");
    }
    text.push('\n');
}

/// What a poll and a post cost.
fn poll_and_post(text: &mut String, run: &RunReport, style: Style) {
    let _ = writeln!(text, "  {}", style.bold("what a poll and a post cost"));
    let mut rows = vec![["what", "n", "min", "p50", "p99", "max"].map(String::from).to_vec()];
    let mut meanings = vec!["meaning".to_string()];
    for row in costs::rows(run) {
        let quantile = |value| costs::range(value, ns).unwrap_or_else(|| "-".into());
        rows.push(vec![row.what.into(), count(row.n), ns(row.min_ns), quantile(row.p50_ns), quantile(row.p99_ns), ns(row.max_ns)]);
        meanings.push(row.means);
    }
    if rows.len() > 1 {
        for (line, meaning) in table(&rows, 1).lines().zip(&meanings) {
            let _ = writeln!(text, "  {line}  {meaning}");
        }
    }
    for why in costs::absent(run) {
        let _ = writeln!(text, "    absent: {why}");
    }
}

/// What took the CPU from the measured thread.
pub(super) fn interference(text: &mut String, breakdown: &Breakdown, style: Style) {
    let it = &breakdown.interference;
    let _ = writeln!(text, "  {}", style.bold("what took the thread's CPU (an overlay: the stages hold that time too)"));
    let _ = writeln!(text, "    {}", overlay::summary(it));
    let mut rows = vec![["source", "times", "samples", "in all", "longest"].map(String::from).to_vec()];
    rows.extend(overlay::rows(it).into_iter().map(|row| row.to_vec()));
    if rows.len() > 1 {
        for line in table(&rows, 1).lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    for sentence in overlay::sentences(it) {
        let _ = writeln!(text, "    {sentence}");
    }
}

fn details(text: &mut String, breakdown: &Breakdown, style: Style) {
    let _ = writeln!(
        text,
        "  joined {} of {}, LOST {}; samples covered by at least 90 %: {}",
        count(breakdown.joined),
        count(breakdown.samples),
        count(breakdown.lost),
        percent(breakdown.covered_samples)
    );
    let negative: u64 = breakdown.stages.iter().map(|stage| stage.negative).sum();
    if negative > 0 {
        let _ = writeln!(text, "  negative stages: {} (kept out of the sums)", count(negative));
    }
    if let Some(it) = breakdown.agreement {
        let _ = writeln!(text, "  inferred join agrees with the exact one: {} of {}", count(it.agreed), count(it.compared));
    }
    if !breakdown.flags.is_empty() {
        let flags: Vec<String> = breakdown.flags.iter().map(|(name, n)| format!("{name} {}", count(*n))).collect();
        let _ = writeln!(text, "  flags: {}", flags.join(", "));
    }
    let _ = writeln!(text, "  {}", style.bold("bands (mean per stage)"));
    for band in &breakdown.bands {
        let stages: Vec<String> = band
            .stages
            .iter()
            .filter(|(_, mean)| mean.abs() >= band.mean_ns * 0.005)
            .map(|(name, mean)| format!("{name} {}", ns(*mean)))
            .collect();
        let _ = writeln!(text, "  {} ({}): {} = {}", band.name, count(band.n), ns(band.mean_ns), stages.join(" + "));
    }
    let _ = writeln!(text, "  {}", style.bold("slowest"));
    for slow in &breakdown.slow {
        let flags = if slow.flags.is_empty() { String::new() } else { format!(" [{}]", slow.flag_names().join(" ")) };
        let _ = writeln!(text, "  wr {:#x} round {}{flags}: {}", slow.wr_id, slow.round, slow.verdict);
    }
    text.push('\n');
}
