//! Every traced sample is joined with the kernel events that belong to it.
//!
//! Both streams come by time. For each sample the events from its post to its completion are cut out ([`window`]); the joins
//! ([`exact`], [`inferred`]) say which CQE and which handler call are the sample's, and [`build`] makes the chain of its milestones.
//! Linear in the events, memory bounded by the longest sample.
mod build;
pub mod chain;
mod context;
mod exact;
pub mod facts;
pub mod flags;
mod inferred;
pub mod joined;
mod learned;
mod preemption;
mod rxe;
mod shapes;
mod threads;
mod wakeup;
pub mod window;

use capture::record::Stream;
use capture::{Manifest, Record, Sample};
use ebpf_probes::Event;
use exact::Exact;
use facts::RunFacts;
use inferred::Inferred;
use joined::{Found, Joined};
use learned::Learned;
use std::iter::Peekable;
use window::{Buffer, SLACK_NS, Window};

/// Choices of the join; the default is what reports use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Build the chains from the inferred join even where the exact one is possible.
    pub inferred_only: bool,
    /// Use the join that is off by one: a check of the check.
    pub mutant: bool,
}

/// What the joins said of one sample.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Chain, flags, who was in the way.
    pub joined: Joined,
    /// Handler call by the exact join, as its number in the stream.
    pub exact_trigger: Option<u64>,
    /// Handler call by the inferred join.
    pub inferred_trigger: Option<u64>,
}

/// Totals of the join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Samples of traced rounds.
    pub samples: u64,
    /// Events read.
    pub events: u64,
    /// Records that could not be decoded.
    pub undecoded: u64,
    /// Events held in memory at once, at most.
    pub held_max: u64,
}

/// Joins the traced samples of a capture, in the order of their posts, and hands each to `sink`.
///
/// # Errors
/// What the streams report.
pub fn run(
    manifest: &Manifest,
    samples: Stream<Sample>,
    records: Stream<Record>,
    options: Options,
    sink: &mut dyn FnMut(&Sample, &Outcome),
) -> capture::Result<Totals> {
    each(manifest, samples, records, options, &mut |sample, outcome, _| sink(sample, outcome))
}

/// As [`run`], with the events of each sample's window.
///
/// # Errors
/// What the streams report.
pub fn each(
    manifest: &Manifest,
    samples: Stream<Sample>,
    records: Stream<Record>,
    options: Options,
    sink: &mut dyn FnMut(&Sample, &Outcome, &Window<'_>),
) -> capture::Result<Totals> {
    let facts = RunFacts::of(manifest);
    let mut events = Events { records: records.peekable(), totals: Totals::default() };
    let mut buffer = Buffer::default();
    let mut exact = Exact::default();
    let mut learned = Learned::default();
    let mut inferred = if options.mutant { Inferred::mutant() } else { Inferred::default() };
    for sample in samples {
        let sample = sample?;
        if sample.status != 0
            || !manifest.rounds.iter().any(|round| round.index == sample.round && round.traced && !round.warmup && round.holds(&sample))
        {
            continue;
        }
        buffer.forget_before(sample.post_begin_ns);
        while let Some(event) = events.next_until(sample.done_ns.saturating_add(SLACK_NS))? {
            let id = buffer.push(event);
            inferred.observe(id, &event, &facts);
            learned.observe(id, &event);
            buffer.forget_before(sample.post_begin_ns);
        }
        events.totals.samples += 1;
        events.totals.held_max = events.totals.held_max.max(buffer.len() as u64);
        learned.forget_before(buffer.first_id());
        let window = buffer.window(sample.done_ns);
        let hit = if facts.has_cqe && !options.inferred_only { exact.find(&window, &sample) } else { None };
        let call = inferred.trigger(&window, &sample, &facts);
        let inferred_at = call.and_then(|call| window.position(call.id));
        // Only a read that ended after the CQE was written can have been ended by it.
        let exact_at = hit.and_then(|hit| hit.handler.filter(|at| sample.wait_end_ns > 0 && window.ts(*at) <= sample.wait_end_ns));
        let found = match hit {
            Some(hit) => {
                let earlier_event = exact_at.is_none() && sample.wait_end_ns > 0 && call.is_some_and(|call| call.id < window.id(hit.cqe));
                Found { cqe: Some(hit.cqe), handler: exact_at, earlier_event }
            }
            // A call before the post was for an earlier CQE; this one was found by the poll after it.
            None => Found { cqe: None, handler: inferred_at, earlier_event: call.is_some_and(|call| call.ts_ns < sample.post_begin_ns) },
        };
        let joined = build::build(&window, &sample, &facts, &learned, found);
        let outcome = Outcome { joined, exact_trigger: exact_at.map(|at| window.id(at)), inferred_trigger: call.map(|call| call.id) };
        sink(&sample, &outcome, &window);
    }
    while events.next_until(u64::MAX)?.is_some() {}
    Ok(events.totals)
}

struct Events {
    records: Peekable<Stream<Record>>,
    totals: Totals,
}

impl Events {
    /// The next event that is not later than `until_ns`.
    fn next_until(&mut self, until_ns: u64) -> capture::Result<Option<Event>> {
        loop {
            match self.records.peek() {
                Some(Ok(record)) if record.header.ts_ns > until_ns => return Ok(None),
                None => return Ok(None),
                Some(_) => {}
            }
            let Some(record) = self.records.next().transpose()? else { return Ok(None) };
            self.totals.events += 1;
            match record.event() {
                Ok(event) => return Ok(Some(event)),
                Err(_) => self.totals.undecoded += 1,
            }
        }
    }
}
