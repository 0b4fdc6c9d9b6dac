//! Both sides of a round trip, without a common clock: the client's sample k set beside the server's sample k.
//!
//! ```text
//! rtt = client post + network + server notification + server residency + server post + client notification
//! ```
//! Every line but the network is a difference within one clock; the network is what is left. A notification is what lies between the
//! CQE (H1 or R6) and the poll that found it (U4); where a side's CQE is not seen, its notification stays with the network, and that
//! line's name says so. The network contains what both devices (or both kernels' soft-RoCE) do; where they show it, it is split too.
//!
//! The join: one operation is outstanding at a time, and both ends count their sends from 1, so that the client's send and the server's
//! answer of the same round trip carry the same number in their wr_ids, in the same round.
mod half;
mod lines;
mod pair;
mod read;
mod stay;
mod table;

use crate::explain::model::{SlowPair, TwoSides};
use capture::manifest::ServerSide;
use capture::{Capture, Manifest, Side};
use half::{Client, Server};
pub use pair::Pair;
use pair::Seen;
use std::path::Path;
use table::Table;

/// Slow samples that are listed.
const SLOW_MAX: usize = 5;

/// The split of the run whose capture lies at `dir`, or why there is none. A server's side that cannot be read takes nothing from the
/// client's report.
pub fn of(dir: &Path, manifest: &Manifest) -> Result<TwoSides, String> {
    if !manifest.run.op.server_answers() {
        return Err(format!("the server's thread takes no part in {}: it has no sample", manifest.run.op));
    }
    let Some(peer) = capture::peer_of(dir) else {
        return Err(match &manifest.server_side {
            ServerSide::Absent(why) | ServerSide::Partial(why) => why.clone(),
            ServerSide::Present => "its folder `peer` is gone".to_owned(),
            ServerSide::Unknown => "this capture holds nothing of the server (an older version made it, or it was cut)".to_owned(),
        });
    };
    both(dir, manifest, &peer).map_err(|error| format!("it cannot be read: {error}"))
}

fn both(dir: &Path, manifest: &Manifest, peer: &Path) -> capture::Result<TwoSides> {
    let server_manifest = Capture::open(peer)?.manifest;
    same_run(manifest, &server_manifest, peer)?;
    let servers = read::servers(peer, &server_manifest)?;
    let seen = Seen { client: read::shows_cqe(manifest), server: read::shows_cqe(&server_manifest) };
    let mut untraced = Table::new(Seen { client: false, server: false });
    let mut traced = Table::new(seen);
    let mut slow: Vec<Pair> = Vec::new();
    read::clients(dir, manifest, &mut |client| {
        let table = if client.traced { &mut traced } else { &mut untraced };
        let Some(server) = servers.by_key.get(&client.key) else {
            table.unmatched += 1;
            return;
        };
        let pair = pair(&client, server);
        if table.add(&pair) {
            slow.push(pair);
            if slow.len() > 64 {
                keep_slowest(&mut slow);
            }
        }
    })?;
    keep_slowest(&mut slow);
    let slow = slow.iter().map(|pair| listed(pair, seen)).collect();
    let mut notes = server_manifest.notes.clone();
    if server_manifest.side != Side::Server {
        notes.push("the folder `peer` does not call itself a server's side".to_owned());
    }
    if let ServerSide::Partial(why) = &manifest.server_side {
        notes.push(format!("the server's side is not whole: {why}"));
    }
    let (network, traced) = traced.finish();
    let stay = servers.stay;
    Ok(TwoSides {
        untraced: untraced.finish().1,
        traced,
        network,
        server_coverage: stay.coverage(),
        server_joined: stay.joined(),
        server_lost: stay.lost,
        server_stages: stay.lines(),
        slow,
        notes,
        damage: servers.damage,
    })
}

/// Each side names both queue pairs; those of another run have other numbers, or another operation.
fn same_run(client: &Manifest, server: &Manifest, peer: &Path) -> capture::Result<()> {
    let (ours, theirs) = (&client.placement, &server.placement);
    let pair = |manifest: &Manifest| (manifest.run.index, manifest.run.op, manifest.run.mode);
    if (ours.qpn, ours.peer_qpn) == (theirs.peer_qpn, theirs.qpn) && pair(client) == pair(server) {
        return Ok(());
    }
    let why = format!(
        "it is of another run: queue pairs {} and {}, {} {}; the client's are {} and {}, {} {}",
        theirs.qpn, theirs.peer_qpn, server.run.op, server.run.mode, ours.qpn, ours.peer_qpn, client.run.op, client.run.mode
    );
    Err(capture::Error::Damaged { path: peer.to_path_buf(), why })
}

/// Every joined sample of a run, in the order of the client's posts: traced ones with what the kernels show.
///
/// # Errors
/// What reading the two captures can meet.
pub fn pairs(dir: &Path, sink: &mut dyn FnMut(&Pair)) -> capture::Result<()> {
    let manifest = Capture::open(dir)?.manifest;
    let peer = capture::peer_of(dir).ok_or_else(|| capture::Error::NoCapture { path: dir.join(capture::PEER_DIR) })?;
    let server_manifest = Capture::open(&peer)?.manifest;
    same_run(&manifest, &server_manifest, &peer)?;
    let servers = read::servers(&peer, &server_manifest)?;
    read::clients(dir, &manifest, &mut |client| {
        if let Some(server) = servers.by_key.get(&client.key) {
            sink(&pair(&client, server));
        }
    })
}

fn keep_slowest(slow: &mut Vec<Pair>) {
    slow.sort_by_key(|pair| std::cmp::Reverse(pair.rtt_ns));
    slow.truncate(SLOW_MAX);
}

fn listed(pair: &Pair, seen: Seen) -> SlowPair {
    // A slow sample of an untraced round has no notification of its own.
    let seen =
        Seen { client: seen.client && pair.client_notification_ns.is_some(), server: seen.server && pair.server_notification_ns.is_some() };
    let lines = pair.lines(seen).into_iter().map(|(line, ns)| (line.place, line.name.to_owned(), ns)).collect();
    SlowPair { wr_id: pair.wr_id, round: pair.round, rtt_ns: u64::try_from(pair.rtt_ns).unwrap_or(0), lines }
}

/// Sets the two halves of a round trip side by side.
fn pair(client: &Client, server: &Server) -> Pair {
    let difference = |to: u64, from: u64| i64::try_from(i128::from(to) - i128::from(from)).unwrap_or(i64::MAX);
    let between = |to: Option<u64>, from: Option<u64>| Some(difference(to?, from?));
    let (mine, theirs) = (&client.sample, &server.sample);
    // A CQE that was there before the post returned: the rest of the post is in the line of the post already.
    let client_cqe = client.cqe_ns.map(|ns| ns.max(mine.post_end_ns));
    Pair {
        round: mine.round,
        wr_id: mine.begin_wr_id,
        rtt_ns: difference(mine.done_ns, mine.post_begin_ns),
        client_post_ns: difference(mine.post_end_ns, mine.post_begin_ns),
        server_notification_ns: between(Some(theirs.done_ns), server.cqe_ns),
        server_residency_ns: difference(theirs.post_begin_ns, theirs.done_ns),
        server_post_ns: difference(theirs.post_end_ns, theirs.post_begin_ns),
        client_notification_ns: between(Some(mine.done_ns), client_cqe),
        client_send_ns: between(client.sent_ns, Some(mine.post_end_ns)),
        server_receive_ns: between(server.cqe_ns, server.arrived_ns),
        server_send_ns: between(server.sent_ns, Some(theirs.post_end_ns)),
        client_receive_ns: between(client_cqe, client.arrived_ns),
        lost: client.lost || server.lost,
    }
}
