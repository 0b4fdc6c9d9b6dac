//! What a trace's manifest says.

use capture::manifest::{ClockCheck, Device, InterruptRow, LossRow, Manifest, Run, TraceFacts};
use capture::{Level, Mode, Operation};

use rdmascope_core::machine::{interrupts, preamble};
use rdmascope_core::probes::{HookState, Losses, ProbeError, Probes};

/// The manifest of a trace that begins.
pub(super) fn begin(targets: &str, device: &str, probes: &Probes) -> Manifest {
    let check = probes.clock_check();
    Manifest {
        device: Device { name: device.to_owned(), ..Device::default() },
        clock_check: Some(ClockCheck { before_ns: check.before_ns, kernel_ns: check.kernel_ns, after_ns: check.after_ns }),
        trace: Some(TraceFacts { targets: targets.to_owned(), ..TraceFacts::default() }),
        ..preamble::manifest(Run {
            server_mode: None,
            transport: None,
            level: Level::Trace,
            same_kernel: true,
            depth: 0,
            ..Run::new(Operation::Foreign, Mode::Event)
        })
    }
}

/// What the probes counted until now.
///
/// # Errors
/// When the counters cannot be read.
pub(super) fn counted(manifest: &mut Manifest, probes: &Probes, was_attached: &[HookState]) -> Result<(), ProbeError> {
    let (losses, hooks) = (probes.losses()?, probes.hooks()?);
    manifest.missed_probes = losses.missed_probes;
    manifest.losses = rows(&losses);
    let attached = |hook: &HookState| was_attached.iter().any(|it| it.planned.hook == hook.planned.hook && it.attached);
    manifest.plan = hooks.iter().map(|hook| hook.row(attached(hook), hook.hits)).collect();
    Ok(())
}

fn rows(losses: &Losses) -> Vec<LossRow> {
    let row = |it: &rdmascope_core::probes::KindLoss| LossRow {
        kind: it.kind.name().to_owned(),
        attempted: it.attempted,
        delivered: it.delivered,
        lost: it.lost,
    };
    losses.kinds.iter().map(row).collect()
}

/// Interrupts by number since `before`; those that did not come are left out.
pub(super) fn interrupts_since(before: &[interrupts::Interrupt], now: &[interrupts::Interrupt]) -> Vec<InterruptRow> {
    let row = |it: &interrupts::Interrupt| {
        let old = before.iter().find(|old| old.number == it.number);
        let old_count = |cpu: usize| old.and_then(|old| old.counts.get(cpu)).copied().unwrap_or(0);
        let counts: Vec<u64> = it.counts.iter().enumerate().map(|(cpu, n)| n.saturating_sub(old_count(cpu))).collect();
        InterruptRow { irq: it.number, name: it.description.clone(), counts }
    };
    now.iter().map(row).filter(|row| row.counts.iter().any(|n| *n > 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_counted_since_the_beginning() {
        let at = |number, counts: &[u64]| interrupts::Interrupt {
            number,
            counts: counts.to_vec(),
            description: "eth0".into(),
            ..Default::default()
        };
        let rows = interrupts_since(&[at(1, &[5, 5]), at(2, &[7, 7])], &[at(1, &[5, 9]), at(2, &[7, 7]), at(3, &[1])]);
        assert_eq!(rows.iter().map(|row| (row.irq, row.counts.clone())).collect::<Vec<_>>(), [(1, vec![0, 4]), (3, vec![1])]);
    }
}
