//! Both sides of a round trip, between two guests: the server's samples and kernel events come back and are joined with the client's.
//!
//! Ignored by default: `cargo xtask test` runs it in guest b while guest a runs `rdmascope serve`, once as root and, on the next port, once
//! as nobody.

use crate::support::program::rdmascope;
use analysis::explain::sides::pairs;
use analysis::report::model::{Place, Report, RunReport, SideLine, SidesTable, TwoSides};
use capture::Side;
use capture::manifest::ServerSide;
use capture::{Capture, LOG_FILE, PEER_DIR, find};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(400);
/// Port of the server that runs as nobody.
const NOBODY_PORT: u16 = 18_601;

fn peer() -> String {
    std::env::var("PEER").expect("the other guest's address")
}

fn compare(host: &str, out: &Path, arguments: &[&str]) -> Report {
    let out_text = out.to_str().expect("a plain path");
    let usual = [
        "compare",
        host,
        "--token-file",
        "/etc/rdmascope.token",
        "--device",
        "rxe0",
        "--connect-timeout",
        "60",
        "--no-report",
        "--out",
        out_text,
    ];
    let end = rdmascope(&[&usual, arguments].concat()).end_within(PATIENCE);
    assert_eq!(end.code, Some(0), "{}", end.text);
    println!("{}", end.text);
    analysis::report::of_folder(out).expect("the captures open")
}

fn line<'a>(lines: &'a [SideLine], place: Place, name: &str) -> &'a SideLine {
    lines.iter().find(|line| line.place == place && line.name == name).unwrap_or_else(|| panic!("no line {place} {name}: {lines:#?}"))
}

fn sides(run: &RunReport) -> &TwoSides {
    let name = format!("{} {}", run.manifest.run.op, run.manifest.run.mode);
    run.two_sides.as_ref().unwrap_or_else(|| panic!("{name}: no server's side: {:?}", run.two_sides_absent))
}

/// The means of the lines add up to the mean round trip.
fn assert_adds_up(name: &str, table: &SidesTable) {
    let sum: f64 = table.lines.iter().map(|line| line.mean_of_all_ns).sum();
    assert!((sum - table.mean_rtt_ns).abs() <= table.mean_rtt_ns * 1e-9 + 1.0, "{name}: {sum} is not {}", table.mean_rtt_ns);
}

#[test]
#[ignore = "runs in the VM"]
fn round_trips_are_split_between_both_sides() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let report = compare(&peer(), &out, &["--op", "send,write-pp", "-n", "1200"]);
    let mut text = Vec::new();
    let options = analysis::show::Options { dir: out.clone(), full_text: true, ..Default::default() };
    analysis::show::run(&options, &mut text).expect("a report");
    println!("{}", String::from_utf8_lossy(&text));
    assert_eq!(report.runs.len(), 3);
    for run in &report.runs {
        let (op, mode) = (run.manifest.run.op.name(), run.manifest.run.mode.name());
        let name = format!("{op} {mode}");
        assert_eq!(run.manifest.server_side, ServerSide::Present, "{name}");
        let sides = sides(run);
        for (rounds, table) in [("traced", &sides.traced), ("untraced", &sides.untraced)] {
            let table = table.as_ref().unwrap_or_else(|| panic!("{name}: no {rounds} table"));
            assert!(table.n >= 1000, "{name} {rounds}: {} joined", table.n);
            assert_eq!(table.unmatched, 0, "{name} {rounds}");
            assert!(table.incomplete * 100 <= table.n, "{name} {rounds}: {} incomplete", table.incomplete);
            assert_adds_up(&name, table);
            let network = table.lines.iter().find(|line| line.place == Place::Network).expect("a network line");
            assert!(network.p50_ns.is_some_and(|ns| ns > 0), "{name} {rounds}: {network:?}");
            let whole = rounds == "traced" && op == "send";
            assert_eq!(network.name, if whole { "network" } else { "network and both notifications" }, "{name} {rounds}");
            assert!(line(&table.lines, Place::Server, "residency").p50_ns.is_some_and(|ns| ns > 0), "{name} {rounds}");
        }
        assert!(sides.server_coverage.is_some_and(|share| share >= 0.95), "{name}: {:?}", sides.server_coverage);
        assert!(sides.server_lost * 100 <= sides.server_joined, "{name}: {} LOST of {}", sides.server_lost, sides.server_joined);
        let mut stages = vec!["rx softirq", "residency", "post of the answer"];
        match (op, mode) {
            ("send", "event") => stages.extend(["handler", "run queue", "return to user", "poll"]),
            ("send", _) => stages.push("detect"),
            _ => stages.push("protocol and detection"),
        }
        for stage in stages {
            let n = line(&sides.server_stages, Place::Server, stage).n;
            assert!(n * 2 >= sides.server_joined, "{name}: {stage} in {n} of {}", sides.server_joined);
        }
    }
    // Sample by sample, and what lies on disk.
    for capture in find(&out).expect("captures") {
        let peer = capture.join(PEER_DIR);
        let theirs = Capture::open(&peer).expect("the server's side opens").manifest;
        let ours = Capture::open(&capture).expect("opens").manifest;
        assert_eq!(theirs.side, Side::Server);
        assert_ne!(theirs.host.boot_id, ours.host.boot_id);
        assert!(!peer.join(LOG_FILE).exists(), "the server's side is not sealed");
        assert!(theirs.rounds.iter().any(|round| round.traced) && theirs.rounds.iter().any(|round| !round.traced));
        // Untraced rounds have no probes on either side.
        let hits = |traced: bool| -> u64 {
            theirs.rounds.iter().filter(|round| round.traced == traced).flat_map(|round| &round.hits).map(|(_, hits)| hits).sum()
        };
        assert!(hits(true) > 0 && hits(false) == 0, "hits {} and {}", hits(true), hits(false));
        let mut n = 0;
        pairs(&capture, &mut |pair| {
            n += 1;
            // What lies within the round trip is no longer than it. The server's post is not among that: it may return after its packet arrived.
            for part in [pair.client_post_ns, pair.server_residency_ns] {
                assert!((0..=pair.rtt_ns).contains(&part), "{pair:?}");
            }
        })
        .expect("both sides");
        assert!(n >= 2000, "{n} pairs");
    }
}

#[test]
#[ignore = "runs in the VM"]
fn a_server_without_rights_serves_and_says_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let report = compare(&format!("{}:{NOBODY_PORT}", peer()), &out, &["--op", "send", "--mode", "poll", "-n", "300"]);
    let run = &report.runs[0];
    assert!(run.breakdown.is_some(), "the client's own probes are its own affair");
    let sides = sides(run);
    let traced = sides.traced.as_ref().expect("a table");
    line(&traced.lines, Place::Network, "network and the server's notification");
    line(&traced.lines, Place::Client, "notification");
    assert!(traced.n >= 250 && sides.server_stages.is_empty() && sides.server_coverage.is_none());
    assert!(sides.notes.iter().any(|note| note.contains("no probes on the server") && note.contains("CAP_BPF")), "{:?}", sides.notes);
}

#[test]
#[ignore = "runs in the VM"]
fn a_client_that_does_not_want_it_gets_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let report = compare(&peer(), &out, &["--op", "send,read", "--mode", "poll", "-n", "100", "--level", "none", "--no-peer-capture"]);
    for (op, why) in [("send", "--no-peer-capture"), ("read", "no part in read")] {
        let run = report.runs.iter().find(|run| run.manifest.run.op.name() == op).expect("a run");
        assert!(run.two_sides_absent.as_ref().is_some_and(|it| it.contains(why)), "{op}: {:?}", run.two_sides_absent);
    }
    assert!(find(&out).expect("captures").iter().all(|capture| !capture.join(PEER_DIR).exists()));
}
