//! Which stage of a sample grew.
use crate::join::chain::Chain;
use crate::stages::{PerStage, Point, StageId};

/// How long each stage of a chain took; a stage in several parts is added up, a negative part is left out, an absent one is `None`.
pub fn durations(chain: &Chain) -> PerStage<Option<u64>> {
    let mut sums: PerStage<Option<u64>> = PerStage::default();
    for gap in chain.gaps() {
        if let Ok(duration) = u64::try_from(gap.duration_ns) {
            let sum = &mut sums[gap.stage];
            *sum = Some(sum.unwrap_or(0).saturating_add(duration));
        }
    }
    sums
}

/// The stage where the time of a sample went: the one that grew most over its median, and by how much. A stage without a median is too
/// rare to have one: all of it is growth. `None` when nothing of the chain is known.
pub fn culprit_stage(durations: &PerStage<Option<u64>>, medians: &PerStage<Option<u64>>) -> Option<(StageId, i64)> {
    let growth = |(stage, duration): (StageId, &Option<u64>)| {
        let grown = i128::from((*duration)?) - i128::from(medians[stage].unwrap_or(0));
        Some((stage, i64::try_from(grown).unwrap_or(i64::MAX)))
    };
    // The first of equals: what came later along the path is more likely a consequence.
    durations.iter().filter_map(growth).rev().max_by_key(|(_, grown)| *grown)
}

/// The stage that a cause is asked for.
#[derive(Clone, Debug)]
pub(super) struct Grown {
    /// Which one.
    pub stage: StageId,
    /// By how much it is longer than its median.
    pub growth_ns: u64,
    /// Its duration.
    pub duration_ns: u64,
    /// Where it lies: (from, to) on the clock, and the milestone at its end.
    pub parts: Vec<(u64, u64, Point)>,
}
