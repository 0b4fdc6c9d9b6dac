//! Hooks that stayed silent, and the proof that the probe was alive: the same hook firing in another run of the same session.
use crate::explain::model::SilentHook;
use capture::Manifest;
use capture::manifest::PlanRow;
use capture::text::units::count;

/// The driver-neutral completion handler.
pub const COMP_HANDLER: &str = "ib_uverbs_comp_handler";
/// mlx5's kernel poll function.
pub const MLX5_POLL: &str = "mlx5_ib_poll_cq";

/// Hits of a hook in the traced rounds of a run: counted per round where the writer did, else over the whole run.
pub fn traced_hits(manifest: &Manifest, row: &PlanRow) -> Option<u64> {
    let mut counted = None;
    for round in manifest.rounds.iter().filter(|round| round.traced) {
        for (_, hits) in round.hits.iter().filter(|(hook, _)| *hook == row.hook) {
            let sum = counted.get_or_insert(0u64);
            *sum = sum.saturating_add(*hits);
        }
    }
    counted.or(row.hits)
}

/// Is `symbol` this function, with or without its module in front?
fn names(symbol: &str, function: &str) -> bool {
    symbol.rsplit(':').next() == Some(function)
}

/// Does a driver's module have this function? Tracepoints of the kernel and what all drivers share serve every device.
fn is_of_a_driver(symbol: &str) -> bool {
    symbol.split_once(':').is_some_and(|(module, _)| !["ib_uverbs", "ib_uverbs_support", "ib_core"].contains(&module))
}

/// The silent hooks of a run; the `others` of the same boot are its controls.
pub fn of<'a>(manifest: &Manifest, others: impl Iterator<Item = &'a Manifest> + Clone) -> Vec<SilentHook> {
    let mut silent = Vec::new();
    for row in manifest.plan.iter().filter(|row| row.attached) {
        let (Some(symbol), Some(hits)) = (row.symbol.as_deref(), traced_hits(manifest, row)) else { continue };
        let polling = !manifest.run.mode.may_sleep();
        let is_handler = names(symbol, COMP_HANDLER);
        // The two hooks that are asked about are always stated; others only where they did not fire.
        if hits > 0 && !(is_handler && polling) && !names(symbol, MLX5_POLL) {
            continue;
        }
        let control = others
            .clone()
            .filter(|other| other.host.boot_id == manifest.host.boot_id && other.run.index != manifest.run.index)
            .flat_map(|other| other.plan.iter().filter(|its| its.attached && its.program == row.program).map(move |its| (other, its)))
            .filter_map(|(other, its)| Some((other, traced_hits(other, its)?)))
            .max_by_key(|(_, hits)| *hits)
            .filter(|(_, hits)| *hits > 0);
        let why = match &row.silence {
            _ if is_handler && polling && hits == 0 => "silent by design: a CQ that is polled is not armed, so no handler is called".into(),
            _ if is_handler && polling => "fired although the CQ is polled: another CQ of this process is armed".into(),
            Some(silence) => silence.clone(),
            None if is_of_a_driver(symbol) => {
                format!("attached, but it did not fire in this run; the device of this run is driven by {}", manifest.device.driver)
            }
            None => "attached, but it did not fire in this run".into(),
        };
        let proof = match control {
            Some((other, times)) => format!(
                "control: the same probe fired {} times in the traced rounds of run {} ({}, {})",
                count(times),
                other.run.index,
                other.run.op,
                other.run.mode
            ),
            // The plan's own text says that there is none.
            None if names(symbol, MLX5_POLL) && row.silence.is_some() => String::new(),
            None if names(symbol, MLX5_POLL) => "no control possible here".into(),
            None => "no control: no other run of this session has it firing".into(),
        };
        let meaning = if proof.is_empty() { why } else { format!("{why}; {proof}") };
        silent.push(SilentHook { hook: row.hook.clone(), symbol: symbol.into(), hits, meaning });
    }
    silent
}
