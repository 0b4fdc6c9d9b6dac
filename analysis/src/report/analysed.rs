//! What comparing and naming start from: a run's report, and the latencies behind it.
use super::model::RunReport;
use crate::stats::bootstrap::Rounds;
use std::collections::BTreeMap;

/// A run's report and the latencies that comparisons need.
pub struct Analysed {
    /// The finished numbers.
    pub report: RunReport,
    /// Latencies of the untraced rounds, by round.
    pub(super) untraced: BTreeMap<u32, Vec<u64>>,
}

impl Analysed {
    /// The untraced rounds, for a bootstrap.
    pub fn untraced_rounds(&self) -> Rounds {
        Rounds::new(self.untraced.values().map(Vec::as_slice))
    }
}
