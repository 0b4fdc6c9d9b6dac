//! The chain of one sample: the milestones that were seen, in path order, with their times.
use crate::stages::{self, Point, StageId};

const POINTS: usize = Point::ALL.len();

/// Milestones of a sample with their times.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    at_ns: [Option<u64>; POINTS],
}

/// One gap of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Milestone at its begin.
    pub from: Point,
    /// Milestone at its end.
    pub to: Point,
    /// Begin, relative to the begin of the sample; may be negative when clocks disagree.
    pub start_ns: i64,
    /// Duration; negative when the milestones are out of order.
    pub duration_ns: i64,
    /// The stage; unattributed where no stage lies between the two.
    pub stage: StageId,
}

impl Default for Chain {
    fn default() -> Self {
        Chain { at_ns: [None; POINTS] }
    }
}

impl Chain {
    /// Adds a milestone.
    pub fn set(&mut self, point: Point, ts_ns: u64) {
        self.at_ns[point as usize] = Some(ts_ns);
    }

    /// Takes a milestone away.
    pub fn clear(&mut self, point: Point) {
        self.at_ns[point as usize] = None;
    }

    /// Time of a milestone.
    pub fn get(&self, point: Point) -> Option<u64> {
        self.at_ns[point as usize]
    }

    /// Was it seen?
    pub fn has(&self, point: Point) -> bool {
        self.get(point).is_some()
    }

    /// The milestones that were seen, in path order.
    pub fn points(&self) -> impl Iterator<Item = (Point, u64)> + '_ {
        Point::ALL.iter().filter_map(|point| self.get(*point).map(|ts| (*point, ts)))
    }

    /// The gaps between neighbours, in path order. Their durations add up to the sample's latency.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        let begin = self.get(Point::PostBegin).unwrap_or(0);
        self.points().zip(self.points().skip(1)).map(move |((from, from_ns), (to, to_ns))| Gap {
            from,
            to,
            start_ns: difference_ns(from_ns, begin),
            duration_ns: difference_ns(to_ns, from_ns),
            stage: stages::between(from, to),
        })
    }
}

/// `to - from`, at the end of its range where it is beyond (times in a damaged capture may be anything).
fn difference_ns(to_ns: u64, from_ns: u64) -> i64 {
    let difference = i128::from(to_ns) - i128::from(from_ns);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}
