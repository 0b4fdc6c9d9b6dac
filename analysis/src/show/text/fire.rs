//! `rdmascope doctor --fire` as text: the hooks with what was expected of them, the chains, what follows.
use super::parts::{Style, table};
use crate::report::model::{Chains, Expected, Failure, FireReport, HookFired, Judgement};
use capture::named::Named;
use capture::text::units::{count, ns, percent};
use std::fmt::Write;

/// The whole text.
pub fn fire(report: &FireReport, color: bool) -> String {
    let (mut text, style) = (String::new(), Style(color));
    device(&mut text, report, style);
    hooks(&mut text, report, style);
    absent(&mut text, report, style);
    chains(&mut text, report, style);
    stages(&mut text, report, style);
    conclusion(&mut text, report, style);
    text
}

fn device(text: &mut String, report: &FireReport, style: Style) {
    if report.emulated_device {
        let _ = writeln!(
            text,
            "{} EMULATED DEVICE: the driver is real, the card is a program. Which hook fires and which record belongs to which WR hold; \
             times are not those of any hardware.",
            style.warn("!")
        );
    }
    if report.emulated_cpu {
        let _ = writeln!(text, "{} EMULATED: instructions are emulated (TCG); durations are the emulator's.", style.warn("!"));
    }
    let _ = writeln!(text, "{}", style.bold("Device"));
    let firmware = if report.firmware.is_empty() { "not told" } else { &report.firmware };
    let _ = writeln!(text, "  driver {}, firmware {firmware}, board {}", report.driver, report.board.as_deref().unwrap_or("not told"));
    let _ = match report.shape {
        Some(shape) => writeln!(text, "  how its completions reach the handler: {shape}. {}", shape.meaning().trim()),
        None => writeln!(text, "  how its completions reach the handler is not known: only the steps from the handler on are judged"),
    };
    text.push('\n');
}

/// The hooks that are attached.
fn hooks(text: &mut String, report: &FireReport, style: Style) {
    let _ = writeln!(text, "{} (hits are those of the rounds with probes)", style.bold("Hooks"));
    let mut rows = vec![["hook", "kind", "symbol", "hits", "expected", "judgement"].map(String::from).to_vec()];
    for hook in report.hooks.iter().filter(|hook| !is_absent(hook)) {
        rows.push(vec![
            hook.hook.clone(),
            hook.kind.clone(),
            hook.symbol.clone().unwrap_or_default(),
            hook.hits.map_or("-".into(), count),
            expected(hook.expected),
            String::new(),
        ]);
    }
    let judgements = report.hooks.iter().filter(|hook| !is_absent(hook)).map(judgement);
    for (line, judgement) in table(&rows, 3).lines().zip(std::iter::once(String::new()).chain(judgements)) {
        let _ = writeln!(text, "{}", format!("{line}  {judgement}").trim_end());
    }
    text.push('\n');
}

/// Those that are not there, by reason.
fn absent(text: &mut String, report: &FireReport, style: Style) {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for hook in &report.hooks {
        let Judgement::Absent(why) = &hook.judgement else { continue };
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, hooks)) => hooks.push(&hook.hook),
            None => reasons.push((why, vec![&hook.hook])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}", style.bold("Hooks that are absent here"));
    for (why, hooks) in reasons {
        let _ = writeln!(text, "  {}: {why}", hooks.join(", "));
    }
    text.push('\n');
}

fn is_absent(hook: &HookFired) -> bool {
    matches!(hook.judgement, Judgement::Absent(_))
}

fn expected(expected: Expected) -> String {
    match expected {
        Expected::AtLeast(times) => format!("{} or more", count(times)),
        Expected::Untold => "-".into(),
        Expected::NotInPath => "not in the path".into(),
    }
}

fn judgement(hook: &HookFired) -> String {
    match &hook.judgement {
        Judgement::AsExpected => "as expected".into(),
        Judgement::Fewer(missing) => format!("FEWER than expected, by {}", count(*missing)),
        Judgement::OtherFired(other) => format!("as expected: \"{other}\" fired in its place"),
        Judgement::Silent => "SILENT".into(),
        Judgement::SilentByDesign(why) => format!("silent by design: {why}"),
        Judgement::Fired if hook.expected == Expected::NotInPath => "fired, for something else than this device's completions".into(),
        Judgement::Fired => "fired; how often it must cannot be told".into(),
        Judgement::NotSeen => "did not fire, and nothing here asks for it".into(),
        Judgement::NotCounted => "hits not counted".into(),
        Judgement::Absent(why) => format!("absent: {why}"),
    }
}

fn chains(text: &mut String, report: &FireReport, style: Style) {
    let chains = &report.chains;
    let _ = writeln!(text, "{}", style.bold("Chains"));
    let _ = writeln!(text, "  {} traced samples, {} slept until their completion", count(chains.samples), count(chains.slept));
    if chains.earlier > 0 {
        let _ = writeln!(
            text,
            "  {} of these were served by an interrupt or a poll that began for an earlier completion: they are not judged",
            count(chains.earlier)
        );
    }
    let _ = writeln!(text, "  {}", whole(chains));
    for seen in &chains.steps {
        let missing = match seen.missing {
            None if report.shape.is_none() => "not judged: the way to the handler is not known".into(),
            None => "not in this device's path".into(),
            Some(0) => "in every chain".into(),
            Some(missing) => format!("MISSING in {}", count(missing)),
        };
        let _ = writeln!(text, "    {:<30} {missing}", seen.step);
    }
    if report.records_lost > 0 {
        let _ = writeln!(text, "  {} records found no room on their way (their chains count as broken)", count(report.records_lost));
    }
    if let Some(missed) = report.missed_probes.filter(|missed| *missed > 0) {
        let _ = writeln!(text, "  {} probe hits were dropped by the kernel, which runs no probe within some others", count(missed));
    }
    text.push('\n');
}

fn whole(chains: &Chains) -> String {
    let (complete, judged) = (chains.complete, chains.judged());
    let share = if judged > 0 { format!(" ({})", percent(complete as f64 / judged as f64)) } else { String::new() };
    format!("{} of {} chains are whole{share}", count(complete), count(judged))
}

fn stages(text: &mut String, report: &FireReport, style: Style) {
    if report.stages.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}", style.bold("Stages"));
    let mut rows = vec![["stage", "p50", "seen in"].map(String::from).to_vec()];
    for stage in &report.stages {
        rows.push(vec![stage.stage.to_string(), stage.p50_ns.map_or("-".into(), |value| ns(value as f64)), count(stage.samples)]);
    }
    text.push_str(&table(&rows, 1));
    text.push('\n');
}

fn conclusion(text: &mut String, report: &FireReport, style: Style) {
    if report.is_proven() {
        let others = report.chains.judged() - report.chains.complete.min(report.chains.judged());
        let dropped = report.missed_probes.filter(|dropped| others > 0 && others <= *dropped);
        let dropped = dropped.map_or(String::new(), |_| "; the others are no more than the probe hits that the kernel dropped".into());
        let _ = writeln!(text, "{}: every hook that must fire did, and {}{dropped}.", style.bold("PROVEN"), whole(&report.chains));
        return;
    }
    let _ = writeln!(text, "{}:", style.bold("NOT PROVEN"));
    for failure in &report.failures {
        let _ = writeln!(text, "  {} {}", style.warn("!"), because(failure));
    }
}

/// One reason, as a sentence.
fn because(failure: &Failure) -> String {
    match failure {
        Failure::TooFewSlept { judged, needed } => {
            format!("only {} samples slept and can be judged; it takes {}", count(*judged), count(*needed))
        }
        Failure::HookSilent { hook } => format!("\"{hook}\" must fire and never did"),
        Failure::StepWithoutHook { step, hooks } if hooks.is_empty() => format!("{step}: the plan has no hook for this step"),
        Failure::StepWithoutHook { step, hooks } => {
            let hooks: Vec<String> = hooks.iter().map(|it| format!("\"{}\" is absent ({})", it.hook, it.why)).collect();
            format!("{step}: no hook for this step is attached: {}", hooks.join(", "))
        }
        Failure::ChainsIncomplete { complete, judged, step, broken, hooks } => {
            let hooks: Vec<String> = hooks.iter().map(|hook| format!("\"{hook}\"")).collect();
            let hooks = if hooks.is_empty() { "no hook".to_owned() } else { hooks.join(", ") };
            let of = format!("{} of {} chains are whole", count(*complete), count(*judged));
            format!("{of}: {} break at {step}, which {hooks} gives", count(*broken))
        }
    }
}
