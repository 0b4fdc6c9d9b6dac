//! Where the time of the server went, from the arrival of a message to the return of the post of its answer.
use super::half::{Server, arrival};
use super::lines::{Lines, Stat};
use super::pair::{Line, SERVER_POST, SERVER_RESIDENCY, line};
use crate::explain::model::{Place, SideLine};
use crate::join::chain::Chain;
use crate::stages::StageId;
use std::collections::BTreeMap;

/// A part of the server's stay, in path order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Stage(StageId),
    Residency,
    Post,
    Unattributed,
}

impl Part {
    fn of(stage: StageId) -> Part {
        if stage.is_unattributed() { Part::Unattributed } else { Part::Stage(stage) }
    }

    fn line(self) -> Line {
        let of_stage = |stage: StageId| line(Place::Server, stage.name(), stage.row().meaning);
        match self {
            Part::Stage(stage) => of_stage(stage),
            Part::Residency => SERVER_RESIDENCY,
            Part::Post => SERVER_POST,
            Part::Unattributed => of_stage(StageId::Unattributed),
        }
    }
}

/// The server's own stages, from the arrival of a message to the return of the post of its answer.
#[derive(Default)]
pub(super) struct Stay {
    parts: BTreeMap<Part, Stat>,
    n: u64,
    pub lost: u64,
    total_ns: i128,
    named_ns: i128,
}

impl Stay {
    pub fn add(&mut self, server: &Server, chain: &Chain) {
        if server.lost {
            self.lost += 1;
            return;
        }
        let sample = &server.sample;
        let Some((first, arrived_ns)) = arrival(chain) else { return };
        let difference = |to: u64, from: u64| i64::try_from(i128::from(to) - i128::from(from)).unwrap_or(i64::MAX);
        self.n += 1;
        self.total_ns += i128::from(difference(sample.post_end_ns, arrived_ns));
        for gap in chain.gaps().filter(|gap| gap.from >= first) {
            self.line(Part::of(gap.stage), gap.duration_ns);
        }
        self.line(Part::Residency, difference(sample.post_begin_ns, sample.done_ns));
        self.line(Part::Post, difference(sample.post_end_ns, sample.post_begin_ns));
    }

    fn line(&mut self, part: Part, ns: i64) {
        self.parts.entry(part).or_default().push(ns);
        if part != Part::Unattributed {
            self.named_ns += i128::from(ns);
        }
    }

    pub fn joined(&self) -> u64 {
        self.n
    }

    pub fn coverage(&self) -> Option<f64> {
        (self.n > 0 && self.total_ns > 0).then(|| self.named_ns as f64 / self.total_ns as f64)
    }

    pub fn lines(self) -> Vec<SideLine> {
        let (n, total_ns) = (self.n, self.total_ns);
        Lines(self.parts.into_iter().map(|(part, stat)| (part.line(), stat)).collect()).finish(n, total_ns)
    }
}
