//! Two guests on a virtual wire: only here do interrupts, NAPI and the network's softirq exist.
//!
//! Ignored by default: `cargo xtask test` runs it in guest b while guest a runs `rdmascope serve`.
#[path = "vm/program.rs"]
#[expect(dead_code, reason = "this test needs a part of it only")]
mod program;

use analysis::model::{Breakdown, RunReport};
use program::rdmascope;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(400);

fn seen(breakdown: &Breakdown, stage: &str) -> u64 {
    breakdown.stages.iter().find(|it| it.name == stage).map_or(0, |it| it.n)
}

fn flagged(breakdown: &Breakdown, flag: &str) -> u64 {
    breakdown.flags.iter().find(|(name, _)| name == flag).map_or(0, |(_, count)| *count)
}

/// Coverage, agreement, and the receive path on all samples whose packet had an interrupt or a softirq of its own.
fn assert_true(run: &RunReport) {
    let name = format!("{} {}", run.manifest.run.op, run.manifest.run.mode);
    assert!(!run.manifest.run.same_kernel, "{name}: both ends on one kernel");
    let breakdown = run.breakdown.as_ref().unwrap_or_else(|| panic!("{name}: no breakdown"));
    assert!(breakdown.joined >= 900, "{name}: {} joined", breakdown.joined);
    assert!(breakdown.lost * 200 <= breakdown.samples, "{name}: {} of {} samples LOST", breakdown.lost, breakdown.samples);
    assert!(
        breakdown.coverage >= 0.95 && breakdown.covered_samples >= 0.99,
        "{name}: {} {}",
        breakdown.coverage,
        breakdown.covered_samples
    );
    let own = breakdown.joined.saturating_sub(flagged(breakdown, "NAPI_POLLED"));
    for stage in ["rx interrupt", "rx softirq"] {
        let n = seen(breakdown, stage);
        assert!(n * 100 >= own * 95, "{name}: {stage} in {n} of {own}");
    }
    if run.manifest.run.mode == "event" {
        let agreement = breakdown.agreement.unwrap_or_else(|| panic!("{name}: the joins were not compared"));
        assert!(agreement.compared > 0 && agreement.agreed == agreement.compared, "{name}: {agreement:?}");
        assert!(run.slept_share.is_some_and(|share| share >= 0.9), "{name}: slept {:?}", run.slept_share);
    }
}

#[test]
#[ignore = "runs in the VM"]
fn the_receive_path_is_seen_on_a_wire() {
    let peer = std::env::var("PEER").expect("the other guest's address");
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let out = out.to_str().expect("a plain path");
    let mut client = rdmascope(&[
        "compare",
        &peer,
        "--token-file",
        "/etc/rdmascope.token",
        "--device",
        "rxe0",
        "--op",
        "send,read",
        "-n",
        "1000",
        "--connect-timeout",
        "60",
        "--no-report",
        "--quiet",
        "--out",
        out,
    ]);
    let end = client.end_within(PATIENCE);
    assert_eq!(end.code, Some(0), "{}", end.text);
    let report = analysis::analyse::report(Path::new(out)).expect("the captures open");
    assert_eq!(report.runs.len(), 4);
    report.runs.iter().for_each(assert_true);
}
