//! What the server records of its own side of the runs while it answers: kept in memory within a limit, and handed over when it is asked
//! for.
//!
//! Its probes are attached and detached when the client says so, between rounds. Nothing is sent while a round runs.
use super::ControlError;
use super::endpoint_facts::EndpointFacts;
use super::limits::RecordingLimits;
use super::message::{PeerCapture, PeerCaptureRound, Reply, Retention};
use super::transfer;
use crate::probes::{ProbeError, ProbeSelection, ProbeSession, ProbeThread, RoundRecords};
use crate::runner::RoundStats;
use capture::manifest::Placement;
use capture::named::among;
use capture::text::chain;
use capture::{Level, Sample};
use std::collections::BTreeMap;
use zerocopy::IntoBytes;

struct RecordedRun {
    endpoint: EndpointFacts,
    rounds: Vec<RecordedRound>,
    cut: Option<String>,
}

struct RecordedRound {
    index: u32,
    traced: bool,
    stats: RoundStats,
    samples: Vec<Sample>,
    records: RoundRecords,
}

impl RecordedRound {
    fn bytes(&self) -> u64 {
        (self.samples.as_bytes().len() + self.records.bytes.len()) as u64
    }
}

/// What one client's runs recorded on this side, and the probes.
pub struct ServerRecorder<'a> {
    limits: RecordingLimits,
    probes: Option<&'a ProbeThread>,
    device_driver: Option<String>,
    loaded: bool,
    traced: bool,
    bytes: u64,
    runs: BTreeMap<u32, RecordedRun>,
}

/// A client that went away leaves no probe behind.
impl Drop for ServerRecorder<'_> {
    fn drop(&mut self) {
        if let Some(probes) = self.probes.filter(|_| self.loaded) {
            probes.load(ProbeSelection::none());
        }
    }
}

impl<'a> ServerRecorder<'a> {
    /// Nothing is recorded yet; without `probes` there are none. `device_driver`: the kernel driver of this side's device, where it is known.
    pub fn new(limits: RecordingLimits, probes: Option<&'a ProbeThread>, device_driver: Option<String>) -> ServerRecorder<'a> {
        ServerRecorder { limits, probes, device_driver, loaded: false, traced: false, bytes: 0, runs: BTreeMap::new() }
    }

    /// Loads the probes of a level. Not having any is an answer, not an error.
    ///
    /// # Errors
    /// When no run can have that level.
    pub fn load_probes(&mut self, level: Level) -> Result<Reply, ControlError> {
        among(Level::OF_RUNS, level.name()).map_err(|error| ControlError::Request(error.to_string()))?;
        let Some(probes) = self.probes.filter(|_| self.limits.probes) else {
            let why = "its operator does not allow probes there (`rdmascope serve --no-probes`)".to_owned();
            return Ok(Reply::Observing { summary: format!("none: {why}"), why_not: Some(why) });
        };
        probes.load(ProbeSelection::for_server(level, self.device_driver.clone()));
        self.loaded = true;
        let reply = probes.run(|it| Reply::Observing { why_not: it.absence().map(str::to_owned), summary: it.summary() });
        reply.map_err(|error| ControlError::Request(chain(&error)))
    }

    /// Attaches the probes, or drops every link.
    ///
    /// # Errors
    /// When none attaches.
    pub fn set_probes(&mut self, traced: bool) -> Result<Reply, ControlError> {
        let Some((changed, can_trace)) = self.with_probes(move |it| Ok((it.set_attached(traced)?, it.can_trace())))? else {
            return Ok(Reply::ProbesSet { changed: false });
        };
        self.traced = traced && can_trace;
        Ok(Reply::ProbesSet { changed })
    }

    /// A run was opened, and its thread has this id.
    ///
    /// # Errors
    /// When a set of the probes is full.
    pub fn open(&mut self, run: u32, mut endpoint: EndpointFacts, tid: u32) -> Result<(), ControlError> {
        endpoint.worker.tid = tid;
        let Placement { tgid, qpn, .. } = endpoint.placement();
        let (polls, threads) = (endpoint.polls, std::mem::take(&mut endpoint.kernel_threads));
        let tracked = self.with_probes(move |it| {
            it.track(tgid, tid, qpn, polls)?;
            it.track_kernel_threads(threads)
        })?;
        endpoint.kernel_threads = tracked.unwrap_or_default();
        self.runs.insert(run, RecordedRun { endpoint, rounds: Vec::new(), cut: None });
        Ok(())
    }

    /// A round of a run is over: keeps of it what the client asked for.
    ///
    /// # Errors
    /// When the probes' counters cannot be read.
    pub fn round(
        &mut self,
        run: u32,
        index: u32,
        retention: Retention,
        samples: Vec<Sample>,
        stats: RoundStats,
    ) -> Result<(), ControlError> {
        let traced = self.traced && retention == Retention::Traced;
        let records = if self.traced { self.with_probes(|it| it.take_records())?.unwrap_or_default() } else { RoundRecords::default() };
        let Some(recorded) = self.runs.get_mut(&run).filter(|_| retention != Retention::Nothing && !samples.is_empty()) else {
            return Ok(());
        };
        let records = if traced { records } else { RoundRecords::default() };
        let round = RecordedRound { index, traced, stats, samples, records };
        if self.bytes + round.bytes() > self.limits.bytes {
            // Later rounds that would fit are left out too: a side that ends somewhere is easier to judge than one with holes.
            self.bytes = self.limits.bytes;
            let limit_mib = self.limits.bytes >> 20;
            recorded.cut.get_or_insert(format!(
                "the server keeps at most {limit_mib} MiB for one client (`rdmascope serve --max-capture`), so that its rounds from {index} on are missing"
            ));
            return Ok(());
        }
        self.bytes += round.bytes();
        recorded.rounds.push(round);
        Ok(())
    }

    /// What was recorded of a run.
    ///
    /// # Errors
    /// When the run is not open.
    pub fn capture(&self, run: u32) -> Result<PeerCapture, ControlError> {
        let recorded = self.run(run)?;
        let (plan, clock_check, note) = self.with_probes(|it| Ok((it.plan(), it.clock_check(), it.note())))?.unwrap_or_default();
        Ok(PeerCapture {
            host: crate::machine::host::host(),
            device: recorded.endpoint.device.clone(),
            placement: recorded.endpoint.placement(),
            workers: vec![recorded.endpoint.worker.clone()],
            kernel_threads: recorded.endpoint.kernel_threads.clone(),
            plan,
            clock_check,
            rounds: recorded.rounds.iter().map(|round| round.index).collect(),
            bytes: recorded.rounds.iter().map(RecordedRound::bytes).sum(),
            cut: recorded.cut.clone(),
            notes: note.into_iter().collect(),
        })
    }

    /// What was recorded of a round.
    ///
    /// # Errors
    /// When there is no such round.
    pub fn capture_round(&self, run: u32, at: u32) -> Result<PeerCaptureRound, ControlError> {
        let round = self.round_at(run, at)?;
        Ok(PeerCaptureRound {
            index: round.index,
            traced: round.traced,
            stats: round.stats,
            samples: round.samples.len() as u64,
            record_bytes: round.records.bytes.len() as u64,
            hits: round.records.hits.clone(),
            losses: round.records.losses.clone(),
            missed: round.records.missed,
        })
    }

    /// Bytes of a round from `from` on, as one message carries them.
    ///
    /// # Errors
    /// When there is no such round, or it has no byte there.
    pub fn part(&self, run: u32, at: u32, from: u64) -> Result<String, ControlError> {
        let round = self.round_at(run, at)?;
        let outside = || ControlError::Request(format!("round {} of run {run} has no byte {from}", round.index));
        transfer::part(&round.samples, &round.records.bytes, from).ok_or_else(outside)
    }

    /// The run is closed: forgets it.
    pub fn close(&mut self, run: u32) {
        let Some(recorded) = self.runs.remove(&run) else { return };
        let Placement { tid, qpn, .. } = recorded.endpoint.placement();
        // A thread that is gone makes no more records: a failure to take it out of the sets changes nothing.
        let _ = self.with_probes(move |it| {
            it.untrack(tid, qpn);
            Ok(())
        });
        self.bytes = self.runs.values().flat_map(|run| &run.rounds).map(RecordedRound::bytes).sum();
    }

    /// Runs `job` on the thread of the probes, where they were loaded.
    fn with_probes<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut ProbeSession) -> Result<R, ProbeError> + Send + 'static,
    ) -> Result<Option<R>, ControlError> {
        let Some(probes) = self.probes.filter(|_| self.loaded) else { return Ok(None) };
        let answer = probes.run(job).and_then(|it| it);
        answer.map(Some).map_err(|error| ControlError::Request(chain(&error)))
    }

    fn run(&self, run: u32) -> Result<&RecordedRun, ControlError> {
        self.runs.get(&run).ok_or_else(|| ControlError::Request(format!("run {run} is not open")))
    }

    fn round_at(&self, run: u32, at: u32) -> Result<&RecordedRound, ControlError> {
        let missing = || ControlError::Request(format!("run {run} has no round at position {at}"));
        self.run(run)?.rounds.get(at as usize).ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::transfer::{part_bytes, split_round};

    fn samples(count: u64) -> Vec<Sample> {
        (1..=count).map(|number| Sample { begin_wr_id: number, done_ns: 10 * number, ..Sample::default() }).collect()
    }

    fn fetched(recorder: &ServerRecorder<'_>, run: u32, at: u32) -> (PeerCaptureRound, Vec<Sample>) {
        let round = recorder.capture_round(run, at).expect("there");
        let total = round.samples * size_of::<Sample>() as u64 + round.record_bytes;
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < total {
            bytes.extend(part_bytes(&recorder.part(run, at, bytes.len() as u64).expect("a part")).expect("base64"));
        }
        let (samples, records) = split_round(&round, &bytes).expect("as announced");
        assert!(records.is_empty());
        (round, samples)
    }

    #[test]
    fn what_was_kept_comes_back_in_parts() {
        let mut recorder = ServerRecorder::new(RecordingLimits::default(), None, None);
        recorder.open(3, EndpointFacts::made_up(), 7).expect("opens");
        // More than one part.
        let sent = samples(10_000);
        recorder.round(3, 5, Retention::Samples, sent.clone(), RoundStats::default()).expect("kept");
        recorder.round(3, 6, Retention::Nothing, samples(4), RoundStats::default()).expect("dropped");
        let capture = recorder.capture(3).expect("there");
        assert_eq!((capture.rounds.as_slice(), capture.bytes, capture.cut), ([5].as_slice(), 880_000, None));
        assert_eq!((capture.placement.tid, capture.placement.qpn), (7, 17));
        assert_eq!(Placement::of_worker(&capture.workers[0], capture.placement.clone()), capture.placement);
        let (round, got) = fetched(&recorder, 3, 0);
        assert_eq!((round.index, round.traced, got), (5, false, sent));
        assert!(recorder.capture_round(3, 1).is_err() && recorder.part(3, 0, 880_001).is_err() && recorder.capture(4).is_err());
        recorder.close(3);
        assert!(recorder.capture(3).is_err());
    }

    #[test]
    fn over_the_limit_the_rest_is_missing_and_the_reason_is_told() {
        let mut recorder = ServerRecorder::new(RecordingLimits { probes: false, bytes: 1 << 20 }, None, None);
        recorder.open(0, EndpointFacts::made_up(), 7).expect("opens");
        for index in 0..3 {
            recorder.round(0, index, Retention::Samples, samples(5_000), RoundStats::default()).expect("a round");
        }
        recorder.round(0, 3, Retention::Samples, samples(1), RoundStats::default()).expect("a round");
        let capture = recorder.capture(0).expect("there");
        assert_eq!(capture.rounds, [0, 1]);
        assert!(capture.cut.is_some_and(|why| why.contains("1 MiB") && why.contains("rounds from 2 on")), "the reason");
    }

    #[test]
    fn probes_that_are_not_allowed_are_an_answer() {
        let mut recorder = ServerRecorder::new(RecordingLimits { probes: false, bytes: 1 }, None, None);
        let Reply::Observing { why_not: Some(why), .. } = recorder.load_probes(Level::Std).expect("an answer") else {
            panic!("another answer")
        };
        assert!(why.contains("--no-probes"));
        assert!(matches!(recorder.set_probes(true), Ok(Reply::ProbesSet { changed: false })));
        assert!(recorder.load_probes(Level::Trace).is_err(), "a level that no run has");
    }
}
