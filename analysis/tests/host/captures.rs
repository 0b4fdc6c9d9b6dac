//! Captures on disk: the log whole, cut and damaged at every byte, sealed, and what the report says of them.
use analysis::explain::silent;
use analysis::export::Format;
use analysis::show::{EXIT_LOSS, Options, run};
use analysis::stages::StageId;
use analysis::testing::{Fixture, Scenario, generate, ring_bytes, write_log};
use capture::manifest::{PlanRow, SCHEMA_VERSION};
use capture::{
    self, Capture, EVENTS_FILE, Error, LOG_FILE, LogWriter, MANIFEST_FILE, Record, SAMPLES_FILE, Sample, find, run_dir_name, seal,
};
use ebpf_probes::{Body, Header, Irq};
use std::fs;
use std::path::Path;

fn read(dir: &Path) -> capture::Result<(Vec<Sample>, Vec<Record>, Vec<String>)> {
    let mut capture = Capture::open(dir)?;
    let streams = capture.streams()?;
    let samples = streams.samples.collect::<capture::Result<Vec<_>>>()?;
    let records = streams.records.collect::<capture::Result<Vec<_>>>()?;
    Ok((samples, records, capture.notes))
}

fn small() -> Fixture {
    generate(Scenario::SendEvent61, 2, 20, 1)
}

#[test]
fn sealing_keeps_everything_and_removes_the_log() {
    let dir = tempfile::tempdir().expect("dir");
    let fixture = generate(Scenario::SendEvent612, 4, 500, 9);
    let path = dir.path().join("run");
    write_log(&fixture, &path).expect("writes");
    let (samples, records, notes) = read(&path).expect("log opens");
    assert_eq!((samples.len(), records.len(), notes.len()), (fixture.samples.len(), fixture.events.len(), 0));
    assert!(seal::log_ended(&path).expect("reads"));
    let sealed = seal(&path).expect("seals").expect("was a log");
    assert_eq!((sealed.samples.rows, sealed.events.rows), (samples.len() as u64, records.len() as u64));
    assert!(!path.join(LOG_FILE).exists());
    assert_eq!(read(&path).expect("sealed opens"), (samples, records, vec![]));
    assert_eq!(seal(&path).expect("a second time"), None);
    let size = |name| fs::metadata(path.join(name)).expect("file").len();
    assert!(size(EVENTS_FILE) + size(SAMPLES_FILE) < ring_bytes(&fixture.events).len() as u64 / 2, "Parquet is not smaller");
}

#[test]
fn a_log_cut_at_any_byte_opens_up_to_its_last_whole_block() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("run");
    let fixture = small();
    let mut writer = LogWriter::create(&path, &fixture.manifest).expect("creates");
    let events: Vec<_> = fixture.events.chunks(40).collect();
    for (samples, events) in fixture.samples.chunks(8).zip(&events) {
        writer.samples(samples).expect("writes");
        writer.events(&ring_bytes(events)).expect("writes");
    }
    writer.finish(&fixture.manifest).expect("finishes");
    let whole = fs::read(path.join(LOG_FILE)).expect("log");
    let (all_samples, all_records, _) = read(&path).expect("opens");
    let mut most = 0;
    for cut in 0..whole.len() {
        fs::write(path.join(LOG_FILE), &whole[..cut]).expect("writes");
        let (samples, records, notes) = read(&path).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        assert_eq!(notes.len(), 1, "cut at {cut} and nothing is said");
        assert!(samples.len() + records.len() >= most, "cut at {cut} gives less than a shorter log");
        assert_eq!(samples[..], all_samples[..samples.len()]);
        most = samples.len() + records.len();
        assert!(!seal::log_ended(&path).expect("reads"));
    }
    assert_eq!(most, all_samples.len() + all_records.len(), "the end mark alone must not cost a record");
}

#[test]
fn a_byte_flipped_anywhere_is_found_and_never_a_panic() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("run");
    let fixture = generate(Scenario::ReadPoll, 1, 12, 1);
    write_log(&fixture, &path).expect("writes");
    let whole = fs::read(path.join(LOG_FILE)).expect("log");
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        fs::write(path.join(LOG_FILE), &damaged).expect("writes");
        match read(&path) {
            Ok((samples, records, notes)) => {
                assert_eq!(notes.len(), 1, "byte {at}: nothing is said");
                assert!(samples.len() <= fixture.samples.len() && records.len() <= fixture.events.len());
            }
            Err(Error::Damaged { .. }) => assert!(at < 8, "byte {at}"),
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
}

#[test]
fn damaged_parquet_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("run");
    write_log(&small(), &path).expect("writes");
    seal(&path).expect("seals");
    let whole = fs::read(path.join(EVENTS_FILE)).expect("file");
    for cut in [0, 4, whole.len() / 2, whole.len() - 1] {
        fs::write(path.join(EVENTS_FILE), &whole[..cut]).expect("writes");
        let error = read(&path).expect_err("a cut file opened");
        assert!(error.to_string().contains(EVENTS_FILE), "{error}");
    }
}

#[test]
fn unknown_kinds_are_counted_and_kept_out_of_the_way() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("run");
    let fixture = small();
    let mut raw = ring_bytes(&fixture.events);
    let mut unknown = ring_bytes(&[(Header { ts_ns: 5, ..Header::default() }, Body::IrqEntry(Irq::default()))]);
    unknown[0..2].copy_from_slice(&500u16.to_le_bytes());
    raw.extend_from_slice(&unknown);
    // One that is longer than any known body.
    let mut long = unknown.clone();
    long[0..2].copy_from_slice(&501u16.to_le_bytes());
    long.resize(200, 7);
    long[2..4].copy_from_slice(&200u16.to_le_bytes());
    raw.extend_from_slice(&long);
    let mut writer = LogWriter::create(&path, &fixture.manifest).expect("creates");
    writer.samples(&fixture.samples).expect("writes");
    writer.events(&raw).expect("writes");
    writer.finish(&fixture.manifest).expect("finishes");
    let mut capture = Capture::open(&path).expect("opens");
    let records = capture.streams().expect("streams").records.collect::<capture::Result<Vec<_>>>().expect("reads");
    assert_eq!(records.len(), fixture.events.len() + 1);
    assert_eq!(capture.unknown_kinds.into_iter().collect::<Vec<_>>(), [(500, 1), (501, 1)]);
    seal(&path).expect("seals");
    assert!(Capture::open(&path).expect("opens").manifest.notes.iter().any(|note| note.contains("kind 501")));
}

#[test]
fn the_writer_refuses_what_is_not_whole_and_does_not_overwrite() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("run");
    let fixture = small();
    let mut writer = LogWriter::create(&path, &fixture.manifest).expect("creates");
    let raw = ring_bytes(&fixture.events);
    assert!(matches!(writer.events(&raw[..raw.len() - 1]), Err(Error::Damaged { .. })));
    assert!(matches!(LogWriter::create(&path, &fixture.manifest), Err(Error::Exists { .. })));
    // More than one block's worth is split, each block at most a mebibyte.
    let many: Vec<u8> = raw.iter().copied().cycle().take(raw.len() * 200).collect();
    assert!(many.len() > 2 << 20);
    writer.events(&many).expect("writes");
    writer.finish(&fixture.manifest).expect("finishes");
    assert_eq!(read(&path).expect("opens").1.len(), fixture.events.len() * 200);
}

#[test]
fn a_full_disk_is_an_error_with_its_path() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        panic!("/dev/full is needed for this test");
    }
    let dir = tempfile::tempdir().expect("dir");
    std::os::unix::fs::symlink(full, dir.path().join("manifest.json.new")).expect("link");
    let error = LogWriter::create(dir.path(), &small().manifest).expect_err("a full disk took a manifest");
    assert!(error.to_string().contains("manifest.json"), "{error}");
}

#[test]
fn manifests_of_newer_versions_and_missing_captures_are_named() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("run");
    write_log(&small(), &path).expect("writes");
    let text = fs::read_to_string(path.join(MANIFEST_FILE)).expect("manifest");
    let newer = text.replace(&format!("\"schema_version\": {SCHEMA_VERSION}"), &format!("\"schema_version\": {}", SCHEMA_VERSION + 1));
    assert_ne!(text, newer);
    fs::write(path.join(MANIFEST_FILE), newer).expect("writes");
    assert!(matches!(Capture::open(&path), Err(Error::NewerSchema { .. })));
    fs::write(path.join(MANIFEST_FILE), &text[..text.len() / 2]).expect("writes");
    assert!(matches!(Capture::open(&path), Err(Error::Manifest { .. })));
    assert!(matches!(find(&dir.path().join("none")), Err(Error::Io { .. })));
    fs::remove_file(path.join(MANIFEST_FILE)).expect("removes");
    assert!(matches!(find(dir.path()), Err(Error::NoCapture { .. })));
}

fn tree(dir: &Path) {
    for (index, scenario) in (0u32..).zip(Scenario::ALL) {
        let mut fixture = generate(*scenario, 6, 400, u64::from(index));
        fixture.manifest.run.index = index;
        fixture.manifest.run.size_bytes = if *scenario == Scenario::TwoGuests { 128 } else { 64 };
        let (op, mode) = scenario.op_mode();
        write_log(&fixture, &dir.join(run_dir_name("test", index, op.name(), mode.name()))).expect("writes");
    }
}

fn options(dir: &Path) -> Options {
    Options { dir: dir.to_path_buf(), full_text: true, ..Options::default() }
}

#[test]
fn the_report_is_the_same_for_log_and_sealed_and_every_time() {
    let dir = tempfile::tempdir().expect("dir");
    tree(dir.path());
    let made = |out: &mut Vec<u8>| {
        let (report, code) = run(&options(dir.path()), out).expect("reports");
        assert_eq!(code, 0);
        (Format::of("json").expect("the format").render)(&report).expect("JSON")
    };
    let (mut first, mut second, mut third) = (Vec::new(), Vec::new(), Vec::new());
    let json = made(&mut first);
    assert_eq!(json, made(&mut second));
    for path in find(dir.path()).expect("finds") {
        seal(&path).expect("seals");
    }
    assert_eq!(json, made(&mut third));
    assert_eq!(first, third);
}

#[test]
fn the_report_says_what_it_must() {
    let dir = tempfile::tempdir().expect("dir");
    tree(dir.path());
    let mut out = Vec::new();
    let (report, _) = run(&options(dir.path()), &mut out).expect("reports");
    let text = String::from_utf8(out).expect("text");
    assert!(text.starts_with("! EMULATED"), "{text}");
    assert!(!text.contains('\x1b'), "colours without a terminal");
    assert_eq!(report.runs.len(), Scenario::ALL.len());
    for run in &report.runs {
        let breakdown = run.breakdown.as_ref().expect("traced");
        assert_eq!((breakdown.lost, breakdown.joined), (0, 1200));
        assert!(breakdown.coverage > 0.9999 && breakdown.covered_samples > 0.9999);
        let traced = run.traced.as_ref().expect("traced");
        let means: f64 = breakdown.stages.iter().map(|stage| stage.mean_of_all_ns).sum();
        assert!((means - traced.mean_ns).abs() < 1e-3, "means do not add up: {means} and {}", traced.mean_ns);
        assert_eq!(breakdown.bands.iter().map(|band| band.n).sum::<u64>(), 1200);
        for band in &breakdown.bands {
            let sum: f64 = band.stages.iter().map(|(_, mean)| mean).sum();
            assert!((sum - band.mean_ns).abs() < 1e-3);
        }
        for stage in breakdown.stages.iter().filter(|stage| stage.n > 100) {
            assert!(stage.p50_ns.expect("n is enough") <= stage.p99_ns.unwrap_or(u64::MAX), "{stage:?}");
            assert!(stage.p50_ns.expect("n is enough") as f64 > 0.3 * stage.mean_of_all_ns, "{}: the median is off", stage.stage);
            assert_eq!(stage.steps.last().map(|step| step.1), Some(stage.n));
        }
        assert_eq!(breakdown.slow.len(), 10);
        assert_eq!(breakdown.slow[0].total_ns, traced.max_ns);
        let latency: u64 = breakdown.slow[0].stages.iter().map(|stage| stage.duration_ns).sum();
        assert_eq!(latency, breakdown.slow[0].total_ns);
    }
    let slept: Vec<Option<f64>> = report.runs.iter().map(|run| run.slept_share).collect();
    assert_eq!(slept, [Some(1.0), Some(1.0), None, Some(0.0), Some(1.0), Some(1.0)]);
    let new_kernel = report.runs[1].breakdown.as_ref().expect("traced");
    assert!(new_kernel.stages.iter().any(|stage| stage.stage == StageId::TaskWorkqueue));
    assert!(!report.runs[0].breakdown.as_ref().expect("traced").stages.iter().any(|stage| stage.stage.name().contains("workqueue")));
    let silent = &report.runs[2].silent;
    let handler = silent.iter().find(|hook| hook.symbol.ends_with("ib_uverbs_comp_handler")).expect("polling has a silent handler");
    assert_eq!(handler.hits, 0);
    assert!(handler.meaning.contains("silent by design") && handler.meaning.contains("fired 1,200 times"), "{}", handler.meaning);
    let mlx5 = silent.iter().find(|hook| hook.symbol.ends_with("mlx5_ib_poll_cq")).expect("mlx5 is named");
    assert_eq!(mlx5.meaning, "kernel consumers only; no control possible here");
    let [comparison] = &report.comparisons[..] else { panic!("{:?}", report.comparisons) };
    assert!(comparison.verdict.why_withheld().is_some_and(|why| why.contains("INLINE")), "{comparison:?}");
}

#[test]
fn loss_over_the_limit_is_exit_code_3_and_said_at_the_top() {
    let dir = tempfile::tempdir().expect("dir");
    let mut fixture = generate(Scenario::SendEvent61, 2, 500, 4);
    let mut at = 0;
    fixture.events.retain(|(_, body)| {
        at += usize::from(matches!(body, Body::CompHandler(_)));
        !(matches!(body, Body::CompHandler(_)) && at % 100 == 0)
    });
    write_log(&fixture, &dir.path().join("run")).expect("writes");
    let mut out = Vec::new();
    let (report, code) = run(&options(dir.path()), &mut out).expect("reports");
    assert_eq!(code, EXIT_LOSS);
    assert_eq!(report.runs[0].breakdown.as_ref().expect("traced").lost, 5);
    assert!((report.runs[0].loss_share - 0.01).abs() < 1e-9);
    assert!(report.warnings.iter().any(|warning| warning.starts_with("LOSS")));
}

#[test]
fn a_run_without_probes_has_latency_and_says_what_is_missing() {
    let dir = tempfile::tempdir().expect("dir");
    let mut fixture = generate(Scenario::ReadPoll, 4, 300, 4);
    fixture.manifest.plan.clear();
    fixture.events.clear();
    fixture.manifest.rounds.iter_mut().for_each(|round| round.traced = false);
    write_log(&fixture, dir.path()).expect("writes");
    let (report, code) = run(&options(dir.path()), &mut Vec::new()).expect("reports");
    let it = &report.runs[0];
    assert_eq!((code, it.untraced.as_ref().expect("latency").n, it.path.as_str()), (0, 1200, "."));
    assert!(it.breakdown.is_none() && it.traced.is_none() && it.observer.is_none());
    assert!(it.warnings.iter().any(|warning| warning.contains("no kernel stages")));
}

/// The manifest gains fields; captures without them open, and the report says that they have none.
#[test]
fn a_capture_from_before_the_costs_opens_and_has_none() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("run");
    write_log(&small(), &path).expect("writes");
    let text = fs::read_to_string(path.join(MANIFEST_FILE)).expect("manifest");
    let mut old: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(old.as_object_mut().and_then(|fields| fields.remove("poll_costs")).is_some(), "{text}");
    for round in old["rounds"].as_array_mut().expect("rounds") {
        assert!(round.as_object_mut().and_then(|fields| fields.remove("server_residency")).is_some(), "{text}");
    }
    fs::write(path.join(MANIFEST_FILE), old.to_string()).expect("writes");
    let mut out = Vec::new();
    let (report, _) = run(&options(dir.path()), &mut out).expect("reports");
    assert_eq!((report.runs[0].manifest.poll_costs.as_ref(), report.runs[0].server_residency.is_none()), (None, true));
    let text = String::from_utf8(out).expect("text");
    assert!(text.contains("clock read and polls: not measured"), "{text}");
}

/// The cost of post and the stay at the server are from untraced rounds, and only from those.
#[test]
fn post_and_residency_are_of_untraced_rounds() {
    use capture::manifest::costs::Spread;
    let dir = tempfile::tempdir().expect("dir");
    let mut fixture = generate(Scenario::SendEvent61, 4, 100, 3);
    let is_traced = |rounds: &[capture::manifest::Round], index| rounds.iter().any(|it| it.index == index && it.traced);
    for (at, sample) in fixture.samples.iter_mut().enumerate() {
        let traced = is_traced(&fixture.manifest.rounds, sample.round);
        sample.post_end_ns = sample.post_begin_ns + if traced { 1 } else { 100 + at as u64 % 2 };
    }
    for (at, round) in (1u32..).zip(&mut fixture.manifest.rounds) {
        let mut held = vec![if round.traced { 7 } else { u64::from(at) * 1000 }; 100];
        round.server_residency = Spread::of(&mut held);
    }
    let medians: Vec<f64> = fixture.manifest.rounds.iter().filter(|it| !it.traced).filter_map(|it| it.server_residency?.p50_ns).collect();
    write_log(&fixture, &dir.path().join("run")).expect("writes");
    let report = analysis::report::of_folder(dir.path()).expect("reports");
    let post = report.runs[0].post.expect("untraced samples");
    assert_eq!((post.n, post.min_ns, post.p50_ns, post.max_ns), (200, 100.0, Some(100.0), 101.0));
    let held = report.runs[0].server_residency.expect("the server told");
    let (low, high) = medians.iter().fold((f64::MAX, 0f64), |(low, high), it| (low.min(*it), high.max(*it)));
    assert!(medians.len() == 2 && low < high, "{medians:?}");
    assert_eq!((held.rounds, held.n, held.min_ns, held.p50_ns, held.p99_ns, held.max_ns), (2, 200, low, Some((low, high)), None, high));
}

#[test]
fn runs_of_the_same_operation_are_told_apart_by_their_folders() {
    let dir = tempfile::tempdir().expect("dir");
    for day in ["monday", "tuesday"] {
        let mut fixture = generate(Scenario::ReadPoll, 4, 100, 7);
        fixture.manifest.run.index = 1;
        write_log(&fixture, &dir.path().join(day).join(run_dir_name("test", 1, "read", "poll"))).expect("writes");
    }
    let mut text = Vec::new();
    let (report, _) = run(&options(dir.path()), &mut text).expect("reports");
    let names: Vec<&str> = report.runs.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["read poll 64 B (monday/host=test/run=001-read-poll)", "read poll 64 B (tuesday/host=test/run=001-read-poll)"]);
    let text = String::from_utf8(text).expect("text");
    let rows: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("read")).collect();
    for (row, day) in rows.iter().zip(["monday", "tuesday"]) {
        assert!(row.trim_end().ends_with(&format!("{day}/host=test/run=001-read-poll")), "{row}");
    }
    assert_eq!(rows.len(), 2, "{text}");
}

/// Comparisons (name, withheld because of two sessions) of four runs, poll and event in turn, each in a folder and by a process.
fn compared_sessions(sessions: [(&str, u32); 4]) -> Vec<(String, bool)> {
    let dir = tempfile::tempdir().expect("dir");
    for (index, (folder, tgid)) in (0u32..).zip(sessions) {
        let (scenario, mode) = if index % 2 == 0 { (Scenario::ReadPoll, "poll") } else { (Scenario::TwoGuests, "event") };
        let mut fixture = generate(scenario, 12, 300, u64::from(index) + 3);
        (fixture.manifest.run.same_kernel, fixture.manifest.host.emulated) = (true, false);
        fixture.manifest.placement.tgid = tgid;
        write_log(&fixture, &dir.path().join(folder).join(run_dir_name("test", index, "read", mode))).expect("writes");
    }
    let (report, _) = run(&options(dir.path()), &mut Vec::new()).expect("reports");
    report
        .comparisons
        .iter()
        .map(|it| (it.name.clone(), it.verdict.why_withheld().is_some_and(|why| why.contains("of two sessions"))))
        .collect()
}

#[test]
fn modes_are_compared_within_a_session_and_withheld_between_two() {
    let within = compared_sessions([("a", 7), ("a", 7), ("b", 8), ("b", 8)]);
    let expected = [
        "read 64 B (a/host=test/run=000-read-poll / a/host=test/run=001-read-event)",
        "read 64 B (b/host=test/run=002-read-poll / b/host=test/run=003-read-event)",
    ];
    assert_eq!(within, expected.map(|name| (name.to_string(), false)), "rounds of one session took turns");
    for (what, sessions) in [
        ("one folder per mode", [("a", 7), ("b", 8), ("a", 7), ("b", 8)]),
        ("moved into one folder", [("a", 7), ("a", 8), ("a", 7), ("a", 8)]),
    ] {
        let between = compared_sessions(sessions);
        assert!(between.len() == 4 && between.iter().all(|(_, is_withheld)| *is_withheld), "{what}: {between:?}");
    }
}

/// A polling and an event run of `read` on one kernel, changed by `change`; gives the report.
fn reported(change: fn(&mut Fixture)) -> analysis::report::model::Report {
    let dir = tempfile::tempdir().expect("dir");
    for (index, scenario) in (0u32..).zip([Scenario::ReadPoll, Scenario::TwoGuests]) {
        let mut fixture = generate(scenario, 12, 300, u64::from(index) + 3);
        fixture.manifest.run.index = index;
        fixture.manifest.placement.tgid = 7;
        fixture.manifest.run.same_kernel = true;
        fixture.manifest.host.emulated = false;
        change(&mut fixture);
        let (op, mode) = scenario.op_mode();
        write_log(&fixture, &dir.path().join(run_dir_name("test", index, op.name(), mode.name()))).expect("writes");
    }
    run(&options(dir.path()), &mut Vec::new()).expect("reports").0
}

/// The comparison of the two.
fn compared(change: fn(&mut Fixture)) -> analysis::report::model::Comparison {
    let report = reported(change);
    let [comparison] = &report.comparisons[..] else { panic!("{:?}", report.comparisons) };
    comparison.clone()
}

#[test]
fn whose_driver_the_device_has_explains_the_silence_of_drivers_hooks_only() {
    let mut manifest = generate(Scenario::ReadPoll, 1, 10, 1).manifest;
    let row = |symbol: &str| PlanRow { symbol: Some(symbol.into()), attached: true, hits: Some(0), ..PlanRow::default() };
    manifest.plan = ["irq_handler_entry", "ib_uverbs:ib_uverbs_comp_event_read", "mlx5_ib:mlx5_ib_cq_comp"].map(row).to_vec();
    let says: Vec<bool> = silent::of(&manifest, [].into_iter()).iter().map(|it| it.meaning.contains("driven by")).collect();
    assert_eq!(says, [false, false, true]);
}

#[test]
fn an_emulated_card_is_named_at_the_top_and_tells_no_cost_of_polling() {
    let emulated = reported(|fixture| fixture.manifest.device.board = Some(format!("{}_001", capture::manifest::EMULATED_BOARD)));
    assert!(emulated.warnings.iter().any(|it| it.starts_with("EMULATED DEVICE (all runs)")), "{:?}", emulated.warnings);
    let pages = tempfile::tempdir().expect("dir");
    analysis::show::html::write(&emulated, pages.path()).expect("a page");
    let charts: Vec<_> = fs::read_dir(pages.path().join("charts")).expect("charts").map(|it| it.expect("a file").path()).collect();
    let bands = charts.iter().find(|path| path.to_string_lossy().ends_with("bands.svg")).expect("a chart");
    assert!(fs::read_to_string(bands).expect("text").contains("EMULATED DEVICE"), "a chart goes about alone");
    let verdict = &emulated.comparisons[0].verdict;
    assert!(verdict.why_withheld().is_some_and(|why| why.contains("a program that takes a CPU of its own")), "{verdict}");
    let real = reported(|fixture| fixture.manifest.device.board = Some("MT_0000000008".to_owned()));
    assert!(
        !real.warnings.iter().any(|it| it.contains("EMULATED DEVICE")) && !real.comparisons[0].verdict.is_withheld(),
        "{:?}",
        real.warnings
    );
}

#[test]
fn poll_against_event_has_a_verdict_or_says_why_not() {
    let it = compared(|_| {});
    let (low, high) = it.p50_ratio_interval.expect("interval");
    let ratio = it.p50_ratio.expect("ratio");
    assert!(!it.verdict.is_withheld() && low <= ratio && ratio <= high && low > 3.0 && high < 7.0, "{it:?}");
    assert!(it.verdict.to_string().contains("times the median latency of polling") && it.cpu_ratio.is_some(), "{}", it.verdict);
    let reason = |change: fn(&mut Fixture), words: &str| {
        let it = compared(change);
        assert!(it.verdict.why_withheld().is_some_and(|why| why.contains(words)), "{words}: {}", it.verdict);
        let json = serde_json::to_value(&it).expect("JSON");
        let said = json["verdict"].as_str().expect("a text");
        assert!(said.starts_with("withheld: ") && said.contains(words) && json["withheld"] == true, "{said}");
    };
    reason(
        |fixture| {
            fixture.manifest.run.same_kernel = false;
            fixture.manifest.host.emulated = true;
        },
        "two emulated guests",
    );
    reason(|fixture| fixture.manifest.outcome = capture::manifest::Outcome::Unstable("noise".into()), "unstable: noise");
    reason(|fixture| fixture.manifest.losses[0].lost = 5, "lost");
    reason(|fixture| fixture.manifest.rounds.iter_mut().for_each(|round| round.traced = true), "no untraced rounds");
    reason(|fixture| fixture.manifest.rounds.iter_mut().skip(2).for_each(|round| round.traced = true), "fewer than two untraced rounds");
}
