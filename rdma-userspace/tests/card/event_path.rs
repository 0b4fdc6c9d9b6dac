//! SEND over the card, waiting and polling: which hooks of the event path fire, and whether each sample's chain is whole from the
//! interrupt to the thread. What the soft-RoCE guest cannot show: it has no completion interrupt.
//!
//! Ignored by default: `cargo xtask test` runs them inside the guest, where `rdmascope` is on the PATH.

use crate::support::program::rdmascope;
use analysis::explain::{SampleVerdict, verdicts};
use analysis::join::flags::Flag;
use analysis::stages::StageId;
use capture::manifest::{Manifest, PlanRow};
use capture::{Capture, find};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(400);
const SAMPLES: u64 = 1_000;
/// The limit of the product is 0.1 %; a probe that interrupts another one is skipped by the kernel, and a busy machine makes that likelier.
const LOST_MAX: f64 = 0.002;
/// Of the samples that slept, so many have every stage of the chain.
const WHOLE_MIN: f64 = 0.995;
const SLEPT_MIN: f64 = 0.5;
/// From the interrupt to the thread.
const CHAIN: [StageId; 6] =
    [StageId::HardIrq, StageId::BottomHalfWait, StageId::BottomHalf, StageId::Handler, StageId::Activation, StageId::ReturnToUser];
/// The hooks of the chain, as the plan calls them. The tasklet has one of its own only where the kernel has no tracepoint for all of them.
const HOOKS: [&[&str]; 5] =
    [&["K1 interrupt"], &["K3 mlx5 CQ to bottom half"], &["K4 tasklet", "K4 mlx5 tasklet"], &["mlx5 callback"], &["K5 completion handler"]];

/// Measures SEND; the folder of the capture.
fn measure(out: &Path, mode: &str) -> PathBuf {
    let (samples, folder) = (SAMPLES.to_string(), out.to_str().expect("a plain path"));
    let flags = ["run", "--loopback", "--device", "mlx5_0", "--op", "send", "--mode", mode, "-n", &samples, "--no-report", "--quiet"];
    let end = rdmascope(&[&flags[..], &["--out", folder]].concat()).end_within(PATIENCE);
    assert_eq!(end.code, Some(0), "{}", end.text);
    let mut folders = find(out).expect("a capture");
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders.remove(0)
}

fn manifest(folder: &Path) -> Manifest {
    Capture::open(folder).expect("it opens").manifest
}

/// The row of the plan whose hook is one of these and attached.
fn row<'a>(manifest: &'a Manifest, hooks: &[&str]) -> &'a PlanRow {
    let rows: Vec<&PlanRow> = manifest.plan.iter().filter(|row| hooks.iter().any(|hook| row.hook.starts_with(hook))).collect();
    let reasons: Vec<&str> = rows.iter().map(|row| row.reason.as_str()).collect();
    rows.iter().find(|row| row.attached).unwrap_or_else(|| panic!("{hooks:?} is not attached: {reasons:?}"))
}

fn hits(manifest: &Manifest, hooks: &[&str]) -> u64 {
    row(manifest, hooks).hits.unwrap_or_else(|| panic!("{hooks:?}: hits are not counted"))
}

fn assert_symbol(manifest: &Manifest, hook: &str, name: &str) {
    let symbol = row(manifest, &[hook]).symbol.as_deref();
    assert!(symbol.is_some_and(|symbol| symbol.ends_with(name)), "{hook}: {symbol:?}");
}

fn share(part: usize, of: usize) -> f64 {
    part as f64 / of as f64
}

#[test]
#[ignore = "runs in the VM"]
fn a_send_that_waits_is_followed_from_its_interrupt_to_its_thread() {
    let out = tempfile::tempdir().expect("a folder");
    let folder = measure(out.path(), "event");
    let manifest = manifest(&folder);
    assert_symbol(&manifest, "K3 mlx5 CQ to bottom half", "mlx5_add_cq_to_tasklet");
    assert_symbol(&manifest, "mlx5 callback", "mlx5_ib_cq_comp");
    for hooks in HOOKS {
        println!("{:>8} hits  {}", hits(&manifest, hooks), row(&manifest, hooks).hook);
    }
    let all = verdicts(&folder).expect("it joins");
    let lost = all.iter().filter(|it| it.is_lost()).count();
    let slept: Vec<&SampleVerdict> = all.iter().filter(|it| !it.is_lost() && !it.flags.has(Flag::NoSleep)).collect();
    let whole = slept.iter().filter(|it| CHAIN.iter().all(|stage| it.stage_ns(*stage).is_some())).count();
    println!("{} traced samples: {lost} lost, {} slept, {whole} of these whole", all.len(), slept.len());
    for broken in slept.iter().filter(|it| CHAIN.iter().any(|stage| it.stage_ns(*stage).is_none())).take(5) {
        let flags: Vec<&str> = broken.flags.iter().map(Flag::name).collect();
        println!("not whole: {:?} [{}]", broken.stages, flags.join(" "));
    }
    assert!(all.len() as u64 >= SAMPLES * 9 / 10, "{} traced samples", all.len());
    assert!(share(lost, all.len()) <= LOST_MAX, "{lost} of {} samples LOST", all.len());
    assert!(share(slept.len(), all.len()) >= SLEPT_MIN, "{} of {} samples slept", slept.len(), all.len());
    assert!(share(whole, slept.len()) >= WHOLE_MIN, "{whole} of {} samples that slept are whole", slept.len());
    // A record for each sample that slept, of every hook.
    for hooks in HOOKS {
        assert!(hits(&manifest, hooks) >= slept.len() as u64, "{hooks:?}: {} hits", hits(&manifest, hooks));
    }
}

/// The control is the test above: the same hooks fire there.
#[test]
#[ignore = "runs in the VM"]
fn a_send_that_polls_calls_neither_handler_nor_callback_nor_the_kernels_poll() {
    let out = tempfile::tempdir().expect("a folder");
    let manifest = manifest(&measure(out.path(), "poll"));
    for hook in ["K5 completion handler", "mlx5 callback", "mlx5_ib_poll_cq"] {
        assert_eq!(hits(&manifest, &[hook]), 0, "{hook}");
    }
}
