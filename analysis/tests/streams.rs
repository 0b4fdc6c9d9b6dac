//! The joins against recorded event streams: one file per case in `streams/`, written from what is known of each driver and kernel, with
//! the stages and flags that must come out exactly.
#[path = "support/stream.rs"]
mod stream;

use analysis::correlate::flags::Flag;
use analysis::correlate::{Options, Outcome, run};
use analysis::stages::{STAGES, UNATTRIBUTED};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use stream::Stream;

fn streams() -> Vec<(String, Stream)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let mut files: Vec<_> = std::fs::read_dir(&folder).expect("tests/streams").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, Stream::parse(&std::fs::read_to_string(path).expect("readable")))
    };
    files.iter().filter(|path| path.extension().is_some_and(|it| it == "stream")).map(read).collect()
}

fn join(stream: &Stream) -> Vec<Outcome> {
    let mut all = Vec::new();
    let samples = Box::new(stream.samples.clone().into_iter().map(Ok));
    let records = Box::new(stream.records().into_iter().map(Ok));
    run(&stream.manifest, samples, records, Options::default(), &mut |_, outcome| all.push(*outcome)).expect("joins");
    all
}

fn found(outcome: &Outcome) -> (BTreeMap<String, i64>, Vec<String>) {
    let mut stages = BTreeMap::new();
    for gap in outcome.joined.chain.gaps() {
        *stages.entry(gap.stage.map_or(UNATTRIBUTED, |stage| STAGES[stage].name).to_owned()).or_insert(0) += gap.duration_ns;
    }
    let mut flags: Vec<String> = outcome.joined.flags.iter().map(|flag| flag.name().to_owned()).collect();
    flags.sort();
    (stages, flags)
}

#[test]
fn every_stream_gives_its_stages_and_flags() {
    let mut wrong = Vec::new();
    let streams = streams();
    assert!(streams.len() >= 50, "{} streams", streams.len());
    for (name, stream) in &streams {
        let outcomes = join(stream);
        assert_eq!(outcomes.len(), stream.expected.len(), "{name}");
        for (index, ((outcome, expected), sample)) in outcomes.iter().zip(&stream.expected).zip(&stream.samples).enumerate() {
            let found = found(outcome);
            let sum: i64 = found.0.values().sum();
            assert_eq!(Some(sum as u64), sample.latency_ns(), "{name} {index}: the stages do not add up");
            if found != *expected {
                wrong.push(format!("{name}, sample {index}:\n  found    {found:?}\n  expected {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_flag_is_produced_by_a_stream_or_named_here_with_its_test() {
    let mut seen: BTreeSet<String> = streams().iter().flat_map(|(_, stream)| join(stream)).flat_map(|outcome| found(&outcome).1).collect();
    // Tested in correlate.rs, against samples changed by hand.
    for flag in [Flag::WokenOnCpu, Flag::Retransmit, Flag::ClockUnsure, Flag::Observer] {
        assert!(seen.insert(flag.name().into()), "{} has a stream: take it off this list", flag.name());
    }
    let missing: Vec<&str> = Flag::ALL.iter().map(|flag| flag.name()).filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty(), "no test produces {missing:?}");
}
