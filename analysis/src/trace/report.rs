//! A trace into finished numbers.
use super::conditions;
use super::cq::{CqTrace, Outcomes, Stage};
use super::join::Join;
use super::model::{CqReport, HistogramReport, InterruptReport, StageReport, TraceReport};
use super::times::Log2;
use capture::Manifest;
use capture::limits::LOSS_LIMIT;
use capture::manifest::{Outcome, TraceFacts};
use capture::text::units::{count, loss};
use std::collections::BTreeMap;

/// The report over a trace that has ended. `manifest.trace` must be set; without it the report is of no process.
pub fn report(mut join: Join, manifest: Manifest, path: String) -> TraceReport {
    let facts = manifest.trace.clone().unwrap_or_default();
    // Before the end: it needs to know what lies in the channels.
    let conditions = conditions::find(&join, &facts);
    join.end();
    let names: BTreeMap<u32, &str> = facts.processes.iter().map(|process| (process.tgid, process.comm.as_str())).collect();
    let is_ours = |cq: &&CqTrace| cq.tgid == 0 || names.contains_key(&cq.tgid);
    let cqs: Vec<CqReport> = join.cqs().iter().filter(is_ours).map(|cq| cq_report(cq, &facts, names.get(&cq.tgid).copied())).collect();
    let (lost, attempted) = manifest.losses.iter().fold((0, 0), |(lost, all), row| (lost + row.lost, all + row.attempted));
    let loss_share = if attempted > 0 { lost as f64 / attempted as f64 } else { 0.0 };
    TraceReport {
        path,
        duration_ns: facts.end_ns.saturating_sub(facts.begin_ns),
        outcomes: sum(cqs.iter().map(|cq| cq.outcomes)),
        conditions,
        histograms: histograms(&join),
        interrupts: interrupts(&join, &facts),
        early_reads: join.early_reads,
        warnings: warnings(&manifest, &facts, lost, loss_share, &cqs),
        loss_share,
        cqs,
        manifest,
    }
}

fn sum(all: impl Iterator<Item = Outcomes>) -> Outcomes {
    all.fold(Outcomes::default(), |sum, it| Outcomes {
        woken: sum.woken + it.woken,
        woken_on_cpu: sum.woken_on_cpu + it.woken_on_cpu,
        runnable: sum.runnable + it.runnable,
        running: sum.running + it.running,
        elsewhere: sum.elsewhere + it.elsewhere,
        incomplete: sum.incomplete + it.incomplete,
        unmatched: sum.unmatched + it.unmatched,
        discarded: sum.discarded + it.discarded,
        unread: sum.unread + it.unread,
    })
}

fn cq_report(cq: &CqTrace, facts: &TraceFacts, comm: Option<&str>) -> CqReport {
    let listed =
        facts.known_cqs.iter().find(|known| known.tgid == cq.tgid && Some(known.restrack_id) == cq.restrack_id && cq.created_ns.is_none());
    let stage = |stage: Stage| Some(StageReport { stage, name: stage.name(), spread: cq.times(stage).spread()? });
    let due = cq.outcomes.due();
    CqReport {
        tgid: cq.tgid,
        comm: comm.unwrap_or("not known").to_owned(),
        restrack_id: cq.restrack_id,
        device: listed.map(|known| known.device.clone()),
        user_handle: cq.user_handle,
        channel: cq.channel,
        depth: cq.depth,
        was_created: cq.created_ns.is_some(),
        was_destroyed: cq.destroyed_ns.is_some(),
        events: cq.events,
        outcomes: cq.outcomes,
        complete_share: (due > 0).then(|| cq.outcomes.complete() as f64 / due as f64),
        from_process: cq.from_process,
        waiters: cq.waiters.iter().copied().collect(),
        readers: cq.readers.iter().copied().collect(),
        stages: Stage::ALL.into_iter().filter_map(stage).collect(),
        cqes: cq.shows_cqes().then_some(cq.cqes),
        error_cqes: cq.error_cqes,
        cqes_since_event: cq.cqes_since_event,
        arms: cq.shows_cqes().then_some(cq.arms),
        arms_over_unread: cq.arms_over_unread,
        unread_cqes: facts.unread.iter().find(|it| it.cq == cq.cq && cq.cq != 0).map(|it| it.cqes),
        note: (cq.events == 0).then(|| without_events(cq).to_owned()),
    }
}

/// Why a CQ had no event, as far as records tell.
fn without_events(cq: &CqTrace) -> &'static str {
    match (cq.created_ns, cq.channel, cq.cqes, cq.arms) {
        (Some(_), 0, ..) => "no completion channel: its completions can only be found by polling, which cannot be seen from outside",
        (_, _, 1.., 0) => "never armed: its completions are found by polling, which cannot be seen from outside",
        (_, _, 0, 1..) => "armed, and no completion came",
        (_, _, 1.., 1..) => "armed, but no completion came while it was",
        (Some(_), ..) => "no event: it was polled (which cannot be seen from outside) or idle",
        (None, ..) => "listed by the kernel, no event: it is polled (which cannot be seen from outside) or idle",
    }
}

fn histograms(join: &Join) -> Vec<HistogramReport> {
    let cpus = &join.cpus;
    let merged = |all: &mut dyn Iterator<Item = Log2>| {
        all.fold(Log2::default(), |mut sum, it| {
            sum.merge(&it);
            sum
        })
    };
    let time = |name: &str, meaning, histogram, absent| HistogramReport {
        name: name.into(),
        meaning,
        is_time: true,
        histogram,
        absent: Some(absent),
    };
    let mut all = vec![
        time(
            "interrupt handling",
            "begin → end of every device interrupt's handler",
            merged(&mut cpus.irq_handling.values().map(|it| it.log2())),
            "no device interrupt came",
        ),
        time(
            "NAPI poll",
            "begin of the softirq, or end of the poll before in it → end of the poll",
            cpus.napi_poll.clone(),
            "no network device was polled: loopback traffic of soft-RoCE passes none",
        ),
        HistogramReport {
            name: "packets by NAPI poll".into(),
            meaning: "packets that one poll handled",
            is_time: false,
            histogram: cpus.napi_packets.clone(),
            absent: Some("no network device was polled"),
        },
        time("NET_RX latency", "the softirq is raised → it begins", cpus.net_rx_latency.clone(), "NET_RX was not raised"),
        time("NET_RX", "begin → end of the softirq", cpus.net_rx_run.clone(), "NET_RX did not run"),
        time("tasklet latency", "the softirq is raised → it begins", cpus.tasklet_latency.clone(), "no tasklet was raised"),
    ];
    for stage in [Stage::HandlerToRun, Stage::RunToRead, Stage::HandlerToRead] {
        let histogram = merged(&mut join.cqs().iter().map(|cq| cq.times(stage).log2()));
        all.push(time(stage.name(), "all CQs of the trace", histogram, "no event had this stage"));
    }
    for it in all.iter_mut().filter(|it| it.histogram.n() > 0) {
        it.absent = None;
    }
    all
}

fn interrupts(join: &Join, facts: &TraceFacts) -> Vec<InterruptReport> {
    let handling = |irq: u32| join.cpus.irq_handling.get(&irq).and_then(|times| times.spread());
    let counts = |counts: &[u64]| counts.iter().enumerate().filter(|(_, n)| **n > 0).map(|(cpu, n)| (cpu as u32, *n)).collect::<Vec<_>>();
    let mut rows: Vec<InterruptReport> = facts
        .interrupts
        .iter()
        .map(|row| InterruptReport { irq: row.irq, name: row.name.clone(), counts: counts(&row.counts), handling: handling(row.irq) })
        .filter(|row| !row.counts.is_empty())
        .collect();
    for ((irq, cpu), n) in &join.cpus.irq_counts {
        if facts.interrupts.iter().any(|row| row.irq == *irq) {
            continue;
        }
        match rows.iter_mut().find(|row| row.irq == *irq) {
            Some(row) => row.counts.push((*cpu, *n)),
            None => rows.push(InterruptReport { irq: *irq, name: String::new(), counts: vec![(*cpu, *n)], handling: handling(*irq) }),
        }
    }
    rows.sort_by_key(|row| row.irq);
    rows
}

fn warnings(manifest: &Manifest, facts: &TraceFacts, lost: u64, loss_share: f64, cqs: &[CqReport]) -> Vec<String> {
    let mut warnings = manifest.notes.clone();
    if manifest.host.emulated {
        warnings.push("EMULATED: instructions were emulated (TCG). Order, counts and shares hold; durations are the emulator's.".into());
    }
    match &manifest.outcome {
        Outcome::Recording => warnings.push("the recording has no end: it was killed, or goes on".into()),
        Outcome::Failed(why) => warnings.push(format!("the trace failed: {why}")),
        _ => {}
    }
    for row in manifest.plan.iter().filter(|row| row.symbol.is_none() && row.unasked().is_none()) {
        warnings.push(format!("the probe {} is absent: {}", row.hook, row.reason));
    }
    if lost > 0 {
        let over = if loss_share > LOSS_LIMIT { format!(", more than {}", loss(LOSS_LIMIT)) } else { String::new() };
        warnings.push(format!(
            "{} records were lost ({}{over}): stages that needed them are missing, not zero",
            count(lost),
            loss(loss_share)
        ));
    }
    if facts.unknown_records > 0 {
        warnings.push(format!("{} records are of kinds that this version does not know", count(facts.unknown_records)));
    }
    if cqs.iter().any(|cq| cq.cqes.is_none() && cq.events > 0) {
        warnings.push("this driver shows no CQE, no arming and no queue: an overrun is seen only where the driver reports it".into());
    }
    warnings
}
