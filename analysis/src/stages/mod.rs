//! The stages as data: the milestones of a sample in path order, and the stage that lies between two of them.
//!
//! A sample's chain is the milestones that were seen. The gap between two neighbours in the chain is exactly one stage, found in
//! [`STAGES`] by the pair; a pair that the table does not have is unattributed. docs/stages.md shows this table; a test compares.
mod advice;
mod id;
mod milestones;
mod per_stage;
mod place;
mod table;

pub use advice::Advice;
pub use id::StageId;
pub use milestones::Point;
pub use per_stage::PerStage;
pub use place::Place;
pub use table::{STAGES, Stage};

use std::fmt;

impl StageId {
    /// All of them in path order.
    pub fn all() -> impl DoubleEndedIterator<Item = StageId> + ExactSizeIterator + Clone {
        STAGES.iter().map(|row| row.id)
    }

    /// Its row in the table.
    pub fn row(self) -> &'static Stage {
        &STAGES[self as usize]
    }

    /// Its name, as in every output.
    pub fn name(self) -> &'static str {
        self.row().name
    }
}

impl fmt::Display for StageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl serde::Serialize for StageId {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// The stage between two neighbours of a chain.
pub fn between(from: Point, to: Point) -> StageId {
    LOOKUP[from as usize][to as usize]
}

const POINTS: usize = Point::Done as usize + 1;

static LOOKUP: [[StageId; POINTS]; POINTS] = {
    let mut table = [[StageId::Unattributed; POINTS]; POINTS];
    let mut stage = 0;
    while stage < STAGES.len() {
        let pairs = STAGES[stage].between;
        let mut pair = 0;
        while pair < pairs.len() {
            let (from, to) = pairs[pair];
            assert!((from as u8) < (to as u8), "a stage runs forward");
            assert!(matches!(table[from as usize][to as usize], StageId::Unattributed), "two stages claim the same pair");
            table[from as usize][to as usize] = STAGES[stage].id;
            pair += 1;
        }
        stage += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_the_lookup_finds_every_pair() {
        for stage in STAGES {
            assert!(STAGES.iter().filter(|other| other.name == stage.name).count() == 1, "{} twice", stage.name);
            for (from, to) in stage.between {
                assert_eq!(between(*from, *to), stage.id);
            }
        }
        assert_eq!(between(Point::PostBegin, Point::Done), StageId::Unattributed);
    }

    #[test]
    fn every_stage_has_its_own_colour() {
        for (at, stage) in STAGES.iter().enumerate() {
            for other in &STAGES[at + 1..] {
                assert_ne!(stage.colour, other.colour, "{} and {}", stage.name, other.name);
            }
        }
    }
}
