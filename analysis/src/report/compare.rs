//! Modes that only spin against modes that may sleep (poll against event): ratios from untraced rounds with their intervals, and the
//! verdict, or why there is none.
use super::analysed::Analysed;
use crate::report::model::{Comparison, Verdict};
use crate::stats::bootstrap::{Compare, Estimate, compare as set_against};
use capture::Mode;
use capture::limits::LOSS_LIMIT;
use capture::manifest::Outcome;
use capture::quantile::is_shown;
use capture::text::units::{loss, percent, ratio};
use std::path::Path;

/// With fewer samples asleep than this share, event mode was not measured.
pub const SLEPT_MIN: f64 = 0.5;

/// Compares runs of the same operation, size and boot whose modes are set against each other. Where a session ran both modes, its runs are
/// compared with each other only: their rounds took turns.
pub fn all(runs: &[Analysed]) -> Vec<Comparison> {
    let mode_of = |run: &Analysed| run.report.manifest.run.mode;
    let of_mode = |mode: Mode| runs.iter().filter(move |run| mode_of(run) == mode);
    let is_paired = |run: &Analysed, mode| of_mode(mode).any(|other| is_same_job(run, other) && is_one_session(run, other));
    let mut found = Vec::new();
    for poll in runs {
        for event in runs.iter().filter(|event| are_compared(mode_of(poll), mode_of(event)) && is_same_job(poll, event)) {
            if is_one_session(poll, event) || !(is_paired(poll, mode_of(event)) || is_paired(event, mode_of(poll))) {
                found.push(pair(poll, event));
            }
        }
    }
    found
}

/// Is the first of two modes the measure of the second? One that only spins is, of one that may sleep.
fn are_compared(first: Mode, second: Mode) -> bool {
    first.spins() && !first.may_sleep() && second.may_sleep()
}

fn is_same_job(one: &Analysed, other: &Analysed) -> bool {
    let (a, b) = (&one.report.manifest, &other.report.manifest);
    a.run.op == b.run.op
        && a.run.size_bytes == b.run.size_bytes
        && a.run.metric == b.run.metric
        && a.host.boot_id == b.host.boot_id
        && a.run.same_kernel == b.run.same_kernel
}

/// A session is one process (of one boot, see [`is_same_job`]) and writes all of its captures into one folder. The process tells captures
/// of two sessions apart that were moved together, the folder two copies of one.
fn is_one_session(one: &Analysed, other: &Analysed) -> bool {
    let folder = |run: &Analysed| Path::new(&run.report.path).parent().map(Path::to_path_buf);
    one.report.manifest.placement.tgid == other.report.manifest.placement.tgid && folder(one) == folder(other)
}

fn pair(poll: &Analysed, event: &Analysed) -> Comparison {
    let (a, b) = (poll.untraced_rounds(), event.untraced_rounds());
    let shown = |q| is_shown(a.len(), q) && is_shown(b.len(), q);
    let p50 = if shown(0.5) { set_against(&a, &b, 0.5, Compare::Ratio) } else { None };
    let p99 = if shown(0.99) { set_against(&a, &b, 0.99, Compare::Ratio) } else { None };
    let cpu_ratio = match (poll.report.cpu.thread_ns_per_op, event.report.cpu.thread_ns_per_op) {
        (Some(of_poll), Some(of_event)) if of_poll > 0.0 => Some(of_event / of_poll),
        _ => None,
    };
    let reasons = reasons(poll, event, p50);
    let run = &poll.report.manifest.run;
    let verdict = match p50 {
        Some(p50) if reasons.is_empty() => Verdict::Given(sentence(poll, event, p50, cpu_ratio)),
        _ => Verdict::Withheld(reasons.join("; ")),
    };
    Comparison {
        op: run.op,
        size_bytes: run.size_bytes,
        runs: (poll.report.path.clone(), event.report.path.clone()),
        name: format!("{} {} B", run.op, run.size_bytes),
        p50_ratio: p50.map(|it| it.value),
        p50_ratio_interval: p50.and_then(|it| it.interval),
        p99_ratio: p99.map(|it| it.value),
        cpu_ratio,
        verdict,
    }
}

fn reasons(poll: &Analysed, event: &Analysed, p50: Option<Estimate>) -> Vec<String> {
    let mut reasons = Vec::new();
    if !is_one_session(poll, event) {
        reasons.push(
            "the two runs are of two sessions, so their rounds did not take turns and a change of the machine would count as a difference of \
             the modes (`rdmascope compare` measures both in one)"
                .to_string(),
        );
    }
    let manifest = &event.report.manifest;
    if manifest.host.emulated && !manifest.run.same_kernel {
        reasons.push("two emulated guests share the CPUs of one machine, so waiting and working are not apart".to_string());
    }
    if manifest.device.is_emulated() {
        reasons.push("the card is a program that takes a CPU of its own, so what polling costs cannot be told from it".to_string());
    }
    match event.report.slept_share {
        Some(slept) if slept < SLEPT_MIN => reasons.push(format!(
            "only {} of the {}-mode samples slept (the others had their CQE before they could: INLINE or NO_SLEEP), so the cost of an event was not measured",
            percent(slept),
            manifest.run.mode
        )),
        _ => {}
    }
    for run in [poll, event] {
        let name = format!("the {} run", run.report.manifest.run.mode);
        match &run.report.manifest.outcome {
            Outcome::Complete | Outcome::Interrupted => {}
            Outcome::Recording => reasons.push(format!("{name} has no end (killed, or still recording)")),
            Outcome::Unstable(why) => reasons.push(format!("{name} was unstable: {why}")),
            Outcome::Failed(why) => reasons.push(format!("{name} failed: {why}")),
        }
        if run.report.loss_share > LOSS_LIMIT {
            reasons.push(format!("{name} lost {} of its records or samples (limit {})", loss(run.report.loss_share), loss(LOSS_LIMIT)));
        }
        if run.untraced_rounds().is_empty() {
            reasons.push(format!("{name} has no untraced rounds"));
        }
    }
    match p50 {
        Some(Estimate { interval: None, .. }) => reasons.push("fewer than two untraced rounds on a side: no interval".into()),
        None if reasons.is_empty() => reasons.push("too few samples".into()),
        _ => {}
    }
    reasons
}

fn sentence(poll: &Analysed, event: &Analysed, p50: Estimate, cpu_ratio: Option<f64>) -> String {
    let emulated = poll.report.manifest.host.emulated;
    let (poll, event) = (poll.report.manifest.run.mode, event.report.manifest.run.mode);
    let cpu = cpu_ratio.map_or("its CPU time per operation is not known".into(), |value| {
        format!("it uses {} times the CPU time of the measured thread per operation", ratio(value))
    });
    let (low, high) = p50.interval.unwrap_or((p50.value, p50.value));
    let latency = if low <= 1.0 && high >= 1.0 {
        format!("no difference of the medians shown ({event}/{poll} {}, 95 % interval {} to {})", ratio(p50.value), ratio(low), ratio(high))
    } else {
        format!("{event} has {} times the median latency of polling (95 % interval {} to {})", ratio(p50.value), ratio(low), ratio(high))
    };
    let caveat = if emulated { "; instructions are emulated here: the direction holds, the factor is the emulator's" } else { "" };
    format!("{latency}; {cpu}{caveat}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::named::Named;

    /// Event mode is set against polling, never the other way round, and no mode against itself.
    #[test]
    fn what_spins_is_the_measure_of_what_may_sleep() {
        assert!(are_compared(Mode::Poll, Mode::Event) && !are_compared(Mode::Event, Mode::Poll));
        for &one in Mode::ALL {
            assert!(!are_compared(one, one), "{one}");
            let is_in_a_pair = Mode::ALL.iter().any(|&other| are_compared(one, other) || are_compared(other, one));
            assert!(is_in_a_pair, "a mode that is compared with none: {one}");
        }
    }
}
