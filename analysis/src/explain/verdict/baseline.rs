//! What a single sample is held against.
use crate::explain::interference::{Names, OverlayTotals, RESTS_ON};
use crate::join::facts::RunFacts;
use crate::stages::PerStage;

/// What verdicts are given against: the medians of the run, and what is known by name.
#[derive(Clone, Copy)]
pub struct Baseline<'a> {
    /// Medians of the stages; `None`: too few samples have that stage.
    pub medians: &'a PerStage<Option<u64>>,
    /// Threads and interrupts.
    pub names: &'a Names,
    /// What the run's samples usually lose.
    pub totals: &'a OverlayTotals,
    /// What could be recorded.
    pub facts: &'a RunFacts,
}

impl Baseline<'_> {
    /// What would show a cause, and was not recorded in this run.
    pub(super) fn not_seen(&self) -> Vec<&'static str> {
        RESTS_ON.iter().filter(|(kind, _)| !self.facts.records(*kind)).map(|(_, what)| *what).collect()
    }
}
