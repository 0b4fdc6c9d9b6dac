//! A value for every stage.
use super::{STAGES, StageId};
use std::array;
use std::ops::{Index, IndexMut};

/// A value for every stage, the unattributed time included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerStage<T>([T; StageId::COUNT]);

impl<T> PerStage<T> {
    /// Makes each from its stage.
    pub fn from_fn(mut make: impl FnMut(StageId) -> T) -> PerStage<T> {
        PerStage(array::from_fn(|at| make(STAGES[at].id)))
    }

    /// Stages with their values, in path order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (StageId, &T)> {
        StageId::all().zip(&self.0)
    }
}

impl<T: Default> Default for PerStage<T> {
    fn default() -> PerStage<T> {
        PerStage::from_fn(|_| T::default())
    }
}

impl<T> Index<StageId> for PerStage<T> {
    type Output = T;
    fn index(&self, stage: StageId) -> &T {
        &self.0[stage as usize]
    }
}

impl<T> IndexMut<StageId> for PerStage<T> {
    fn index_mut(&mut self, stage: StageId) -> &mut T {
        &mut self.0[stage as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_its_own_value() {
        let mut values = PerStage::from_fn(|stage| stage as usize);
        values[StageId::Detect] += 1000;
        assert!(values.iter().all(|(stage, value)| *value == stage as usize + if stage == StageId::Detect { 1000 } else { 0 }));
        assert_eq!(values.iter().next_back().map(|(stage, _)| stage), Some(StageId::Unattributed));
    }
}
