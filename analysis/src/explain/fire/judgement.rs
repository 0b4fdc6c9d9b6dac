//! What the hits of a hook say, held against how often it must have fired.
use super::expected::Must;
use super::gives;
use crate::explain::model::{AbsentHook, Expected, HookFired, Judgement, Step};
use crate::explain::silent::traced_hits;
use capture::manifest::PlanRow;
use capture::{CompletionShape, Manifest};
use ebpf_probes::Kind;

/// Kinds that come from one of two hooks: a packet takes one way or the other.
const EITHER_WAY: [Kind; 1] = [Kind::RxeXmit];
/// Of a hook on interrupts where no interrupt is in the path, and the plan does not say so itself.
const NO_INTERRUPT: &str = "this device's completions raise no interrupt";

/// The rows of a plan, and what is asked of them.
pub(super) struct Rows<'a> {
    pub manifest: &'a Manifest,
    pub must: Must,
}

impl Rows<'_> {
    /// One row.
    pub(super) fn judge(&self, row: &PlanRow) -> HookFired {
        let expected = self.expected(row);
        let hits = row.symbol.as_ref().and_then(|_| traced_hits(self.manifest, row));
        let judgement = match hits {
            _ if row.symbol.is_none() || !row.attached => Judgement::Absent(without_paths(&row.reason)),
            None => Judgement::NotCounted,
            Some(hits) => self.of_hits(row, expected, hits),
        };
        HookFired { hook: row.hook.clone(), kind: row.kind.clone(), symbol: row.symbol.clone(), hits, expected, judgement }
    }

    /// A hook without records of its own is on the entry of a function whose return has some, or nothing can be asked of it.
    fn expected(&self, row: &PlanRow) -> Expected {
        let of = |row: &PlanRow| self.must.of_kinds(row.gives.iter().map(String::as_str));
        let twin =
            || self.manifest.plan.iter().find(|other| other.symbol.is_some() && other.symbol == row.symbol && !other.gives.is_empty());
        match row.gives.as_slice() {
            [] => twin().map_or(Expected::Untold, of),
            _ => of(row),
        }
    }

    fn of_hits(&self, row: &PlanRow, expected: Expected, hits: u64) -> Judgement {
        let by_design = || match (&row.silence, expected) {
            (Some(silence), _) => Judgement::SilentByDesign(silence.clone()),
            (None, Expected::NotInPath) => Judgement::SilentByDesign(NO_INTERRUPT.to_owned()),
            (None, _) => Judgement::NotSeen,
        };
        match expected {
            Expected::AtLeast(times) if hits >= times => Judgement::AsExpected,
            Expected::AtLeast(times) => match self.other_way(row, times - hits) {
                Some(other) => Judgement::OtherFired(other),
                None if hits == 0 => Judgement::Silent,
                None => Judgement::Fewer(times - hits),
            },
            Expected::Untold | Expected::NotInPath if hits > 0 => Judgement::Fired,
            Expected::Untold | Expected::NotInPath => by_design(),
        }
    }

    /// The other hook of a pair, where it fired as often as this one lacks.
    fn other_way(&self, row: &PlanRow, lacking: u64) -> Option<String> {
        let mut others = self.manifest.plan.iter().filter(|other| other.attached && other.hook != row.hook && gives(other, &EITHER_WAY));
        let fired = |other: &&PlanRow| traced_hits(self.manifest, other).is_some_and(|hits| hits >= lacking);
        gives(row, &EITHER_WAY).then(|| others.find(fired)).flatten().map(|other| other.hook.clone())
    }
}

/// The rows of a plan that would have given a step, with why they are not there; those of drivers that are not there either left out.
pub(super) fn absent_hooks(manifest: &Manifest, step: Step, shape: Option<CompletionShape>) -> Vec<AbsentHook> {
    let work = [Kind::WorkQueue, Kind::WorkStart];
    let kinds: Vec<Kind> =
        step.kinds().iter().copied().filter(|kind| work.contains(kind) == (shape == Some(CompletionShape::Work))).collect();
    let kinds = if kinds.is_empty() { step.kinds() } else { &kinds };
    let rows = manifest.plan.iter().filter(|row| !row.attached && gives(row, kinds) && row.unasked().is_none());
    rows.map(|row| AbsentHook { hook: row.hook.clone(), why: without_paths(&row.reason) }).collect()
}

/// A reason without the files that it may name: it is shown to strangers.
fn without_paths(reason: &str) -> String {
    let is_path = |word: &str| word.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '/').starts_with('/') || word.contains("=/");
    let words = reason.split(' ').map(|word| if is_path(word) { "(a file)" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_no_file() {
        assert_eq!(without_paths("no function `a`; no `b`"), "no function `a`; no `b`");
        assert_eq!(
            without_paths("cannot open `/no/such/file`: it is gone (/etc/x) path=/y"),
            "cannot open (a file) it is gone (a file) (a file)"
        );
    }
}
