//! Captures of an older schema version open, and their report says what the version that made them said: the same keys, the same values.
//!
//! `fixtures/captures/schema-1/report.json` is that version's own report. A value that differs, and any key that is gone, fails. New keys
//! are welcome.
use analysis::report::of_folder;
use capture::{CompletionShape, find};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/captures/schema-1")
}

/// Reading a decimal fraction back may be off by its last bit (serde_json); whole numbers are exact.
fn is_same_number(old: &Value, new: &Value) -> bool {
    let both = (old.as_f64(), new.as_f64());
    old.is_f64() && new.is_f64() && matches!(both, (Some(old), Some(new)) if (old - new).abs() <= old.abs() * 4.0 * f64::EPSILON)
}

/// Words that the version before said without need, and why they are gone: `(what it said, what is said instead)`.
const MENDED: [(&str, &str); 1] = [
    // Whose driver the device has explains nothing of a tracepoint of the kernel, which serves every device.
    ("; the device of this run is driven by rdma_rxe; no control", "; no control"),
];

/// Is it the old sentence, mended?
fn is_mended(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_str(), new.as_str()) else { return false };
    MENDED.iter().any(|(said, instead)| old.contains(said) && old.replacen(said, instead, 1) == new)
}

fn compare(path: &str, old: &Value, new: Option<&Value>, differences: &mut Vec<String>) {
    match (old, new) {
        (_, None) => differences.push(format!("{path}: gone, it was {old}")),
        (Value::Object(old), Some(Value::Object(new))) => {
            for (key, value) in old {
                compare(&format!("{path}.{key}"), value, new.get(key), differences);
            }
        }
        (Value::Array(old), Some(Value::Array(new))) if old.len() == new.len() => {
            for (at, value) in old.iter().enumerate() {
                compare(&format!("{path}[{at}]"), value, new.get(at), differences);
            }
        }
        (old, Some(new)) if old == new || is_same_number(old, new) || is_mended(old, new) => {}
        (old, Some(new)) => differences.push(format!("{path}: {old} became {new}")),
    }
}

#[test]
fn a_capture_of_schema_1_has_the_report_that_it_had() {
    let report = of_folder(&folder()).expect("the captures open");
    let new = serde_json::to_value(&report).expect("JSON");
    let old: Value = serde_json::from_str(&std::fs::read_to_string(folder().join("report.json")).expect("reads")).expect("JSON");
    assert!(old["runs"].as_array().is_some_and(|runs| runs.len() == 5) && old["traces"].as_array().is_some_and(|it| it.len() == 1));
    let mut differences = Vec::new();
    compare("report", &old, Some(&new), &mut differences);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn a_manifest_of_schema_1_is_told_as_it_was_recorded() {
    for dir in find(&folder()).expect("captures") {
        let text = std::fs::read_to_string(dir.join(capture::MANIFEST_FILE)).expect("reads");
        let old: Value = serde_json::from_str(&text).expect("JSON");
        let manifest = capture::manifest::read(&dir).expect("opens");
        assert_eq!(manifest.schema_version, 1);
        let mut differences = Vec::new();
        compare("manifest", &old, Some(&serde_json::to_value(&manifest).expect("JSON")), &mut differences);
        assert!(differences.is_empty(), "{}: {}", dir.display(), differences.join("\n"));
    }
}

#[test]
fn what_schema_1_did_not_say_comes_from_its_placement_and_an_explicit_table() {
    let mut runs = 0;
    for dir in find(&folder()).expect("captures") {
        let manifest = capture::manifest::read(&dir).expect("opens");
        assert_eq!(manifest.device.completion_shape, None);
        if manifest.trace.is_some() {
            assert!(manifest.workers().is_empty());
            continue;
        }
        runs += 1;
        assert_eq!(manifest.device.shape(), Some(CompletionShape::Anywhere));
        let workers = manifest.workers();
        let [worker] = &*workers else { panic!("{} workers", workers.len()) };
        let placement = &manifest.placement;
        assert_eq!((worker.tid, worker.cpu, worker.mode), (placement.tid, placement.cpu, manifest.run.mode));
        assert_eq!((worker.queue_pairs[0].qpn, worker.completion_queues[0].handle), (placement.qpn, placement.cq_handle));
    }
    assert_eq!(runs, 5);
}
