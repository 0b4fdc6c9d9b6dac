//! How often a hook must fire, by the kinds of records that it gives: from the shape of the driver and the samples that slept.
use crate::explain::model::{Chains, Expected, Step};
use capture::CompletionShape;
use ebpf_probes::Kind;

/// What the samples ask of the hooks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Must {
    shape: Option<CompletionShape>,
    /// rxe's own functions are hooked.
    rxe: bool,
    /// The driver's completions pass work items.
    work: bool,
    /// Traced samples: each is at least one post, one packet and one CQE.
    samples: u64,
    /// Samples that slept: each is at least one handler, one waking, one wakeup, one switch, one read of an event.
    slept: u64,
    /// Those whose whole path lies within them: each is at least one interrupt, one bottom half.
    whole_path: u64,
}

impl Must {
    /// Of these chains.
    pub(super) fn of(chains: &Chains, path: &[Step], shape: Option<CompletionShape>, rxe: bool) -> Must {
        Must {
            shape,
            rxe,
            work: shape == Some(CompletionShape::Work) && path.contains(&Step::BottomHalf),
            samples: chains.samples,
            slept: chains.slept,
            whole_path: chains.judged(),
        }
    }

    /// How often a hook must have fired that gives these kinds.
    pub(super) fn of_kinds<'k>(self, kinds: impl Iterator<Item = &'k str>) -> Expected {
        let known = kinds.filter_map(|name| Kind::ALL.iter().find(|kind| kind.name() == name));
        known.map(|kind| self.of_kind(*kind)).reduce(larger).unwrap_or(Expected::Untold)
    }

    fn of_kind(self, kind: Kind) -> Expected {
        use CompletionShape::{Anywhere, Napi, Tasklet, TaskletPerCq};
        let shape = self.shape;
        let path = |is_there: bool| if is_there { at_least(self.whole_path) } else { Expected::Untold };
        match kind {
            Kind::CompHandler | Kind::SchedWaking | Kind::SchedWakeup | Kind::SchedSwitch | Kind::EventRead => at_least(self.slept),
            Kind::IrqEntry | Kind::IrqExit | Kind::DriverIrq | Kind::DriverEnqueue | Kind::DriverComp => match shape {
                Some(Anywhere) => Expected::NotInPath,
                shape => path(shape.is_some()),
            },
            Kind::TaskletEntry => path(matches!(shape, Some(Tasklet | TaskletPerCq))),
            Kind::DriverBottomHalf | Kind::SoftirqEntry | Kind::SoftirqExit => path(matches!(shape, Some(Tasklet | TaskletPerCq | Napi))),
            Kind::WorkQueue | Kind::WorkStart => path(self.work),
            Kind::RxePost | Kind::RxeXmit | Kind::RxeRcv | Kind::RxeTask | Kind::CqPost if self.rxe => at_least(self.samples),
            _ => Expected::Untold,
        }
    }
}

/// Where nothing asks for it, nothing can be told.
fn at_least(times: u64) -> Expected {
    if times > 0 { Expected::AtLeast(times) } else { Expected::Untold }
}

fn larger(a: Expected, b: Expected) -> Expected {
    match (a, b) {
        (Expected::AtLeast(a), Expected::AtLeast(b)) => Expected::AtLeast(a.max(b)),
        (Expected::AtLeast(_), _) | (_, Expected::Untold) => a,
        _ => b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hook_must_do_follows_from_the_shape() {
        let chains = Chains { samples: 10, slept: 8, earlier: 1, complete: 7, steps: Vec::new() };
        let must = |shape, path: &[Step], rxe| Must::of(&chains, path, shape, rxe);
        let (mlx5, rxe) = (Some(CompletionShape::TaskletPerCq), Some(CompletionShape::Anywhere));
        let direct = Some(CompletionShape::Direct);
        for (must, kind, expected) in [
            (must(mlx5, &[], false), Kind::CompHandler, Expected::AtLeast(8)),
            (must(mlx5, &[], false), Kind::IrqEntry, Expected::AtLeast(7)),
            (must(mlx5, &[], false), Kind::TaskletEntry, Expected::AtLeast(7)),
            (must(mlx5, &[], false), Kind::CqPost, Expected::Untold),
            (must(mlx5, &[], false), Kind::PageFault, Expected::Untold),
            (must(direct, &[], false), Kind::TaskletEntry, Expected::Untold),
            (must(direct, &[], false), Kind::DriverIrq, Expected::AtLeast(7)),
            (must(rxe, &[], true), Kind::IrqEntry, Expected::NotInPath),
            (must(rxe, &[], true), Kind::CqPost, Expected::AtLeast(10)),
            (must(rxe, &[], true), Kind::SchedSwitch, Expected::AtLeast(8)),
            (must(Some(CompletionShape::Work), &[Step::BottomHalf], false), Kind::WorkStart, Expected::AtLeast(7)),
            (must(Some(CompletionShape::Work), &[Step::Interrupt], false), Kind::WorkStart, Expected::Untold),
            (must(None, &[], false), Kind::IrqEntry, Expected::Untold),
        ] {
            assert_eq!(must.of_kinds([kind.name()].into_iter()), expected, "{} of {must:?}", kind.name());
        }
        let mlx5 = must(mlx5, &[], false);
        assert_eq!(mlx5.of_kinds([].into_iter()), Expected::Untold);
        assert_eq!(mlx5.of_kinds(["page_fault", "irq_entry", "comp_handler"].into_iter()), Expected::AtLeast(8));
        let none = Must::of(&Chains { slept: 0, earlier: 0, ..chains }, &[], Some(CompletionShape::Direct), false);
        assert_eq!(none.of_kinds(["comp_handler"].into_iter()), Expected::Untold);
    }
}
