//! Captures that nobody wrote in good faith: numbers at the ends of their ranges, strings that steer terminals, files that are none.
use analysis::show::{Options, run};
use analysis::testing::{Fixture, Scenario, generate, write_log};
use capture::{Capture, Error, LOG_FILE, MANIFEST_FILE, Manifest};
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

fn text_of(dir: &Path, html: bool) -> (String, u8) {
    let mut out = Vec::new();
    let page = html.then(|| dir.join("page"));
    let options = Options { dir: dir.join("captures"), html: page, full_text: true, ..Options::default() };
    let (_, code) = run(&options, &mut out).unwrap_or_else(|error| panic!("{error}"));
    (String::from_utf8(out).expect("text"), code)
}

fn report_of(fixture: &Fixture, html: bool) -> (String, u8) {
    let dir = tempfile::tempdir().expect("dir");
    write_log(fixture, &dir.path().join("captures/run")).expect("writes");
    text_of(dir.path(), html)
}

fn fixture() -> Fixture {
    generate(Scenario::SendEvent61, 4, 100, 3)
}

#[test]
fn times_at_the_ends_of_their_range_neither_hang_nor_overflow() {
    for (at, value) in [(0, 0), (1, u64::MAX), (2, 1 << 63), (3, i64::MAX as u64), (4, u64::MAX)] {
        let mut fixture = fixture();
        for sample in fixture.samples.iter_mut().step_by(1 + at % 2) {
            match at {
                0 => (sample.wait_begin_ns, sample.wait_end_ns) = (u64::MAX, value),
                1 => sample.done_ns = value,
                2 => sample.post_end_ns = value,
                3 => (sample.arm_ns, sample.done_ns) = (value, u64::MAX - 1),
                _ => (sample.post_begin_ns, sample.done_ns) = (0, value),
            }
        }
        let (text, _) = report_of(&fixture, true);
        assert!(text.len() < 200_000 && text.contains("send"), "case {at}: {} bytes", text.len());
    }
}

#[test]
fn event_times_and_bodies_of_any_value_make_a_report() {
    let mut rng = analysis::stats::Rng::new(11);
    for _ in 0..20 {
        let mut fixture = fixture();
        let events = fixture.events.len() as u64;
        for _ in 0..200 {
            let at = rng.below(events) as usize;
            fixture.events[at].0.ts_ns = [0, 1, 1 << 63, u64::MAX, rng.next_u64()][rng.below(5) as usize];
        }
        assert!(report_of(&fixture, false).0.contains("send"));
    }
}

#[test]
fn sums_of_huge_counters_stay_at_the_end_of_their_range() {
    let mut fixture = fixture();
    for round in &mut fixture.manifest.rounds {
        (round.samples, round.failed, round.thread_cpu_ns, round.end_ns) = (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        (round.begin_ns, round.server_cpu_ns, round.machine_busy_ns) = (0, Some(u64::MAX), Some(u64::MAX));
        round.hits.iter_mut().for_each(|(_, hits)| *hits = u64::MAX);
    }
    let row = capture::manifest::LossRow { kind: "cq_post".into(), attempted: u64::MAX, delivered: 0, lost: u64::MAX };
    fixture.manifest.losses = vec![row; 3];
    fixture.manifest.started_unix_s = u64::MAX;
    let (text, code) = report_of(&fixture, true);
    assert_eq!(code, analysis::show::EXIT_LOSS, "{text}");
    assert!(text.contains("100.0 % of the records") && text.contains("operations failed"), "{text}");
}

#[test]
fn failed_operations_are_told_and_not_taken_for_untraced_ones() {
    let mut fixture = fixture();
    fixture.samples.iter_mut().for_each(|sample| sample.status = 12);
    let (text, _) = report_of(&fixture, false);
    assert!(text.contains(&format!("{} operations failed", fixture.samples.len())), "{text}");
    assert!(!text.contains("no round was traced"), "{text}");
}

#[test]
fn no_string_of_a_capture_steers_the_terminal() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("captures/a\x1b[32m\nb");
    let mut fixture = fixture();
    let bad = "\x1b]0;title\x07\x1b[31m\u{9b}1m\u{202e}";
    for text in [
        &mut fixture.manifest.host.kernel,
        &mut fixture.manifest.host.cpu_model,
        &mut fixture.manifest.device.name,
        &mut fixture.manifest.placement.text,
    ] {
        text.push_str(bad);
    }
    fixture.manifest.notes.push(bad.into());
    fixture.manifest.outcome = capture::manifest::Outcome::Failed(bad.into());
    fixture.manifest.plan.iter_mut().for_each(|row| row.reason.push_str(bad));
    write_log(&fixture, &path).expect("writes");
    let (text, _) = text_of(dir.path(), false);
    let steering: Vec<char> = text.chars().filter(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}').collect();
    assert!(steering.is_empty(), "{steering:?} in {text}");
    let manifest: Manifest = capture::manifest::read(&path).expect("reads");
    assert!(manifest.notes.iter().all(|note| !note.contains('\x1b')));
    // Words that name nothing are refused by name.
    let file = path.join(MANIFEST_FILE);
    let text = fs::read_to_string(&file).expect("reads").replacen("\"send\"", "\"se\\u001b[31mnd\"", 1);
    fs::write(&file, text).expect("writes");
    let error = capture::manifest::read(&path).expect_err("no such operation").to_string();
    assert!(error.contains("se\u{fffd}[31mnd"), "{error}");
}

#[test]
fn what_is_no_regular_file_is_refused_instead_of_waited_for() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("run");
    write_log(&fixture(), &path).expect("writes");
    fs::remove_file(path.join(LOG_FILE)).expect("removes");
    let _socket = UnixListener::bind(path.join(LOG_FILE)).expect("binds");
    let streams = Capture::open(&path).expect("manifest").streams();
    assert!(matches!(streams.map(|_| ()), Err(Error::Damaged { .. })));
}

#[test]
fn a_manifest_without_end_is_refused_before_it_fills_the_memory() {
    let dir = tempfile::tempdir().expect("dir");
    let file = fs::File::create(dir.path().join(MANIFEST_FILE)).expect("creates");
    file.set_len(1 << 40).expect("a hole");
    let error = capture::manifest::read(dir.path()).expect_err("too long").to_string();
    assert!(error.contains("longer than"), "{error}");
}

#[test]
fn captures_of_two_boots_are_named_as_such() {
    let dir = tempfile::tempdir().expect("dir");
    let mut fixture = fixture();
    write_log(&fixture, &dir.path().join("captures/a")).expect("writes");
    assert!(!text_of(dir.path(), false).0.contains("different boots"));
    fixture.manifest.host.boot_id = "another".into();
    write_log(&fixture, &dir.path().join("captures/b")).expect("writes");
    assert!(text_of(dir.path(), false).0.contains("2 different boots"));
}
