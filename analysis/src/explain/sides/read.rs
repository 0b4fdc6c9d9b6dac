//! Reads each side of a run: its samples, and for traced rounds what its kernel's events say of them.
use super::half::{ByKey, Client, Server, arrival, key};
use super::stay::Stay;
use crate::join::chain::Chain;
use crate::join::facts::RunFacts;
use crate::join::flags::Flag;
use crate::join::{self, Options, Outcome};
use crate::stages::Point;
use capture::record::Stream;
use capture::text::units::count;
use capture::{Capture, Manifest, Record, Sample};
use ebpf_probes::{Body, Kind, RxeXmit};
use std::collections::BTreeMap;
use std::path::Path;

/// The server's samples, and where their time went.
pub(super) struct Servers {
    pub by_key: ByKey<Server>,
    pub stay: Stay,
    /// What is not there of what was recorded.
    pub damage: Vec<String>,
}

/// Can this side's events say when a CQE was written?
pub(super) fn shows_cqe(manifest: &Manifest) -> bool {
    manifest.plan.iter().any(|row| row.attached) && RunFacts::of(manifest).shows_cqe()
}

fn is_measured(manifest: &Manifest, sample: &Sample) -> Option<bool> {
    let round = manifest.rounds.iter().find(|round| round.index == sample.round && !round.warmup)?;
    (sample.status == 0 && round.holds(sample)).then_some(round.traced)
}

/// The client's samples: untraced ones, then traced ones, each by time.
pub(super) fn clients(dir: &Path, manifest: &Manifest, sink: &mut dyn FnMut(Client)) -> capture::Result<()> {
    let plain = |sample: Sample, traced| Client {
        key: key(sample.round, sample.begin_wr_id),
        traced,
        sample,
        sent_ns: None,
        arrived_ns: None,
        cqe_ns: None,
        lost: false,
    };
    let mut any_traced = false;
    for sample in Capture::open(dir)?.samples()? {
        let sample = sample?;
        match is_measured(manifest, &sample) {
            Some(false) => sink(plain(sample, false)),
            Some(true) => any_traced = true,
            None => {}
        }
    }
    if any_traced {
        let streams = Capture::open(dir)?.streams()?;
        join::run(manifest, streams.samples, streams.records, Options::default(), &mut |sample, outcome| {
            let chain = &outcome.joined.chain;
            sink(Client {
                sent_ns: chain.get(Point::Rexmit).or(chain.get(Point::Xmit)),
                arrived_ns: arrival(chain).map(|(_, ns)| ns),
                cqe_ns: cqe(chain),
                lost: outcome.joined.flags.has(Flag::Lost),
                ..plain(*sample, true)
            });
        })?;
    }
    Ok(())
}

/// The server's samples, and the stages of those of traced rounds.
pub(super) fn servers(dir: &Path, manifest: &Manifest) -> capture::Result<Servers> {
    let mut by_key: ByKey<Server> = BTreeMap::new();
    let mut any_traced = false;
    let mut capture = Capture::open(dir)?;
    for sample in capture.samples()? {
        let sample = sample?;
        let Some(traced) = is_measured(manifest, &sample) else { continue };
        any_traced |= traced;
        let plain = Server { sample, sent_ns: None, arrived_ns: None, cqe_ns: None, lost: false };
        by_key.insert(key(sample.round, sample.begin_wr_id), plain);
    }
    let mut damage = std::mem::take(&mut capture.notes);
    let counted = manifest.rounds.iter().filter(|round| !round.warmup).map(|round| round.samples).fold(0, u64::saturating_add);
    let missing = counted.saturating_sub(by_key.len() as u64);
    if missing > 0 {
        damage.push(format!("{} of the {} samples that its manifest counts are not there", count(missing), count(counted)));
    }
    let mut stay = Stay::default();
    if any_traced {
        let sent = sent(Capture::open(dir)?.streams()?.records, manifest.placement.qpn)?;
        let streams = Capture::open(dir)?.streams()?;
        let waits = waits(streams.samples, manifest);
        join::run(&waiting(manifest), Box::new(waits), streams.records, Options::default(), &mut |wait, outcome| {
            let Some(server) = by_key.get_mut(&key(wait.round, wait.begin_wr_id)) else { return };
            server.sent_ns = sent.get(&wait.begin_wr_id).copied();
            fill(server, outcome);
            stay.add(server, &outcome.joined.chain);
        })?;
    }
    Ok(Servers { by_key, stay, damage })
}

fn fill(server: &mut Server, outcome: &Outcome) {
    let chain = &outcome.joined.chain;
    server.arrived_ns = arrival(chain).map(|(_, ns)| ns);
    server.cqe_ns = cqe(chain);
    server.lost = outcome.joined.flags.has(Flag::Lost);
}

fn cqe(chain: &Chain) -> Option<u64> {
    chain.get(Point::HwCqe).or(chain.get(Point::CqePosted))
}

/// When the last packet of each answer left, by the answer's wr_id.
fn sent(records: Stream<Record>, our_qpn: u32) -> capture::Result<BTreeMap<u64, u64>> {
    let mut sent = BTreeMap::new();
    for record in records {
        let record = record?;
        if let Ok(event) = record.event()
            && let Body::RxeXmit(RxeXmit { wr_id, qpn, .. }) = event.body
            && qpn == our_qpn
        {
            sent.insert(wr_id, event.header.ts_ns);
        }
    }
    Ok(sent)
}

/// The server's samples turned around: from its last answer to its next receive, which is the span that the join looks at.
fn waits(samples: Stream<Sample>, manifest: &Manifest) -> impl Iterator<Item = capture::Result<Sample>> + use<> {
    let begins: BTreeMap<u32, u64> = manifest.rounds.iter().map(|round| (round.index, round.begin_ns)).collect();
    let mut last: Option<Sample> = None;
    samples.map(move |sample| {
        let sample = sample?;
        let since = match last {
            Some(last) if last.round == sample.round => last.post_begin_ns + 1,
            _ => begins.get(&sample.round).copied().unwrap_or(sample.done_ns),
        };
        last = Some(sample);
        // The next message may only come after the answer before it: the events in between are this sample's.
        let since = since.min(sample.done_ns);
        Ok(Sample { post_begin_ns: since, post_end_ns: since, ..sample })
    })
}

/// The manifest for joining waits: they hold no post, so that no post's event can be missing in them.
fn waiting(manifest: &Manifest) -> Manifest {
    let mut manifest = manifest.clone();
    let of_posts = [Kind::RxePost.name(), Kind::RxeXmit.name()];
    for row in &mut manifest.plan {
        row.gives.retain(|kind| !of_posts.contains(&kind.as_str()));
    }
    manifest
}
