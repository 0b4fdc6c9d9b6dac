//! What stands behind the numbers: cost of the probes, silent hooks, the probe plan, losses, placement, the machine.
use super::groups::run_words;
use super::markup::{Cell, esc, paragraph, table};
use crate::report::model::{Report, RunReport};
use capture::text::units::{count, loss, ns};
use std::fmt::Write as _;

/// What the probes cost: rounds with probes against rounds without.
pub(super) fn observer(out: &mut String, report: &Report) {
    let rows: Vec<Vec<Cell>> = report
        .runs
        .iter()
        .filter_map(|run| run.observer.as_ref().map(|cost| (run, cost)))
        .map(|(run, cost)| {
            let p99 = match (cost.p99_diff_ns, cost.p99_interval_ns) {
                (Some(diff), Some(interval)) => Cell::Num(difference(diff, interval)),
                (Some(diff), None) => Cell::Num(format!("{} (no interval)", signed(diff))),
                (None, _) => Cell::Missing(super::markup::WITHHELD),
            };
            vec![
                Cell::Head(run_words(run)),
                Cell::Num(difference(cost.p50_diff_ns, cost.p50_interval_ns)),
                p99,
                Cell::Num(format!("{} / {}", cost.rounds.0, cost.rounds.1)),
            ]
        })
        .collect();
    if rows.is_empty() {
        paragraph(out, "Not known: no run has both rounds with probes and rounds without.");
    } else {
        table(
            out,
            "Rounds with probes minus rounds without, 95 % intervals bootstrapped over rounds. An interval that holds 0 shows no difference.",
            &["run", "p50 difference [95 %]", "p99 difference [95 %]", "rounds with / without"],
            &rows,
        );
    }
}

fn difference(diff: f64, (from, to): (f64, f64)) -> String {
    let shown = if from <= 0.0 && to >= 0.0 { ", no difference shown" } else { "" };
    format!("{} [{}, {}]{shown}", signed(diff), signed(from), signed(to))
}

fn signed(value_ns: f64) -> String {
    if value_ns > 0.0 { format!("+{}", ns(value_ns)) } else { ns(value_ns) }
}

/// Hooks that stayed silent, with their control.
pub(super) fn silent(out: &mut String, report: &Report) {
    let rows: Vec<Vec<Cell>> = report
        .runs
        .iter()
        .flat_map(|run| run.silent.iter().map(move |hook| (run, hook)))
        .map(|(run, hook)| {
            vec![
                Cell::Head(run_words(run)),
                Cell::Text(hook.hook.clone()),
                Cell::Html(format!("<code>{}</code>", esc(&hook.symbol))),
                Cell::Num(count(hook.hits)),
                Cell::Text(hook.meaning.clone()),
            ]
        })
        .collect();
    if rows.is_empty() {
        paragraph(out, "None: every attached hook fired, or no probes ran.");
    } else {
        table(
            out,
            "A hook that did not fire, and what shows that its probe was alive",
            &["run", "hook", "symbol", "hits", "what that means"],
            &rows,
        );
    }
}

/// The probe plan of each run.
pub(super) fn plan(out: &mut String, report: &Report) {
    if report.runs.iter().all(|run| run.manifest.plan.is_empty()) {
        paragraph(out, "No probes were planned (level none).");
    }
    for run in report.runs.iter().filter(|run| !run.manifest.plan.is_empty()) {
        let _ = writeln!(out, "<details><summary>{}</summary>", esc(&run_words(run)));
        let rows: Vec<Vec<Cell>> = run
            .manifest
            .plan
            .iter()
            .map(|row| {
                let state = match (&row.symbol, row.attached) {
                    (None, _) => "absent",
                    (Some(_), true) => "attached",
                    (Some(_), false) => "not attached",
                };
                let mut why = row.reason.clone();
                if let Some(silence) = &row.silence {
                    let _ = write!(why, "; {silence}");
                }
                vec![
                    Cell::Head(row.hook.clone()),
                    Cell::Text(row.kind.clone()),
                    Cell::Html(row.symbol.as_ref().map_or_else(|| "none".to_string(), |symbol| format!("<code>{}</code>", esc(symbol)))),
                    Cell::Text(state.to_string()),
                    row.hits.map_or(Cell::Missing("not counted"), |hits| Cell::Num(count(hits))),
                    Cell::Text(row.gives.join(", ")),
                    Cell::Text(why),
                ]
            })
            .collect();
        table(out, "Hooks, what was chosen for them and why", &["hook", "kind", "symbol", "state", "hits", "gives", "why"], &rows);
        out.push_str("</details>\n");
    }
}

/// Records attempted, delivered and lost, and probe hits that the kernel dropped.
pub(super) fn losses(out: &mut String, report: &Report) {
    let rows: Vec<Vec<Cell>> = report
        .runs
        .iter()
        .map(|run| {
            let sum = |pick: fn(&capture::manifest::LossRow) -> u64| run.manifest.losses.iter().map(pick).fold(0u64, u64::saturating_add);
            let kinds: Vec<String> =
                run.manifest.losses.iter().filter(|row| row.lost > 0).map(|row| format!("{} {}", row.kind, count(row.lost))).collect();
            vec![
                Cell::Head(run_words(run)),
                Cell::Num(count(sum(|row| row.attempted))),
                Cell::Num(count(sum(|row| row.delivered))),
                Cell::Num(count(sum(|row| row.lost))),
                Cell::Num(loss(run.loss_share)),
                run.manifest.missed_probes.map_or(Cell::Missing("unknown"), |missed| Cell::Num(count(missed))),
                Cell::Text(if kinds.is_empty() { "none".to_string() } else { kinds.join(", ") }),
            ]
        })
        .collect();
    if rows.is_empty() {
        paragraph(out, "No runs.");
    } else {
        table(
            out,
            "Records of the probes. Missed by the kernel: hits for which it ran no probe; unknown means that this kernel does not tell.",
            &["run", "attempted", "delivered", "lost", "share lost", "missed by the kernel", "lost, by kind"],
            &rows,
        );
    }
}

/// Vector, interrupt CPU and waiter CPU of each run.
pub(super) fn placement(out: &mut String, report: &Report) {
    let number = |value: Option<u32>, missing: &'static str| value.map_or(Cell::Missing(missing), |value| Cell::Num(value.to_string()));
    let rows: Vec<Vec<Cell>> = report
        .runs
        .iter()
        .map(|run| {
            let place = &run.manifest.placement;
            vec![
                Cell::Head(run_words(run)),
                number(place.cpu, "not pinned"),
                number(place.server_cpu, "not told"),
                Cell::Num(place.comp_vector.to_string()),
                number(place.irq, "none told"),
                Cell::Text(place.irq_cpus.clone().unwrap_or_else(|| "not told".to_string())),
                Cell::Text(place.text.clone()),
            ]
        })
        .collect();
    if rows.is_empty() {
        paragraph(out, "No runs.");
    } else {
        table(
            out,
            "Completion vector, interrupt and CPUs",
            &["run", "CPU of the thread", "CPU of the server", "comp_vector", "irq", "CPUs of the irq", "in words"],
            &rows,
        );
    }
}

/// Machines and devices; runs that share them share a table.
pub(super) fn environment(out: &mut String, report: &Report) {
    let mut groups: Vec<Vec<&RunReport>> = Vec::new();
    for run in &report.runs {
        let same = |other: &RunReport| {
            let (a, b) = (&run.manifest, &other.manifest);
            a.host == b.host && a.device == b.device && a.tool_version == b.tool_version && a.tool_revision == b.tool_revision
        };
        match groups.iter_mut().find(|group| same(group[0])) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    if groups.is_empty() {
        paragraph(out, "No runs.");
    }
    for group in groups {
        let runs: Vec<String> = group.iter().map(|run| run.manifest.run.index.to_string()).collect();
        let rows: Vec<Vec<Cell>> =
            facts(group[0]).into_iter().map(|(name, value)| vec![Cell::Head(name.to_string()), Cell::Text(value)]).collect();
        table(out, &format!("Runs {}", runs.join(", ")), &["what", "value"], &rows);
    }
    let notes: Vec<String> =
        report.runs.iter().flat_map(|run| run.manifest.notes.iter().map(move |note| format!("{}: {note}", run_words(run)))).collect();
    if !notes.is_empty() {
        out.push_str("<details><summary>Notes of the runs</summary><ul>\n");
        for note in notes {
            let _ = writeln!(out, "<li>{}</li>", esc(&note));
        }
        out.push_str("</ul></details>\n");
    }
}

fn facts(run: &RunReport) -> Vec<(&'static str, String)> {
    let (host, device) = (&run.manifest.host, &run.manifest.device);
    let told = |value: &Option<String>| value.clone().unwrap_or_else(|| "not told".to_string());
    let virtual_machine = match (&host.hypervisor, host.emulated) {
        (Some(name), true) => format!("{name}, instructions EMULATED"),
        (Some(name), false) => format!("{name}, instructions run on the CPU"),
        (None, true) => "instructions EMULATED".to_string(),
        (None, false) => "none told".to_string(),
    };
    let board = match &device.board {
        Some(board) if device.is_emulated() => format!("{board}: an EMULATED DEVICE"),
        board => told(board),
    };
    vec![
        ("kernel", format!("{}{}", host.kernel, if host.realtime { " (PREEMPT_RT)" } else { "" })),
        ("CPU", format!("{}, {} online", host.cpu_model, host.cpus)),
        ("memory", format!("{} MiB", count(host.memory_bytes >> 20))),
        ("virtual machine", virtual_machine),
        ("clock source", told(&host.clocksource)),
        ("frequency governor", told(&host.governor)),
        ("device", format!("{} port {}, driver {}", device.name, device.port, device.driver)),
        ("firmware", if device.firmware.is_empty() { "not told".to_string() } else { device.firmware.clone() }),
        ("board", board),
        ("network device", told(&device.netdev)),
        ("GID", format!("index {}: {} ({})", device.gid_index, device.gid, device.gid_type)),
        ("why this GID", device.gid_reason.clone()),
        ("path MTU", format!("{} bytes", count(u64::from(device.mtu_bytes)))),
        ("link rate", device.rate_gbps.map_or_else(|| "not told".to_string(), |rate| format!("{rate} Gb/s"))),
        (
            "rdmascope",
            format!(
                "{}, revision {}",
                run.manifest.tool_version,
                run.manifest.tool_revision.as_deref().unwrap_or("unknown (not built from a checkout)")
            ),
        ),
        ("boot", host.boot_id.clone()),
    ]
}
