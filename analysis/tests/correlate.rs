//! The joins and the chain against synthetic captures whose truth is known.
use analysis::capture::{Record, Sample};
use analysis::correlate::flags::Flag;
use analysis::correlate::{Options, Outcome, run};
use analysis::fixture::{Fixture, Scenario, generate, ring_bytes};
use analysis::stages::{STAGES, UNATTRIBUTED};
use ebpf_probes::{Body, Header};
use std::collections::BTreeMap;

fn records(events: &[(Header, Body)]) -> Vec<Record> {
    let raw = ring_bytes(events);
    let mut rest = &raw[..];
    let mut records = Vec::new();
    while let analysis::capture::record::Split::Whole(record, behind) = analysis::capture::record::split(rest) {
        records.push(record);
        rest = behind;
    }
    records.sort_by_key(|record| record.header.ts_ns);
    records
}

fn join(fixture: &Fixture, options: Options) -> Vec<(Sample, Outcome)> {
    let mut all = Vec::new();
    let samples = Box::new(fixture.samples.clone().into_iter().map(Ok));
    let records = Box::new(records(&fixture.events).into_iter().map(Ok));
    run(&fixture.manifest, samples, records, options, &mut |sample, outcome| all.push((*sample, *outcome))).expect("joins");
    all
}

fn found_stages(outcome: &Outcome) -> BTreeMap<&'static str, i64> {
    let mut found = BTreeMap::new();
    for gap in outcome.joined.chain.gaps() {
        *found.entry(gap.stage.map_or(UNATTRIBUTED, |stage| STAGES[stage].name)).or_insert(0) += gap.duration_ns;
    }
    found
}

#[test]
fn every_scenario_gives_back_its_truth() {
    for scenario in Scenario::ALL {
        let fixture = generate(*scenario, 4, 300, 7);
        let all = join(&fixture, Options::default());
        assert_eq!(all.len(), 600, "{scenario:?}");
        for (sample, outcome) in &all {
            let truth: BTreeMap<_, _> = fixture.truth[&sample.begin_wr_id].iter().map(|(name, ns)| (*name, *ns as i64)).collect();
            assert_eq!(found_stages(outcome), truth, "{scenario:?} {sample:?} {:?}", outcome.joined.chain);
            assert!(!outcome.joined.flags.has(Flag::Lost), "{scenario:?}");
        }
    }
}
