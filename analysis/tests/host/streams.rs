//! The joins against recorded event streams: one file per case in `streams/`, written from what is known of each driver and kernel, with
//! the stages and flags that must come out exactly.
use crate::stream::Stream;
use analysis::join::flags::Flag;
use analysis::join::{Options, Outcome, run};
use analysis::report::of_capture;
use analysis::testing::ring_bytes;
use capture::{CompletionShape, LogWriter};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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
        *stages.entry(gap.stage.to_string()).or_insert(0) += gap.duration_ns;
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
    // Tested in join.rs, against samples changed by hand.
    for flag in [Flag::WokenOnCpu, Flag::Retransmit, Flag::ClockUnsure, Flag::Observer] {
        assert!(seen.insert(flag.name().into()), "{} has a stream: take it off this list", flag.name());
    }
    let missing: Vec<&str> = Flag::ALL.iter().map(|flag| flag.name()).filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty(), "no test produces {missing:?}");
}

/// The report on a stream as a capture: the stages that were seen, and the warnings.
fn reported(stream: &Stream) -> (Vec<String>, Vec<String>) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("run");
    let mut log = LogWriter::create(&path, &stream.manifest).expect("a capture");
    log.samples(&stream.samples).expect("written");
    log.events(&ring_bytes(&stream.events)).expect("written");
    log.finish(&stream.manifest).expect("written");
    let report = of_capture(&path, "run".into()).expect("a report").report;
    let stages = report.breakdown.expect("stages").stages;
    (stages.into_iter().filter(|stage| stage.n > 0).map(|stage| stage.stage.to_string()).collect(), report.warnings)
}

#[test]
fn a_driver_of_unknown_shape_has_no_interrupt_stages_and_the_report_says_so() {
    let (_, mut stream) = streams().into_iter().find(|(name, _)| name == "erdma-tasklet").expect("the stream");
    let says_unknown = |warnings: &[String]| warnings.iter().any(|it| it.contains("the driver new_ib") && it.contains("not known"));
    let (known, warnings) = reported(&stream);
    assert!(known.contains(&"hard irq".to_owned()) || known.contains(&"bottom half".to_owned()), "{known:?}");
    assert!(!warnings.iter().any(|it| it.contains("completion interrupt")), "{warnings:?}");

    stream.manifest.device.driver = "new_ib".into();
    let (unknown, warnings) = reported(&stream);
    assert!(says_unknown(&warnings), "{warnings:?}");
    for stage in ["hard irq", "bottom-half wait", "bottom half", "irq thread"] {
        assert!(!unknown.contains(&stage.to_owned()), "{unknown:?}");
    }
    assert!(unknown.contains(&"device + network".to_owned()) && unknown.contains(&"handler".to_owned()), "{unknown:?}");

    // A newer capture says it itself.
    stream.manifest.device.completion_shape = Some(CompletionShape::Tasklet);
    assert_eq!(reported(&stream).0, known);
    assert!(!says_unknown(&reported(&stream).1));
}
