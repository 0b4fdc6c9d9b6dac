//! What the report says of captures that lack something, hold something foreign, or cannot be read: never a wrong figure in silence.
use analysis::report::of_folder;
use analysis::show::{EXIT_LOSS, EXIT_UNREADABLE, Options, run};
use analysis::testing::{Fixture, Scenario, generate, ring_bytes, write_log};
use capture::manifest::ServerSide;
use capture::{Error, LOG_FILE, LogWriter, Manifest, Operation, PEER_DIR, SAMPLES_FILE, Side, find, seal};
use std::fs;
use std::path::{Path, PathBuf};

fn made(scenario: Scenario) -> Fixture {
    generate(scenario, 4, 300, 1)
}

/// Exit code and text of the report over `dir`.
fn reported(dir: &Path) -> (u8, String) {
    let mut text = Vec::new();
    let (_, code) = run(&Options { dir: dir.into(), ..Options::default() }, &mut text).expect("reports");
    (code, String::from_utf8(text).expect("text"))
}

fn one_run(dir: &Path) -> PathBuf {
    let path = dir.join("run");
    write_log(&made(Scenario::SendEvent61), &path).expect("writes");
    path
}

#[test]
fn a_capture_that_lacks_samples_says_how_many_and_is_lossy() {
    let dir = tempfile::tempdir().expect("dir");
    let path = one_run(dir.path());
    assert!(of_folder(&path).expect("reports").runs[0].warnings.iter().all(|it| !it.contains("not in the capture")));
    fs::write(path.join(LOG_FILE), "").expect("empties");
    let (code, text) = reported(&path);
    assert_eq!(code, EXIT_LOSS);
    assert!(text.contains("1,200 of the 1,200 samples that the manifest counts are not in the capture"), "{text}");
    // Without a path below the folder, the run is named by what it did.
    assert!(text.contains("LOSS: send event lost 100.0 %"), "{text}");
}

#[test]
fn the_log_of_another_run_is_no_sample_of_this_one() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("run");
    let mut fixture = made(Scenario::SendEvent61);
    for round in &mut fixture.manifest.rounds {
        (round.begin_ns, round.end_ns) = (round.begin_ns + 3_600_000_000_000, round.end_ns + 3_600_000_000_000);
    }
    write_log(&fixture, &path).expect("writes");
    let (code, text) = reported(&path);
    assert_eq!(code, EXIT_LOSS);
    assert!(text.contains("1,200 samples lie outside the time of their round"), "{text}");
    let runs = of_folder(&path).expect("reports").runs;
    assert!(runs[0].traced.is_none() && runs[0].untraced.is_none() && runs[0].breakdown.is_none());
}

#[test]
fn a_flipped_bit_in_a_sealed_file_is_found_or_changes_nothing() {
    let dir = tempfile::tempdir().expect("dir");
    let path = one_run(dir.path());
    seal(&path).expect("seals");
    let whole = serde_json::to_string(&of_folder(&path).expect("reports")).expect("JSON");
    let file = path.join(SAMPLES_FILE);
    let bytes = fs::read(&file).expect("a file");
    let mut found = 0;
    for at in (4..bytes.len()).step_by(bytes.len() / 200) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&file, &damaged).expect("writes");
        match of_folder(&path) {
            Ok(read) => assert_eq!(serde_json::to_string(&read).expect("JSON"), whole, "byte {at} changed a figure in silence"),
            Err(_) => found += 1,
        }
    }
    assert!(found > 0, "no flip was found");
}

#[test]
fn an_unreadable_capture_does_not_hide_the_others() {
    let dir = tempfile::tempdir().expect("dir");
    for (index, scenario) in [(0, Scenario::SendEvent61), (1, Scenario::SendEvent612)] {
        write_log(&made(scenario), &dir.path().join(format!("run={index:03}-send-event"))).expect("writes");
    }
    let damaged = find(dir.path()).expect("two").remove(1);
    fs::write(damaged.join("manifest.json"), "{").expect("damages");
    let (code, text) = reported(dir.path());
    assert_eq!(code, EXIT_UNREADABLE);
    assert!(text.contains("UNREADABLE") && text.contains("run=001"), "{text}");
    assert_eq!(of_folder(dir.path()).expect("reports").runs.len(), 1);
    assert!(matches!(of_folder(&damaged), Err(Error::Manifest { .. })), "alone it is an error");
}

/// A client's capture, and a server's in its folder `peer`.
fn two_sides(dir: &Path, server: fn(&mut Manifest)) -> PathBuf {
    let fixture = made(Scenario::TwoGuests);
    let mut ours = fixture.manifest.clone();
    ours.server_side = ServerSide::Present;
    (ours.placement.qpn, ours.placement.peer_qpn, ours.run.op) = (17, 18, Operation::Send);
    let mut theirs = Manifest { side: Side::Server, server_side: ServerSide::Unknown, ..ours.clone() };
    (theirs.placement.qpn, theirs.placement.peer_qpn) = (18, 17);
    server(&mut theirs);
    let path = dir.join("run");
    for (dir, manifest) in [(path.clone(), &ours), (path.join(PEER_DIR), &theirs)] {
        let mut log = LogWriter::create(&dir, manifest).expect("a folder");
        log.samples(&fixture.samples).expect("written");
        log.events(&ring_bytes(&fixture.events)).expect("written");
        log.finish(manifest).expect("written");
    }
    path
}

#[test]
fn a_servers_side_that_is_gone_foreign_or_cut_is_said_in_the_summary() {
    let dir = tempfile::tempdir().expect("dir");
    let path = two_sides(&dir.path().join("own"), |_| {});
    let (_, text) = reported(&path);
    assert!(text.contains("Both sides: send") && !text.contains("the server's side:"), "{text}");
    fs::write(path.join(PEER_DIR).join(LOG_FILE), "").expect("empties");
    let (_, text) = reported(&path);
    assert!(text.contains("the server's side: 1,200 of the 1,200 samples that its manifest counts are not there"), "{text}");
    fs::remove_dir_all(path.join(PEER_DIR)).expect("removes");
    let (_, text) = reported(&path);
    assert!(text.contains("the server's side was recorded, and is not shown: its folder `peer` is gone"), "{text}");

    let foreign = two_sides(&dir.path().join("foreign"), |theirs| theirs.placement.peer_qpn = 99);
    let (_, text) = reported(&foreign);
    assert!(text.contains("it is of another run: queue pairs 18 and 99") && !text.contains("Both sides"), "{text}");
}
