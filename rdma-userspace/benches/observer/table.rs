//! The table: what each state adds, what a hit and a record cost, and the goals.
use super::data::{Case, Data, Round};
use super::rounds::State;
use analysis::stats::Rng;
use analysis::stats::bootstrap::{Compare, Rounds, compare};
use std::fmt::Write;

const REPETITIONS: usize = 1000;
const SEED: u64 = 0x0b5e_77e5;

/// What is wanted of one state of one case: the most that it may add to the mean, and the mark to aim for (shares of `none`).
const GOALS: [(&str, State, f64, Option<f64>); 4] = [
    ("SEND event", State::Min, 0.08, Some(0.04)),
    ("SEND event", State::Std, 0.20, Some(0.18)),
    ("FETCH-ADD poll", State::Std, 0.05, None),
    ("SEND event", State::Control, 0.005, None),
];
/// Instructions per record, reader included, to aim for.
const RECORD_MARK: f64 = 400.0;

/// The table and how many goals were missed.
pub struct Table {
    /// Text.
    pub text: String,
    /// Goals missed.
    pub missed: usize,
}

/// The means of one state.
struct Means {
    /// Mean latency of each round, ns.
    rounds: Vec<f64>,
    latency_ns: f64,
    hits: f64,
    records: f64,
    drain_ns: f64,
    lost: u64,
}

fn of_state(case: &Case, state: State) -> Vec<&Round> {
    case.rounds.iter().filter(|round| round.state == state.name() && !round.latencies_ns.is_empty()).collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len().max(1) as f64;
    values.sum::<f64>() / n
}

fn means(rounds: &[&Round]) -> Option<Means> {
    let operations: usize = rounds.iter().map(|round| round.latencies_ns.len()).sum();
    let per_operation = |sum: u64| sum as f64 / operations as f64;
    let of_rounds: Vec<f64> = rounds.iter().map(|round| mean(round.latencies_ns.iter().map(|ns| *ns as f64))).collect();
    (operations > 0).then(|| Means {
        latency_ns: mean(of_rounds.iter().copied()),
        rounds: of_rounds,
        hits: per_operation(rounds.iter().flat_map(|round| &round.hits).map(|(_, hits)| hits).sum()),
        records: per_operation(rounds.iter().map(|round| round.records).sum()),
        drain_ns: per_operation(rounds.iter().map(|round| round.drain_ns).sum()),
        lost: rounds.iter().map(|round| round.lost).sum(),
    })
}

/// The 95 % interval of `b / a` of means, bootstrapped over rounds.
fn ratio_interval(a: &[f64], b: &[f64]) -> (f64, f64) {
    let mut rng = Rng::new(SEED);
    let mut draw = |of: &[f64]| mean((0..of.len()).map(|_| of[rng.below(of.len() as u64) as usize]).collect::<Vec<_>>().into_iter());
    let mut ratios: Vec<f64> = (0..REPETITIONS).map(|_| draw(b) / draw(a)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    (ratios[REPETITIONS / 40], ratios[REPETITIONS - 1 - REPETITIONS / 40])
}

/// Slope of `y` over `x` by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let (mx, my) = (mean(points.iter().map(|it| it.0)), mean(points.iter().map(|it| it.1)));
    let (num, den) = points.iter().fold((0.0, 0.0), |(num, den), (x, y)| (num + (x - mx) * (y - my), den + (x - mx) * (x - mx)));
    if den > 0.0 { num / den } else { 0.0 }
}

/// Makes the table.
pub fn of(data: &Data) -> Table {
    let mut table = Table { text: String::new(), missed: 0 };
    let unit = data.ns_per_instruction.map_or_else(|| "times are the emulator's".to_owned(), |ns| format!("{ns} ns per guest instruction"));
    let _ = writeln!(table.text, "kernel {}, {} CPU(s), {}: {unit}", data.kernel, data.cpus, data.accel);
    for case in &data.cases {
        of_case(data, case, &mut table);
    }
    table
}

fn of_case(data: &Data, case: &Case, table: &mut Table) {
    let none_rounds = of_state(case, State::None);
    let Some(none) = means(&none_rounds) else { return };
    let text = &mut table.text;
    let _ = writeln!(text, "\n{}: {} rounds of {} operations per state", case.name, none_rounds.len(), none_rounds[0].latencies_ns.len());
    let _ = writeln!(
        text,
        "  {:<14} {:>9} {:>9} {:>9} {:>19} {:>9} {:>7} {:>8} {:>6}",
        "state", "p50 us", "mean us", "added", "95 % of added", "p50 added", "hits/op", "recs/op", "lost"
    );
    let side = |rounds: &[&Round]| Rounds::new(rounds.iter().map(|round| round.latencies_ns.as_slice()).collect::<Vec<_>>());
    let base = side(&none_rounds);
    let mut points = Vec::new();
    let mut verdicts = Vec::new();
    for state in State::ALL {
        let rounds = of_state(case, state);
        let Some(it) = means(&rounds) else { continue };
        let mut all: Vec<u64> = rounds.iter().flat_map(|round| round.latencies_ns.iter().copied()).collect();
        all.sort_unstable();
        let p50_us = capture::quantile::quantile(&all, 0.5).unwrap_or(0) as f64 / 1000.0;
        let added = it.latency_ns / none.latency_ns - 1.0;
        let (low, high) = ratio_interval(&none.rounds, &it.rounds);
        let p50 = compare(&base, &side(&rounds), 0.5, Compare::Ratio).map_or(f64::NAN, |estimate| estimate.value - 1.0);
        let _ = writeln!(
            text,
            "  {:<14} {p50_us:>9.2} {:>9.2} {:>8.2}% {:>8.2}% ..{:>7.2}% {:>8.2}% {:>7.2} {:>8.2} {:>6}",
            state.name(),
            it.latency_ns / 1000.0,
            added * 100.0,
            (low - 1.0) * 100.0,
            (high - 1.0) * 100.0,
            p50 * 100.0,
            it.hits,
            it.records,
            it.lost
        );
        if matches!(state, State::None | State::Min | State::Std | State::Full) {
            points.push((it.hits, it.latency_ns));
        }
        // Goals are counts of instructions: the emulator's own time does not repeat well enough.
        let is_judged = data.ns_per_instruction.is_some();
        for (_, _, most, mark) in GOALS.iter().filter(|goal| is_judged && goal.0 == case.name && goal.1 == state) {
            // A control is judged in both directions.
            let size = if state == State::Control { added.abs() } else { added };
            let is_met = size <= *most || (state == State::Control && low <= 1.0 && high >= 1.0);
            let marked = mark.map_or_else(String::new, |mark| {
                format!(", mark {:.0} % {}", mark * 100.0, if added <= mark { "reached" } else { "not reached" })
            });
            verdicts.push((is_met, format!("{} adds {:.2} %: goal {:.1} %{marked}", state.name(), added * 100.0, most * 100.0)));
        }
    }
    let per_hit_ns = slope(&points);
    costs(data, case, &none, per_hit_ns, text);
    if let Some(it) = &case.against {
        let theirs_ns = if it.hits > 0.0 { (it.both_ns - it.alone_ns) / it.hits } else { 0.0 };
        let most_ns = per_hit_ns.max(theirs_ns);
        let apart_ns = (it.ours_ns - it.theirs_ns).abs();
        let _ = writeln!(text, "  bpftrace beside: {:.2} hits per operation more, {:.0} ns each", it.hits, theirs_ns);
        verdicts.push((
            apart_ns <= most_ns && it.ours > 0 && it.theirs > 0,
            format!(
                "handler to run: {:.0} ns by ours (n {}), {:.0} ns by bpftrace (n {}): {apart_ns:.0} ns apart, goal one hit of the two, {most_ns:.0} ns",
                it.ours_ns, it.ours, it.theirs_ns, it.theirs
            ),
        ));
    }
    for (is_met, verdict) in verdicts {
        let _ = writeln!(text, "  {} {verdict}", if is_met { "met   " } else { "MISSED" });
        table.missed += usize::from(!is_met);
    }
}

/// What one hit and one record cost, and which hooks were hit.
fn costs(data: &Data, case: &Case, none: &Means, per_hit_ns: f64, text: &mut String) {
    let shown = |ns: f64| match data.ns_per_instruction {
        Some(unit) => format!("{ns:.0} ns = {:.0} instructions", ns / unit),
        None => format!("{ns:.0} ns"),
    };
    let _ = writeln!(text, "  a hit, by the slope over the levels: {}", shown(per_hit_ns));
    let rounds = of_state(case, State::Std);
    let Some(std) = means(&rounds) else { return };
    if let Some(untracked) = means(&of_state(case, State::Untracked))
        && std.records > untracked.records
    {
        let record_ns = (std.latency_ns - untracked.latency_ns) / (std.records - untracked.records);
        let _ = writeln!(text, "  writing a record (std less std untracked): {}", shown(record_ns));
    }
    if std.records > 0.0 {
        let all_ns = (std.latency_ns - none.latency_ns + std.drain_ns) / std.records;
        let mark = data.ns_per_instruction.map_or_else(String::new, |_| format!(" (mark {RECORD_MARK})"));
        let _ = writeln!(text, "  std as a whole, per record, its reader included: {}{mark}", shown(all_ns));
        let _ = writeln!(text, "  of that, the reader: {}", shown(std.drain_ns / std.records));
    }
    let operations: usize = rounds.iter().map(|round| round.latencies_ns.len()).sum();
    let mut hooks: Vec<(&str, u64)> = Vec::new();
    for (hook, hits) in rounds.iter().flat_map(|round| &round.hits) {
        match hooks.iter_mut().find(|it| it.0 == hook) {
            Some(it) => it.1 += hits,
            None => hooks.push((hook, *hits)),
        }
    }
    let listed: Vec<String> =
        hooks.iter().filter(|it| it.1 > 0).map(|(hook, hits)| format!("{hook} {:.2}", *hits as f64 / operations as f64)).collect();
    let _ = writeln!(text, "  hits per operation at std: {}", listed.join(", "));
}
