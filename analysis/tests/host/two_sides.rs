//! The split of a round trip between both sides, on made-up captures whose truth is known. The two clocks are ages apart.
use analysis::explain::sides::{Pair, pairs};
use analysis::report::model::{Place, SideLine, SidesTable};
use analysis::show::{Options, run};
use analysis::testing::{Scenario, generate, ring_bytes};
use capture::manifest::{Round, ServerSide};
use capture::{LogWriter, Manifest, Mode, Operation, PEER_DIR, Sample, Side, seal};
use ebpf_probes::{Body, CqPost, Header, Irq, RxePost, RxeRcv, RxeTask, RxeXmit, Softirq, path};
use std::path::Path;

/// What the server's clock shows more than the client's.
const OFFSET_NS: u64 = 7_000_000_000_000;
const SERVER_BIT: u64 = 1 << 46;
const RECEIVE_BIT: u64 = 1 << 47;
const QPN: u32 = 17;
const PER_ROUND: u64 = 40;

/// One end: its samples and events.
#[derive(Default)]
struct End {
    samples: Vec<Sample>,
    events: Vec<(Header, Body)>,
}

impl End {
    fn emit(&mut self, ts_ns: u64, pid: u32, body: Body) {
        self.events.push((Header { ts_ns, pid, tgid: pid, ..Header::default() }, body));
    }

    fn send(&mut self, at_ns: u64, pid: u32, wr_id: u64) {
        self.emit(at_ns + 400, pid, Body::RxePost(RxePost { qp: 1, qpn: QPN, reserved: 0 }));
        self.emit(at_ns + 500, pid, Body::RxeTask(RxeTask { qp: 1, qpn: QPN, path: path::REQUESTER }));
        self.emit(at_ns + 1_000, pid, Body::RxeXmit(RxeXmit { qp: 1, wr_id, qpn: QPN, psn: wr_id as u32, opcode: 4, reserved: 0 }));
    }

    /// Interrupt at `at_ns`, CQE 900 ns later.
    fn receive(&mut self, at_ns: u64, wr_id: u64) {
        self.emit(at_ns, 0, Body::IrqEntry(Irq { irq: 9, reserved: 0 }));
        self.emit(at_ns + 200, 0, Body::SoftirqEntry(Softirq { vec: 3, reserved: 0 }));
        self.emit(at_ns + 500, 0, Body::RxeRcv(RxeRcv { qp: 1, skb: 2, qpn: QPN, path: path::RESPONDER }));
        self.emit(at_ns + 550, 0, Body::RxeTask(RxeTask { qp: 1, qpn: QPN, path: path::RESPONDER }));
        self.emit(at_ns + 900, 0, Body::CqPost(CqPost { cq: 3, wr_id, qpn: QPN, status: 0, opcode: 0, byte_len: 64 }));
    }
}

/// What is true of sample `number`: there, residency, back, in ns.
fn truth(number: u64) -> (u64, u64, u64) {
    (10_000 + number * 7, 300 + number % 5 * 100, 12_000 + number * 3)
}

/// Round 0 with probes, round 1 without; `shift`: the server's numbers are off by that.
fn write(dir: &Path, shift: u64) {
    let (mut client, mut server) = (End::default(), End::default());
    let mut now = 1_000_000_000;
    let mut rounds = Vec::new();
    for round in 0..2 {
        let begin_ns = now;
        for number in round * PER_ROUND + 1..=(round + 1) * PER_ROUND {
            let (there, residency, back) = truth(number);
            let traced = round == 0;
            let (sent, answer) = (number, SERVER_BIT | (number + shift));
            if traced {
                client.send(now, 1000, sent);
            }
            let seen = now + 1_000 + there;
            let answered = seen + 900 + 100 + residency;
            let theirs = Sample {
                begin_wr_id: answer,
                end_wr_id: SERVER_BIT | RECEIVE_BIT | number,
                done_ns: OFFSET_NS + seen + 1_000,
                post_begin_ns: OFFSET_NS + answered,
                post_end_ns: OFFSET_NS + answered + 1_500,
                qpn: QPN,
                round: round as u32,
                ..Sample::default()
            };
            if traced {
                server.receive(OFFSET_NS + seen, theirs.end_wr_id);
                server.send(OFFSET_NS + answered, 2000, answer);
            }
            let back_at = answered + 1_000 + back;
            let mine = Sample {
                begin_wr_id: sent,
                end_wr_id: RECEIVE_BIT | number,
                post_begin_ns: now,
                post_end_ns: now + 1_500,
                done_ns: back_at + 900 + 250,
                qpn: QPN,
                round: round as u32,
                ..Sample::default()
            };
            if traced {
                client.receive(back_at, mine.end_wr_id);
            }
            now = mine.done_ns + 500;
            client.samples.push(mine);
            server.samples.push(theirs);
        }
        rounds.push(Round { index: round as u32, traced: round == 0, begin_ns, end_ns: now, samples: PER_ROUND, ..Round::default() });
    }
    let base = generate(Scenario::TwoGuests, 1, 1, 1).manifest;
    let mut ours = Manifest { rounds: rounds.clone(), server_side: ServerSide::Present, ..base.clone() };
    // Two machines may well give the same number.
    ours.placement.peer_qpn = ours.placement.qpn;
    ours.run.op = Operation::Send;
    ours.run.mode = Mode::Poll;
    ours.run.server_mode = Some(Mode::Poll);
    let mut theirs = Manifest { side: Side::Server, server_side: ServerSide::Unknown, ..ours.clone() };
    theirs.placement.tid = 2000;
    for round in &mut theirs.rounds {
        round.begin_ns += OFFSET_NS;
        round.end_ns += OFFSET_NS;
    }
    for (dir, end, manifest) in [(dir.to_path_buf(), &client, &ours), (dir.join(PEER_DIR), &server, &theirs)] {
        let mut log = LogWriter::create(&dir, manifest).expect("a folder");
        log.samples(&end.samples).expect("written");
        log.events(&ring_bytes(&end.events)).expect("written");
        log.finish(manifest).expect("written");
    }
}

fn joined(dir: &Path) -> Vec<Pair> {
    let mut all = Vec::new();
    pairs(dir, &mut |pair| all.push(*pair)).expect("both sides");
    all.sort_by_key(|pair| pair.wr_id);
    all
}

fn line<'a>(lines: &'a [SideLine], place: Place, name: &str) -> &'a SideLine {
    lines.iter().find(|line| line.place == place && line.name == name).unwrap_or_else(|| panic!("no {place} {name} in {lines:?}"))
}

fn adds_up(table: &SidesTable) -> bool {
    let sum: f64 = table.lines.iter().map(|line| line.mean_of_all_ns).sum();
    (sum - table.mean_rtt_ns).abs() < 1.0
}

#[test]
fn every_sample_is_split_as_it_was_made() {
    let dir = tempfile::tempdir().expect("a folder");
    write(dir.path(), 0);
    let all = joined(dir.path());
    assert_eq!(all.len() as u64, 2 * PER_ROUND);
    for pair in &all {
        let (there, residency, back) = truth(pair.wr_id);
        let traced = pair.round == 0;
        assert_eq!((pair.client_post_ns, pair.server_residency_ns, pair.server_post_ns), (1_500, residency as i64, 1_500));
        let told = |ns| traced.then_some(ns);
        assert_eq!((pair.server_notification_ns, pair.client_notification_ns), (told(100), told(250)), "{pair:?}");
        assert_eq!((pair.client_send_ns, pair.server_send_ns), (told(-500), told(-500)));
        assert_eq!((pair.server_receive_ns, pair.client_receive_ns), (told(900), told(900)));
        assert_eq!(pair.rtt_ns as u64, 1_000 + there + 1_000 + residency + 1_000 + back + 1_150);
    }
}

#[test]
fn the_tables_add_up_and_the_report_shows_them() {
    let dir = tempfile::tempdir().expect("a folder");
    write(dir.path(), 0);
    let check = |text: &mut String| {
        let options = Options { dir: dir.path().into(), full_text: true, ..Options::default() };
        let mut out = Vec::new();
        let (report, code) = run(&options, &mut out).expect("a report");
        *text = String::from_utf8(out).expect("text");
        assert_eq!((code, report.runs.len()), (0, 1), "the folder `peer` is no run of its own");
        report
    };
    let mut text = String::new();
    let report = check(&mut text);
    let sides = report.runs[0].two_sides.as_ref().expect("both sides");
    let (traced, untraced) = (sides.traced.as_ref().expect("traced"), sides.untraced.as_ref().expect("untraced"));
    assert_eq!((traced.n, traced.unmatched, traced.incomplete, traced.negative_network), (PER_ROUND, 0, 0, 0));
    assert!(adds_up(traced) && adds_up(untraced));
    let network = line(&traced.lines, Place::Network, "network");
    assert!(network.p50_ns.is_some_and(|ns| (22_000..25_000).contains(&ns)), "{network:?}");
    line(&untraced.lines, Place::Network, "network and both notifications");
    let wire = line(&sides.network, Place::Network, "wire and devices, both ways");
    let truth: u64 = (1..=PER_ROUND).map(|number| truth(number).0 + truth(number).2).sum();
    assert!((wire.mean_of_all_ns - truth as f64 / PER_ROUND as f64).abs() < 1.0, "{wire:?}");
    for (stage, mean) in
        [("rx interrupt", 200.0), ("rx softirq", 300.0), ("task queue", 50.0), ("protocol", 350.0), ("detect", 100.0), ("residency", 500.0)]
    {
        assert_eq!(line(&sides.server_stages, Place::Server, stage).mean_of_all_ns, mean, "{stage}");
    }
    assert_eq!((sides.server_joined, sides.server_lost, sides.server_coverage), (PER_ROUND, 0, Some(1.0)));
    assert_eq!(sides.slow.len(), 5);
    for slow in &sides.slow {
        assert_eq!(slow.lines.iter().map(|(_, _, ns)| *ns).sum::<i64>(), slow.rtt_ns as i64);
    }
    assert!(text.contains("Both sides: send poll") && text.contains("network and both notifications"), "{text}");
    // Sealed, the same comes out.
    seal(dir.path()).expect("seals");
    seal(&dir.path().join(PEER_DIR)).expect("seals");
    let mut sealed = String::new();
    check(&mut sealed);
    assert_eq!(sealed, text);
}

/// A check of the check: a server whose numbers are off by one gives other figures, and one sample finds no partner.
#[test]
fn a_join_that_is_off_by_one_is_seen() {
    let dir = tempfile::tempdir().expect("a folder");
    write(dir.path(), 1);
    let wrong = joined(dir.path());
    let right = wrong.iter().filter(|pair| pair.server_residency_ns as u64 == truth(pair.wr_id).1).count();
    assert!(wrong.len() as u64 == 2 * PER_ROUND - 2 && right == 0, "{} of {}", right, wrong.len());
    let report = analysis::report::of_folder(dir.path()).expect("a report");
    let sides = report.runs[0].two_sides.as_ref().expect("both sides");
    assert_eq!((sides.traced.as_ref().map(|it| it.unmatched), sides.untraced.as_ref().map(|it| it.unmatched)), (Some(1), Some(1)));
}

#[test]
fn without_a_servers_side_the_reason_is_told_and_a_damaged_one_takes_nothing_away() {
    let dir = tempfile::tempdir().expect("a folder");
    write(dir.path(), 0);
    let peer = dir.path().join(PEER_DIR);
    let alone = analysis::report::of_folder(&peer).err().map(|error| error.to_string());
    assert!(alone.is_some_and(|why| why.contains("the folder above")));
    std::fs::write(peer.join("manifest.json"), "{").expect("written");
    let report = analysis::report::of_folder(dir.path()).expect("the client's capture opens");
    let run = &report.runs[0];
    assert!(run.traced.is_some() && run.two_sides.is_none());
    assert!(run.two_sides_absent.as_ref().is_some_and(|why| why.contains("cannot be read")), "{:?}", run.two_sides_absent);
    std::fs::remove_dir_all(peer).expect("removed");
    let report = analysis::report::of_folder(dir.path()).expect("the client's capture opens");
    assert!(report.runs[0].two_sides_absent.as_ref().is_some_and(|why| why.contains("gone")));
}
