//! Judges a disturbed run: the injector's log says which samples were hit, the samples' own stamps say when they were; only then is the
//! analysis asked what it made of them.
use super::injector::Injection;
use analysis::explain::{SampleVerdict, verdicts};
use analysis::join::flags::Flag;
use analysis::stages::StageId;
use capture::{Capture, find};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Samples that must have been hit.
const HITS_MIN: usize = 20;
/// Undisturbed samples to compare with.
const UNDISTURBED_MIN: usize = 100;
/// Share of the hit samples in which the verdict must name the injected stage.
const NAMED_MIN: f64 = 0.95;
/// By so much of the delay may the mean of another stage move.
const OTHERS_MAX: f64 = 0.2;
/// The delay is at least so many times the undisturbed p99.
const DELAY_TIMES_P99: u64 = 5;
/// A sample this close to an injection is not undisturbed: caches and queues need a moment.
const GUARD_NS: u64 = 1_000_000;

/// Says it in the test's output, which is shown of failed tests, and in a file that leaves the guest.
macro_rules! say {
    ($($word:tt)*) => {{
        let line = format!($($word)*);
        println!("{line}");
        if let Ok(folder) = std::env::var("OUT")
            && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(Path::new(&folder).join("delays.txt"))
        {
            let _ = writeln!(file, "{line}");
        }
    }};
}

/// Which samples an injection hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "each test program uses some of them")]
pub enum Rule {
    /// Those that were under way for at least half of it.
    Overlaps,
    /// Those that were posted within it and were under way for at least half of it.
    PostedWithin,
    /// Those that lie wholly within it: it delays every one by the same.
    Within,
}

/// What is expected of a run.
#[derive(Clone, Debug)]
pub struct Case {
    /// Stages that the delay may be named as; more than one only where the kernel decides between equals.
    pub stages: &'static [StageId],
    /// What the delay was to be, ns.
    pub delay_ns: u64,
    /// Which samples are hit.
    pub rule: Rule,
}

/// The verdicts on the traced samples of the one capture below `out`.
fn read(out: &Path) -> Vec<SampleVerdict> {
    let folders = find(out).expect("a capture");
    let [folder] = folders.as_slice() else { panic!("one capture, but {folders:?}") };
    let notes = Capture::open(folder).expect("it opens").manifest.notes;
    let verdicts = verdicts(folder).expect("it joins");
    assert!(!verdicts.is_empty(), "no traced sample: {notes:?}");
    verdicts
}

fn is_hit(sample: &SampleVerdict, injection: &Injection, rule: Rule) -> bool {
    let overlap_ns = sample.end_ns.min(injection.end_ns).saturating_sub(sample.begin_ns.max(injection.begin_ns));
    let half = overlap_ns * 2 >= injection.end_ns - injection.begin_ns;
    let posted = (injection.begin_ns..injection.end_ns).contains(&sample.begin_ns);
    injection.done
        && match rule {
            Rule::Overlaps => half,
            Rule::PostedWithin => half && posted,
            Rule::Within => posted && sample.end_ns <= injection.end_ns,
        }
}

fn is_undisturbed(sample: &SampleVerdict, log: &[Injection]) -> bool {
    log.iter().all(|it| sample.end_ns + GUARD_NS < it.begin_ns || sample.begin_ns > it.end_ns + GUARD_NS)
}

fn mean(samples: &[&SampleVerdict], stage: StageId) -> f64 {
    samples.iter().filter_map(|it| it.stage_ns(stage)).map(|ns| ns as f64).sum::<f64>() / samples.len() as f64
}

fn quantile(mut values: Vec<u64>, share: f64) -> u64 {
    values.sort_unstable();
    let at = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len());
    values[at - 1]
}

fn describe(sample: &SampleVerdict) -> String {
    let stages: Vec<String> = sample.stages.iter().map(|(name, ns)| format!("{name} {}", ns / 1000)).collect();
    let flags: Vec<&str> = sample.flags.iter().map(Flag::name).collect();
    format!("{} us: {} [{}] {:?}", sample.total_ns / 1000, stages.join(", "), flags.join(" "), sample.culprit)
}

/// Checks the run in `out` against the injector's log; gives the hit samples for what a test wants to know besides.
pub fn check(out: &Path, log: &[Injection], case: &Case) -> Vec<SampleVerdict> {
    let all = read(out);
    let undisturbed: Vec<&SampleVerdict> = all.iter().filter(|it| !it.is_lost() && is_undisturbed(it, log)).collect();
    let hits = all.iter().filter(|it| log.iter().any(|injection| is_hit(it, injection, case.rule)));
    // A packet that was sent again tells of the delay in two stages: counted, not judged.
    let (again, hits): (Vec<&SampleVerdict>, Vec<&SampleVerdict>) = hits.partition(|it| it.flags.has(Flag::Retransmit));
    let (lost, hits): (Vec<&SampleVerdict>, Vec<&SampleVerdict>) = hits.into_iter().partition(|it| it.is_lost());
    say!("{} more hit samples have RETRANSMIT", again.len());
    say!("{}: expected {:?}", std::thread::current().name().unwrap_or_default(), case.stages);
    let injected: Vec<&Injection> = log.iter().filter(|it| it.done).collect();
    say!(
        "{} injections, {} looks; {} traced samples: {} undisturbed, {} hit ({} more are LOST)",
        injected.len(),
        log.len() - injected.len(),
        all.len(),
        undisturbed.len(),
        hits.len(),
        lost.len()
    );
    assert!(undisturbed.len() >= UNDISTURBED_MIN, "{} undisturbed samples", undisturbed.len());
    let latencies: Vec<u64> = undisturbed.iter().map(|it| it.total_ns).collect();
    let p99_ns = quantile(latencies.clone(), 0.99);
    say!("undisturbed: p50 {} us, p99 {} us; delay {} us", quantile(latencies, 0.5) / 1000, p99_ns / 1000, case.delay_ns / 1000);
    let mut named: BTreeMap<StageId, usize> = BTreeMap::new();
    let mut shown = 0;
    for hit in &hits {
        if let Some(stage) = hit.stage {
            *named.entry(stage).or_default() += 1;
        }
        if shown < 8 && !hit.stage.is_some_and(|stage| case.stages.contains(&stage)) {
            shown += 1;
            say!("named {}: {}", hit.stage.map_or("nothing", StageId::name), describe(hit));
        }
    }
    say!("named: {named:?}");
    let mut moved = Vec::new();
    for stage in StageId::all().filter(|_| !hits.is_empty()) {
        let (before, after) = (mean(&undisturbed, stage), mean(&hits, stage));
        if (after - before).abs() > 1000.0 {
            say!("  {:<36} mean {:>8.0} us, hit {:>8.0} us", stage, before / 1000.0, after / 1000.0);
        }
        moved.push((stage, after - before));
    }
    assert!(hits.len() >= HITS_MIN, "{} hit samples", hits.len());
    assert!(lost.len() * 10 <= hits.len(), "{} of the hit samples are LOST", lost.len());
    assert!(case.delay_ns >= DELAY_TIMES_P99 * p99_ns, "p99 {p99_ns} ns is too long for a delay of {} ns", case.delay_ns);
    let right: usize = case.stages.iter().filter_map(|stage| named.get(stage)).sum();
    assert!(right as f64 >= hits.len() as f64 * NAMED_MIN, "named {named:?}, injected {:?}", case.stages);
    let limit_ns = case.delay_ns as f64 * OTHERS_MAX;
    let others: Vec<_> = moved.iter().filter(|(name, by)| !case.stages.contains(name) && by.abs() > limit_ns).collect();
    assert!(others.is_empty(), "other stages moved: {others:?} (ns)");
    let grown: f64 = moved.iter().filter(|(name, _)| case.stages.contains(name)).map(|(_, by)| by).sum();
    assert!(grown >= case.delay_ns as f64 / 2.0, "the injected stage grew by {grown} ns only");
    hits.into_iter().cloned().collect()
}

/// Checks that the culprit of this kind is named in as many of the hit samples as the stage must be.
pub fn check_culprit(hits: &[SampleVerdict], kind: &str, pid: Option<u32>) {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for culprit in hits.iter().filter_map(|it| it.culprit.as_ref()) {
        let right = pid.is_none_or(|pid| culprit.pid == Some(pid));
        *kinds.entry(format!("{}{}", culprit.kind, if right { "" } else { " by another" })).or_default() += 1;
    }
    say!("culprits: {kinds:?}");
    let named = kinds.get(kind).copied().unwrap_or(0);
    assert!(named as f64 >= hits.len() as f64 * NAMED_MIN, "{kind} is named in {named} of {}: {kinds:?}", hits.len());
}
