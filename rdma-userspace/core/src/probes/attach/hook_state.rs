//! What became of a hook of the plan, and its row in a manifest.

use capture::manifest::PlanRow;

use crate::probes::plan::PlannedHook;

/// A hook of the plan and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookState {
    /// The plan's row; its reason is replaced when loading or attaching failed, and its symbol is then `None`.
    pub planned: PlannedHook,
    /// Attached at the last [`super::Probes::attach`].
    pub attached: bool,
    /// Times the program ran since it was loaded.
    pub hits: u64,
}

impl HookState {
    /// Its row in a manifest, with whether it was attached while recording and the hits of that time. An absent hook has no hits.
    pub fn row(&self, attached: bool, hits: u64) -> PlanRow {
        let planned = &self.planned;
        PlanRow {
            hook: planned.hook.to_owned(),
            kind: planned.kind.name().to_owned(),
            symbol: planned.symbol.clone(),
            program: planned.program.symbol().to_owned(),
            gives: planned.gives.iter().map(|kind| kind.name().to_owned()).collect(),
            reason: planned.reason.clone(),
            attached,
            hits: planned.symbol.as_ref().map(|_| hits),
            silence: planned.silence.map(str::to_owned),
        }
    }
}
