//! The server's own side of a run: what it records while it answers, kept in memory within a limit, and handed over when it is asked for.
//!
//! Its probes are attached and detached when the client says so, between rounds. Nothing is sent while a round runs.
use super::ControlError;
use super::message::{Keep, Reply, Side, SideRound};
use crate::probes::{Guardian, Harvest, Level, Observer, ProbeError, Wanted};
use crate::runner::{Endpoint, Mode, PeerInfo, RoundStats};
use crate::system::{Root, device, irq, threads};
use crate::verbs::{Device, gid_table};
use analysis::capture::Sample;
use analysis::capture::manifest::{self as format, Placement};
use analysis::words::chain;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a round in one message; in base64 they stay below the limit of a message.
pub const PART_MAX_BYTES: usize = 512 << 10;
/// What a client takes of one run at most, in bytes.
pub const TAKEN_MAX_BYTES: u64 = 4 << 30;
/// What a server keeps for one client when nobody says otherwise, in bytes.
pub const KEPT_DEFAULT_BYTES: u64 = 256 << 20;

/// What a server's operator allows.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// A client may have probes attached here.
    pub probes: bool,
    /// Bytes that are kept for one client.
    pub bytes: u64,
}

impl Default for Allowed {
    fn default() -> Allowed {
        Allowed { probes: true, bytes: KEPT_DEFAULT_BYTES }
    }
}

/// Who the server's end of a run is, for the join with kernel events.
#[derive(Clone, Debug)]
pub struct End {
    device: format::Device,
    placement: Placement,
    /// Kernel threads in the path here.
    threads: Vec<format::KernelThread>,
    /// The server's thread polls.
    polls: bool,
}

impl End {
    /// Of a connected endpoint; its thread is not there yet.
    pub fn of(endpoint: &Endpoint, device: &Device, client: &PeerInfo, cpu: Option<u32>) -> End {
        let (params, port) = (endpoint.params(), endpoint.port());
        let gid = gid_table(device, port.number).unwrap_or_default().into_iter().find(|entry| entry.index == params.gid_index);
        let root = Root::live();
        let vector = device::device(&root, device.name())
            .map(|device| irq::vector_placement(&root, &device, params.comp_vector, cpu))
            .unwrap_or_default();
        End {
            polls: params.mode_of(endpoint.role()) == Mode::Poll,
            threads: threads::in_path(device.name(), &[cpu]),
            device: format::Device {
                name: device.name().to_owned(),
                driver: device.driver(),
                firmware: device.limits().firmware.clone(),
                port: port.number,
                netdev: gid.as_ref().and_then(|gid| gid.netdev.clone()),
                gid_index: params.gid_index,
                gid: gid.as_ref().map(|gid| gid.gid.to_string()).unwrap_or_default(),
                gid_type: gid.as_ref().map(|gid| gid.kind.to_string()).unwrap_or_default(),
                gid_reason: "the client chose the pair".to_owned(),
                mtu_bytes: endpoint.mtu_bytes(),
                rate_gbps: port.rate_gbps,
            },
            placement: Placement {
                tgid: std::process::id(),
                tid: 0,
                cq_handle: endpoint.cq_handle(),
                qpn: endpoint.qpn(),
                peer_qpn: client.qpn,
                cpu,
                server_cpu: None,
                comp_vector: params.comp_vector,
                irq: vector.irq,
                irq_cpus: vector.irq_cpus,
                text: vector.text,
            },
        }
    }
}

#[cfg(test)]
impl End {
    /// Of no endpoint.
    pub fn made_up() -> End {
        End { device: format::Device::default(), placement: Placement::default(), threads: Vec::new(), polls: true }
    }
}

struct KeptRun {
    end: End,
    rounds: Vec<KeptRound>,
    cut: Option<String>,
}

struct KeptRound {
    index: u32,
    traced: bool,
    stats: RoundStats,
    samples: Vec<Sample>,
    harvest: Harvest,
}

impl KeptRound {
    fn bytes(&self) -> u64 {
        (self.samples.as_bytes().len() + self.harvest.records.len()) as u64
    }
}

/// What one client's runs left on this side, and the probes.
pub struct Keeper<'a> {
    allowed: Allowed,
    probes: Option<&'a Guardian>,
    device_driver: Option<String>,
    loaded: bool,
    traced: bool,
    bytes: u64,
    runs: BTreeMap<u32, KeptRun>,
}

/// A client that went away leaves no probe behind.
impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        if let Some(probes) = self.probes.filter(|_| self.loaded) {
            probes.load(Wanted::nothing());
        }
    }
}

impl<'a> Keeper<'a> {
    /// Keeps nothing yet; without `probes` there are none. `device_driver`: the kernel driver of this side's device, where it is known.
    pub fn new(allowed: Allowed, probes: Option<&'a Guardian>, device_driver: Option<String>) -> Keeper<'a> {
        Keeper { allowed, probes, device_driver, loaded: false, traced: false, bytes: 0, runs: BTreeMap::new() }
    }

    /// Loads the probes of a level. Not having any is an answer, not an error.
    ///
    /// # Errors
    /// When there is no such level.
    pub fn observe(&mut self, level: &str) -> Result<Reply, ControlError> {
        let level: Level = level.parse().map_err(|error: crate::probes::UnknownLevel| ControlError::Request(error.to_string()))?;
        let Some(probes) = self.probes.filter(|_| self.allowed.probes) else {
            let why = "its operator does not allow probes there (`rdmascope serve --no-probes`)".to_owned();
            return Ok(Reply::Observing { summary: format!("none: {why}"), why_not: Some(why) });
        };
        probes.load(Wanted::by_server(level, self.device_driver.clone()));
        self.loaded = true;
        let told = probes.ask(|it| Reply::Observing { why_not: it.why_not().map(str::to_owned), summary: it.summary() });
        told.map_err(|error| ControlError::Request(chain(&error)))
    }

    /// Attaches the probes, or drops every link.
    ///
    /// # Errors
    /// When none attaches.
    pub fn set(&mut self, traced: bool) -> Result<Reply, ControlError> {
        let Some((changed, can_trace)) = self.ask(move |it| Ok((it.set(traced)?, it.can_trace())))? else {
            return Ok(Reply::ProbesSet { changed: false });
        };
        self.traced = traced && can_trace;
        Ok(Reply::ProbesSet { changed })
    }

    /// A run was opened and its thread has this id.
    ///
    /// # Errors
    /// When a set of the probes is full.
    pub fn open(&mut self, run: u32, mut end: End, tid: u32) -> Result<(), ControlError> {
        end.placement.tid = tid;
        let (tgid, qpn, polls, threads) = (end.placement.tgid, end.placement.qpn, end.polls, std::mem::take(&mut end.threads));
        let tracked = self.ask(move |it| {
            it.track(tgid, tid, qpn, polls)?;
            it.track_kernel_threads(threads)
        })?;
        end.threads = tracked.unwrap_or_default();
        self.runs.insert(run, KeptRun { end, rounds: Vec::new(), cut: None });
        Ok(())
    }

    /// A round of a run is over.
    ///
    /// # Errors
    /// When the probes' counters cannot be read.
    pub fn round(&mut self, run: u32, index: u32, keep: Keep, samples: Vec<Sample>, stats: RoundStats) -> Result<(), ControlError> {
        let traced = self.traced && keep == Keep::Traced;
        let harvest = if self.traced { self.ask(|it| it.harvest())?.unwrap_or_default() } else { Harvest::default() };
        let Some(kept) = self.runs.get_mut(&run).filter(|_| keep != Keep::Nothing && !samples.is_empty()) else { return Ok(()) };
        let harvest = if traced { harvest } else { Harvest::default() };
        let round = KeptRound { index, traced, stats, samples, harvest };
        if self.bytes + round.bytes() > self.allowed.bytes {
            // Later rounds that would fit are left out too: a side that ends somewhere is easier to judge than one with holes.
            self.bytes = self.allowed.bytes;
            let limit_mib = self.allowed.bytes >> 20;
            kept.cut.get_or_insert(format!(
                "the server keeps at most {limit_mib} MiB for one client (`rdmascope serve --max-capture`), so that its rounds from {index} on are missing"
            ));
            return Ok(());
        }
        self.bytes += round.bytes();
        kept.rounds.push(round);
        Ok(())
    }

    /// What there is of a run.
    ///
    /// # Errors
    /// When the run is not open.
    pub fn side(&self, run: u32) -> Result<Side, ControlError> {
        let kept = self.run(run)?;
        let (plan, clock_check, note) = self.ask(|it| Ok((it.plan(), it.clock_check(), it.note())))?.unwrap_or_default();
        Ok(Side {
            host: crate::system::host::host(),
            device: kept.end.device.clone(),
            placement: kept.end.placement.clone(),
            kernel_threads: kept.end.threads.clone(),
            plan,
            clock_check,
            rounds: kept.rounds.iter().map(|round| round.index).collect(),
            bytes: kept.rounds.iter().map(KeptRound::bytes).sum(),
            cut: kept.cut.clone(),
            notes: note.into_iter().collect(),
        })
    }

    /// What there is of a round.
    ///
    /// # Errors
    /// When there is no such round.
    pub fn side_round(&self, run: u32, at: u32) -> Result<SideRound, ControlError> {
        let round = self.kept(run, at)?;
        Ok(SideRound {
            index: round.index,
            traced: round.traced,
            stats: round.stats,
            samples: round.samples.len() as u64,
            record_bytes: round.harvest.records.len() as u64,
            hits: round.harvest.hits.clone(),
            losses: round.harvest.losses.clone(),
            missed: round.harvest.missed,
        })
    }

    /// Bytes of a round from `from` on, at most [`PART_MAX_BYTES`], in base64.
    ///
    /// # Errors
    /// When there is no such round, or it has no byte there.
    pub fn part(&self, run: u32, at: u32, from: u64) -> Result<String, ControlError> {
        let round = self.kept(run, at)?;
        let samples = round.samples.as_bytes();
        let outside = || ControlError::Request(format!("round {} of run {run} has no byte {from}", round.index));
        let from = usize::try_from(from).map_err(|_| outside())?;
        let rest = match from.checked_sub(samples.len()) {
            None => &samples[from..],
            Some(behind) => round.harvest.records.get(behind..).ok_or_else(outside)?,
        };
        Ok(STANDARD.encode(&rest[..rest.len().min(PART_MAX_BYTES)]))
    }

    /// The run is closed: forgets it.
    pub fn close(&mut self, run: u32) {
        let Some(kept) = self.runs.remove(&run) else { return };
        let (tid, qpn) = (kept.end.placement.tid, kept.end.placement.qpn);
        // What is recorded of a thread that is gone harms nobody.
        let _ = self.ask(move |it| {
            it.untrack(tid, qpn);
            Ok(())
        });
        self.bytes = self.runs.values().flat_map(|run| &run.rounds).map(KeptRound::bytes).sum();
    }

    /// Has the probes do something, where they were loaded.
    fn ask<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Observer) -> Result<R, ProbeError> + Send + 'static,
    ) -> Result<Option<R>, ControlError> {
        let Some(probes) = self.probes.filter(|_| self.loaded) else { return Ok(None) };
        let answer = probes.ask(job).and_then(|it| it);
        answer.map(Some).map_err(|error| ControlError::Request(chain(&error)))
    }

    fn run(&self, run: u32) -> Result<&KeptRun, ControlError> {
        self.runs.get(&run).ok_or_else(|| ControlError::Request(format!("run {run} is not open")))
    }

    fn kept(&self, run: u32, at: u32) -> Result<&KeptRound, ControlError> {
        let missing = || ControlError::Request(format!("run {run} has no round at position {at}"));
        self.run(run)?.rounds.get(at as usize).ok_or_else(missing)
    }
}

/// The bytes of a [`Reply::Part`].
///
/// # Errors
/// When they are not base64, or more than a part may have.
pub fn part_bytes(text: &str) -> Result<Vec<u8>, ControlError> {
    let bytes = STANDARD.decode(text).map_err(|error| ControlError::Side(format!("a part is not base64: {error}")))?;
    match bytes.len() {
        0 => Err(ControlError::Side("a part is empty".to_owned())),
        n if n > PART_MAX_BYTES => Err(ControlError::Side(format!("a part has {n} bytes, the limit is {PART_MAX_BYTES}"))),
        _ => Ok(bytes),
    }
}

/// The samples and the records in the bytes of a round.
///
/// # Errors
/// When the bytes are not as many as announced.
pub fn split_round(round: &SideRound, bytes: &[u8]) -> Result<(Vec<Sample>, Vec<u8>), ControlError> {
    let wrong = || ControlError::Side(format!("round {} has {} bytes that do not fit what was announced", round.index, bytes.len()));
    let count = usize::try_from(round.samples).map_err(|_| wrong())?;
    let samples_bytes = count.checked_mul(size_of::<Sample>()).ok_or_else(wrong)?;
    let (samples, records) = bytes.split_at_checked(samples_bytes).ok_or_else(wrong)?;
    if records.len() as u64 != round.record_bytes {
        return Err(wrong());
    }
    let samples = samples.chunks_exact(size_of::<Sample>()).map(|one| Sample::read_from_bytes(one).map_err(|_| wrong()));
    Ok((samples.collect::<Result<_, _>>()?, records.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: u64) -> Vec<Sample> {
        (1..=count).map(|number| Sample { begin_wr_id: number, done_ns: 10 * number, ..Sample::default() }).collect()
    }

    fn fetched(keeper: &Keeper, run: u32, at: u32) -> (SideRound, Vec<Sample>) {
        let round = keeper.side_round(run, at).expect("there");
        let total = round.samples * size_of::<Sample>() as u64 + round.record_bytes;
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < total {
            bytes.extend(part_bytes(&keeper.part(run, at, bytes.len() as u64).expect("a part")).expect("base64"));
        }
        let (samples, records) = split_round(&round, &bytes).expect("as announced");
        assert!(records.is_empty());
        (round, samples)
    }

    #[test]
    fn what_was_kept_comes_back_in_parts() {
        let mut keeper = Keeper::new(Allowed::default(), None, None);
        keeper.open(3, End::made_up(), 7).expect("opens");
        // More than one part.
        let sent = samples(10_000);
        keeper.round(3, 5, Keep::Samples, sent.clone(), RoundStats::default()).expect("kept");
        keeper.round(3, 6, Keep::Nothing, samples(4), RoundStats::default()).expect("dropped");
        let side = keeper.side(3).expect("there");
        assert_eq!((side.rounds.as_slice(), side.bytes, side.cut), ([5].as_slice(), 880_000, None));
        assert_eq!(side.placement.tid, 7);
        let (round, got) = fetched(&keeper, 3, 0);
        assert_eq!((round.index, round.traced, got), (5, false, sent));
        assert!(keeper.side_round(3, 1).is_err() && keeper.part(3, 0, 880_001).is_err() && keeper.side(4).is_err());
        keeper.close(3);
        assert!(keeper.side(3).is_err());
    }

    #[test]
    fn over_the_limit_the_rest_is_missing_and_the_reason_is_told() {
        let mut keeper = Keeper::new(Allowed { probes: false, bytes: 1 << 20 }, None, None);
        keeper.open(0, End::made_up(), 7).expect("opens");
        for index in 0..3 {
            keeper.round(0, index, Keep::Samples, samples(5_000), RoundStats::default()).expect("a round");
        }
        keeper.round(0, 3, Keep::Samples, samples(1), RoundStats::default()).expect("a round");
        let side = keeper.side(0).expect("there");
        assert_eq!(side.rounds, [0, 1]);
        assert!(side.cut.is_some_and(|why| why.contains("1 MiB") && why.contains("rounds from 2 on")), "the reason");
    }

    #[test]
    fn probes_that_are_not_allowed_are_an_answer() {
        let mut keeper = Keeper::new(Allowed { probes: false, bytes: 1 }, None, None);
        let Reply::Observing { why_not: Some(why), .. } = keeper.observe("std").expect("an answer") else { panic!("another answer") };
        assert!(why.contains("--no-probes"));
        assert!(matches!(keeper.set(true), Ok(Reply::ProbesSet { changed: false })));
        assert!(keeper.observe("everything").is_err());
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        assert!(part_bytes("").is_err() && part_bytes("?").is_err());
        assert!(part_bytes(&STANDARD.encode(vec![0; PART_MAX_BYTES + 1])).is_err());
        let mut keeper = Keeper::new(Allowed::default(), None, None);
        keeper.open(0, End::made_up(), 7).expect("opens");
        keeper.round(0, 0, Keep::Samples, samples(2), RoundStats::default()).expect("kept");
        let round = keeper.side_round(0, 0).expect("there");
        assert!(split_round(&round, &[0; 175]).is_err() && split_round(&round, &[0; 177]).is_err());
        let huge = SideRound { samples: u64::MAX, ..round };
        assert!(split_round(&huge, &[0; 176]).is_err());
    }
}
