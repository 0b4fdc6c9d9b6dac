//! The transfer of a peer capture from servers that do what they should, and from some that do not.
use super::*;
use crate::control::connection::Connection;
use crate::control::endpoint_facts::EndpointFacts;
use crate::control::limits::RecordingLimits;
use crate::control::message::{PeerCaptureRound, Reply, Request, ServerFacts};
use crate::control::protocol::PART_MAX_BYTES;
use crate::control::server_recorder::ServerRecorder;
use crate::control::token::Token;
use crate::runner::RoundStats;
use crate::session::Target;
use capture::manifest::{Placement, Run, Worker};
use capture::{Capture, Mode, peer_of};
use std::net::SocketAddr;
use tokio::net::TcpListener;

const TOKEN: &str = "0123456789abcdef";
const SOON: Duration = Duration::from_secs(5);
const SAMPLES: u64 = 10_000;

#[test]
fn only_measured_rounds_of_ping_pongs_are_kept() {
    let request = PeerCaptureRequest { wanted: true, probes: true, note: None };
    assert_eq!(request.retention(Operation::Send, true, false), Retention::Traced);
    assert_eq!(request.retention(Operation::Send, false, false), Retention::Samples);
    assert_eq!(request.retention(Operation::Send, true, true), Retention::Nothing);
    assert_eq!(request.retention(Operation::Read, true, false), Retention::Nothing);
    assert_eq!(PeerCaptureRequest { probes: false, ..request }.retention(Operation::WritePp, true, false), Retention::Samples);
    assert_eq!(PeerCaptureRequest::default().retention(Operation::Send, true, false), Retention::Nothing);
    assert!(!PeerCaptureRequest::default().follows(Operation::Send));
}

/// How the made-up server behaves.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Good,
    /// Its end closes the connection after the first part.
    Dies,
    /// Announces more than a transfer may have.
    Huge,
    /// Announces a round of more bytes than it announced for the run.
    Lies,
    /// Has no side for the run.
    Refuses,
    /// Kept only a part.
    Cut,
}

/// Answers as a server would that recorded one round of 10,000 samples of run 4.
async fn serve(listener: TcpListener, manner: Manner) {
    let mut recorder = ServerRecorder::new(RecordingLimits { probes: false, bytes: 1 << 20 }, None, None);
    recorder.open(4, EndpointFacts::made_up(), 7).expect("opens");
    let samples = (1..=SAMPLES).map(|number| Sample { begin_wr_id: number, ..Sample::default() }).collect();
    let stats = RoundStats { samples: SAMPLES, ..RoundStats::default() };
    recorder.round(4, 2, Retention::Samples, samples, stats).expect("kept");
    if manner == Manner::Cut {
        let more = (1..=SAMPLES).map(|number| Sample { begin_wr_id: number, ..Sample::default() }).collect();
        recorder.round(4, 3, Retention::Samples, more, stats).expect("left out");
    }
    let (stream, _) = listener.accept().await.expect("a client");
    let mut client: Connection<Request> = Connection::new(stream).expect("a connection");
    let mut parts = 0;
    while let Ok(request) = client.next_within(SOON, "a request").await {
        let reply = match request {
            Request::Hello { .. } => Reply::Welcome(facts()),
            Request::Capture { .. } if manner == Manner::Refuses => Reply::Failed { why: "run 4 is not open".to_owned() },
            Request::Capture { run } => {
                let mut capture = recorder.capture(run).expect("there");
                capture.bytes = if manner == Manner::Huge { u64::MAX } else { capture.bytes };
                Reply::Capture(Box::new(capture))
            }
            Request::CaptureRound { run, at } => {
                let round = recorder.capture_round(run, at).expect("there");
                let lie = PeerCaptureRound { record_bytes: 1 << 40, ..round.clone() };
                Reply::CaptureRound(Box::new(if manner == Manner::Lies { lie } else { round }))
            }
            Request::Fetch { .. } if manner == Manner::Dies && parts == 1 => return,
            Request::Fetch { run, at, from } => {
                parts += 1;
                Reply::Part { bytes: recorder.part(run, at, from).expect("there") }
            }
            _ => return,
        };
        if client.send(&reply, SOON).await.is_err() {
            return;
        }
    }
}

fn facts() -> ServerFacts {
    let none = || "made up".to_owned();
    ServerFacts { tool_version: none(), boot_id: none(), tgid: 1, device: none(), port: 1, gids: Vec::new(), cpus: vec![0] }
}

/// Fetches from such a server into a fresh capture, and gives what came of it and the samples that a reader finds.
fn fetched(manner: Manner) -> (ServerSide, Option<usize>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let dir = tempfile::tempdir().expect("a folder");
    let mut ours = Manifest::new(Run::new(Operation::Send, Mode::Event));
    let client = Worker { index: 0, tid: 1, cpu: None, mode: Mode::Event, queue_pairs: Vec::new(), completion_queues: Vec::new() };
    ours.set_workers(vec![client], Placement::default());
    let side = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
        let address: SocketAddr = listener.local_addr().expect("an address");
        let server = tokio::spawn(serve(listener, manner));
        let target = Target::Host { address: address.to_string(), token: Token::parse(TOKEN, "test").expect("a token") };
        let mut peer = Peer::reach(&target, "rxe0", 1, SOON).await.expect("reached");
        let mut progress = Progress::new(true, None).expect("progress");
        let stopped = AtomicBool::new(false);
        let transfer = Transfer { run: 4, op: Operation::Send, peer: &mut peer, progress: &mut progress, stopped: &stopped };
        let request = PeerCaptureRequest { wanted: true, ..PeerCaptureRequest::default() };
        let side = tokio::time::timeout(SOON * 4, transfer.fetch_into(dir.path(), &ours, &request)).await.expect("ends in time");
        drop(peer);
        server.await.expect("does not panic");
        side
    });
    // The client's own folder has no manifest here: only the server's side is looked at.
    let samples = peer_of(dir.path()).map(|peer| {
        let mut capture = Capture::open(&peer).expect("opens");
        assert_eq!(capture.manifest.side, Side::Server);
        // Its own thread, not the client's.
        assert_eq!((capture.manifest.workers[0].tid, capture.manifest.placement.tid), (7, 7));
        capture.samples().expect("readable").filter_map(Result::ok).count()
    });
    (side, samples)
}

#[test]
fn a_good_server_s_side_is_whole() {
    const { assert!(SAMPLES as usize * size_of::<Sample>() > PART_MAX_BYTES) };
    assert_eq!(fetched(Manner::Good), (ServerSide::Present, Some(SAMPLES as usize)));
}

#[test]
fn a_server_that_dies_in_the_transfer_leaves_a_capture_that_opens_and_a_reason() {
    let (side, samples) = fetched(Manner::Dies);
    assert!(matches!(&side, ServerSide::Partial(why) if why.contains("closed the control connection")), "{side:?}");
    assert_eq!(samples, Some(0));
}

#[test]
fn a_server_that_announces_nonsense_is_refused_before_anything_is_taken() {
    let (side, samples) = fetched(Manner::Huge);
    assert!(matches!(&side, ServerSide::Absent(why) if why.contains("limit")), "{side:?}");
    assert_eq!(samples, None);
    let (side, samples) = fetched(Manner::Lies);
    assert!(matches!(&side, ServerSide::Partial(why) if why.contains("larger than all rounds")), "{side:?}");
    assert_eq!(samples, Some(0));
    let (side, _) = fetched(Manner::Refuses);
    assert!(matches!(&side, ServerSide::Absent(why) if why.contains("not open")), "{side:?}");
}

#[test]
fn what_the_server_could_not_keep_is_told() {
    let (side, samples) = fetched(Manner::Cut);
    assert!(matches!(&side, ServerSide::Partial(why) if why.contains("--max-capture") && why.contains("from 3 on")), "{side:?}");
    assert_eq!(samples, Some(SAMPLES as usize));
}
