//! Synthetic captures with a known truth, for tests and for trying charts. The event orders are those of real kernels
//! (6.1: tasklet and inline completion; 6.12: workqueue and nested handler; two guests: interrupt and NAPI; mlx5: interrupt, tasklet and callback); the durations are made up.
mod ids;
mod maker;
mod manifest;
mod scenario;

pub use maker::Truth;
pub use scenario::Scenario;

use crate::stats::Rng;
use capture::manifest::Round;
use capture::{LogWriter, Manifest, Sample};
use ebpf_probes::{Body, Header, encode, layout};
use ids::QPN;
use maker::Maker;
use manifest::manifest;
use std::collections::BTreeMap;
use std::path::Path;

/// A synthetic capture.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// Its manifest.
    pub manifest: Manifest,
    /// The samples, by time.
    pub samples: Vec<Sample>,
    /// The records as the ring gave them.
    pub events: Vec<(Header, Body)>,
    /// For each sample of a traced round, by `begin_wr_id`: the true stages.
    pub truth: BTreeMap<u64, Truth>,
}

/// Makes a capture of `rounds` rounds (every second one untraced) with `per_round` samples each.
pub fn generate(scenario: Scenario, rounds: u32, per_round: u32, seed: u64) -> Fixture {
    let mut maker = Maker { rng: Rng::new(seed), now: 1_000_000_000, events: Vec::new(), truth: Truth::new(), traced: true };
    let mut fixture = Fixture { manifest: manifest(scenario, per_round), samples: Vec::new(), events: Vec::new(), truth: BTreeMap::new() };
    let mut wr_id = 1u64 << 40;
    for index in 0..rounds {
        maker.traced = index % 2 == 0;
        let begin_ns = maker.now;
        for _ in 0..per_round {
            wr_id += 2;
            let mut sample = Sample { begin_wr_id: wr_id, end_wr_id: wr_id, qpn: QPN, round: index, ..Sample::default() };
            maker.truth.clear();
            match scenario {
                Scenario::SendEvent61 | Scenario::SendEvent612 => maker.send_event(&mut sample, scenario == Scenario::SendEvent612),
                Scenario::ReadPoll => maker.read_poll(&mut sample),
                Scenario::ReadInline61 => maker.read_inline(&mut sample),
                Scenario::TwoGuests => maker.two_guests(&mut sample),
                Scenario::SendMlx5 => maker.send_mlx5(&mut sample),
            }
            maker.now = sample.done_ns + 300;
            if maker.traced {
                fixture.truth.insert(sample.begin_wr_id, maker.truth.clone());
            }
            fixture.samples.push(sample);
        }
        let elapsed = maker.now - begin_ns;
        let event = scenario.op_mode().1.may_sleep();
        fixture.manifest.rounds.push(Round {
            index,
            traced: maker.traced,
            begin_ns,
            end_ns: maker.now,
            samples: per_round.into(),
            thread_cpu_ns: if event { elapsed / 3 } else { elapsed },
            machine_busy_ns: Some(elapsed),
            events: if event { per_round.into() } else { 0 },
            hits: if maker.traced { vec![("K5 completion handler".into(), if event { per_round.into() } else { 0 })] } else { vec![] },
            ..Round::default()
        });
        maker.now += 50_000;
    }
    fixture.events = maker.events;
    fixture
}

/// Writes a fixture as the log of a capture, samples and events interleaved in blocks.
///
/// # Errors
/// Those of the writer.
pub fn write_log(fixture: &Fixture, dir: &Path) -> capture::Result<()> {
    let mut writer = LogWriter::create(dir, &fixture.manifest)?;
    let raw = ring_bytes(&fixture.events);
    let half = fixture.samples.len() / 2;
    writer.samples(&fixture.samples[..half])?;
    writer.events(&raw)?;
    writer.samples(&fixture.samples[half..])?;
    writer.finish(&fixture.manifest)?;
    Ok(())
}

/// The records back to back, as the ring gives them.
pub fn ring_bytes(events: &[(Header, Body)]) -> Vec<u8> {
    let mut raw = Vec::new();
    let mut one = [0; layout::RECORD_MAX_BYTES];
    for (header, body) in events {
        let size = encode(*header, body, &mut one);
        raw.extend_from_slice(&one[..size]);
    }
    raw
}
