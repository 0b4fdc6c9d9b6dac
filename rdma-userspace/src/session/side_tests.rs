//! The transfer of the server's side against servers that do what they should, and against some that do not.
use super::*;
use crate::control::connection::Connection;
use crate::control::message::{Reply, Request, ServerFacts, SideRound};
use crate::control::side::{Allowed, End, Keeper, PART_MAX_BYTES};
use crate::control::token::Token;
use crate::runner::RoundStats;
use crate::session::Target;
use analysis::capture::{Capture, peer_of};
use std::net::SocketAddr;
use tokio::net::TcpListener;

const TOKEN: &str = "0123456789abcdef";
const SOON: Duration = Duration::from_secs(5);
const SAMPLES: u64 = 10_000;

#[test]
fn only_measured_rounds_of_ping_pongs_are_kept() {
    let wish = Wish { wanted: true, probes: true, note: None };
    assert_eq!(wish.keep(OpKind::Send, true, false), Keep::Traced);
    assert_eq!(wish.keep(OpKind::Send, false, false), Keep::Samples);
    assert_eq!(wish.keep(OpKind::Send, true, true), Keep::Nothing);
    assert_eq!(wish.keep(OpKind::Read, true, false), Keep::Nothing);
    assert_eq!(Wish { probes: false, ..wish }.keep(OpKind::WritePp, true, false), Keep::Samples);
    assert_eq!(Wish::default().keep(OpKind::Send, true, false), Keep::Nothing);
    assert!(!Wish::default().follows(OpKind::Send));
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
    let mut keeper = Keeper::new(Allowed { probes: false, bytes: 1 << 20 }, None, None);
    keeper.open(4, End::made_up(), 7).expect("opens");
    let samples = (1..=SAMPLES).map(|number| Sample { begin_wr_id: number, ..Sample::default() }).collect();
    let stats = RoundStats { samples: SAMPLES, ..RoundStats::default() };
    keeper.round(4, 2, Keep::Samples, samples, stats).expect("kept");
    if manner == Manner::Cut {
        let more = (1..=SAMPLES).map(|number| Sample { begin_wr_id: number, ..Sample::default() }).collect();
        keeper.round(4, 3, Keep::Samples, more, stats).expect("left out");
    }
    let (stream, _) = listener.accept().await.expect("a client");
    let mut client: Connection<Request> = Connection::new(stream).expect("a connection");
    let mut parts = 0;
    while let Ok(request) = client.next_within(SOON, "a request").await {
        let reply = match request {
            Request::Hello { .. } => Reply::Welcome(facts()),
            Request::Side { .. } if manner == Manner::Refuses => Reply::Failed { why: "run 4 is not open".to_owned() },
            Request::Side { run } => {
                let mut side = keeper.side(run).expect("there");
                side.bytes = if manner == Manner::Huge { u64::MAX } else { side.bytes };
                Reply::Side(Box::new(side))
            }
            Request::SideRound { run, at } => {
                let round = keeper.side_round(run, at).expect("there");
                let lie = SideRound { record_bytes: 1 << 40, ..round.clone() };
                Reply::SideRound(Box::new(if manner == Manner::Lies { lie } else { round }))
            }
            Request::Fetch { .. } if manner == Manner::Dies && parts == 1 => return,
            Request::Fetch { run, at, from } => {
                parts += 1;
                Reply::Part { bytes: keeper.part(run, at, from).expect("there") }
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
    let ours = analysis::fixture::generate(analysis::fixture::Scenario::TwoGuests, 0, 1, 1).manifest;
    let side = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
        let address: SocketAddr = listener.local_addr().expect("an address");
        let server = tokio::spawn(serve(listener, manner));
        let target = Target::Host { address: address.to_string(), token: Token::parse(TOKEN, "test").expect("a token") };
        let mut peer = Peer::reach(&target, "rxe0", 1, SOON).await.expect("reached");
        let mut progress = Progress::new(true, None).expect("progress");
        let stopped = AtomicBool::new(false);
        let fetch = Fetch { run: 4, op: OpKind::Send, peer: &mut peer, progress: &mut progress, stopped: &stopped };
        let wish = Wish { wanted: true, ..Wish::default() };
        let side = tokio::time::timeout(SOON * 4, fetch.into(dir.path(), &ours, &wish)).await.expect("ends in time");
        drop(peer);
        server.await.expect("does not panic");
        side
    });
    // The client's own folder has no manifest here: only the server's side is looked at.
    let samples = peer_of(dir.path()).map(|peer| {
        let mut capture = Capture::open(&peer).expect("opens");
        assert_eq!(capture.manifest.side, Side::Server);
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
