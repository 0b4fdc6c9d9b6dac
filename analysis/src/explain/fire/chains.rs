//! The samples that slept: which steps of the path each of them has.
use crate::explain::model::{Chains, Step, StepSeen};
use crate::join::flags::Flag;
use crate::join::joined::Joined;
use crate::stages::Point;
use capture::CompletionShape;

/// Up to here the steps can belong to an earlier completion: an interrupt that goes on, a poll that is running, an event that was owed.
const BEFORE_THE_HANDLER: [Step; 3] = [Step::Interrupt, Step::Request, Step::BottomHalf];
/// Where a chain breaks: the join finds the steps before the handler through it, through the callback and through the request, and those
/// after it through the waking. So the first of these that is missing is the cause of the others.
const FOUND_THROUGH: [Step; 8] =
    [Step::Handler, Step::Callback, Step::Request, Step::BottomHalf, Step::Interrupt, Step::Waking, Step::Wakeup, Step::Switch];

/// What is known of all samples.
#[derive(Clone, Debug, Default)]
pub(super) struct Collected {
    samples: u64,
    slept: Vec<Slept>,
}

/// A sample that slept.
#[derive(Clone, Copy, Debug)]
struct Slept {
    /// One bit per step.
    steps: u8,
    /// A flag says that an earlier completion's interrupt or poll served it, and no record is missing.
    shared: bool,
}

impl Slept {
    fn lacks(self, step: Step) -> bool {
        self.steps & bit(step) == 0
    }

    /// Nothing is missing but what came before the sample.
    fn is_earlier(self, path: &[Step]) -> bool {
        let mut missing = path.iter().filter(|step| self.lacks(**step)).peekable();
        self.shared && missing.peek().is_some() && missing.all(|step| BEFORE_THE_HANDLER.contains(step))
    }
}

impl Collected {
    /// Takes a joined sample.
    pub(super) fn add(&mut self, joined: &Joined) {
        self.samples += 1;
        if !joined.slept {
            return;
        }
        let seen = |step: Step| match point(step) {
            Some(Point::CompIrq) => joined.chain.has(Point::CompIrq) && !joined.own_handler_for_interrupt,
            Some(point) => joined.chain.has(point),
            None => joined.callback,
        };
        let steps = Step::ALL.iter().filter(|step| seen(**step)).map(|step| bit(*step)).sum();
        let shared = [Flag::IrqShared, Flag::NapiPolled, Flag::Spurious].iter().any(|flag| joined.flags.has(*flag));
        // The driver's own handler began within the sample, so the interrupt did too: its record is missing.
        let is_missing = joined.flags.has(Flag::Lost) || joined.own_handler_for_interrupt;
        self.slept.push(Slept { steps, shared: shared && !is_missing });
    }

    /// The steps that completions of this shape have. `callback`: a hook on the driver's callback is attached.
    pub(super) fn path(&self, shape: Option<CompletionShape>, callback: bool) -> Vec<Step> {
        // Whether a driver of this shape uses work items is the kernel's matter: its samples tell.
        let by_work = || self.slept.iter().any(|slept| !slept.lacks(Step::BottomHalf));
        let before: &[Step] = match shape {
            None | Some(CompletionShape::Anywhere) => &[],
            Some(CompletionShape::TaskletPerCq) => &BEFORE_THE_HANDLER,
            Some(CompletionShape::Tasklet | CompletionShape::Napi) => &[Step::Interrupt, Step::BottomHalf],
            Some(CompletionShape::Work) if by_work() => &BEFORE_THE_HANDLER,
            Some(CompletionShape::Work | CompletionShape::Direct) => &[Step::Interrupt],
        };
        let called = shape == Some(CompletionShape::TaskletPerCq) || (callback && !before.is_empty());
        let after = [Step::Handler, Step::Waking, Step::Wakeup, Step::Switch];
        before.iter().copied().chain(called.then_some(Step::Callback)).chain(after).collect()
    }

    /// The counts over the samples that slept.
    pub(super) fn chains(&self, path: &[Step]) -> Chains {
        let (earlier, judged): (Vec<Slept>, Vec<Slept>) = self.slept.iter().partition(|slept| slept.is_earlier(path));
        let missing = |step: Step| judged.iter().filter(|slept| slept.lacks(step)).count() as u64;
        let steps = Step::ALL.iter().map(|step| StepSeen { step: *step, missing: path.contains(step).then(|| missing(*step)) });
        Chains {
            samples: self.samples,
            slept: self.slept.len() as u64,
            earlier: earlier.len() as u64,
            complete: judged.iter().filter(|slept| !path.iter().any(|step| slept.lacks(*step))).count() as u64,
            steps: steps.collect(),
        }
    }

    /// The step at which most chains break, and how many; `None`: all are whole.
    pub(super) fn breaks(&self, path: &[Step]) -> Option<(Step, u64)> {
        let judged = || self.slept.iter().filter(|slept| !slept.is_earlier(path));
        let cause = |slept: &Slept| FOUND_THROUGH.into_iter().find(|step| path.contains(step) && slept.lacks(*step));
        let counts = path.iter().map(|step| (*step, judged().filter(|slept| cause(slept) == Some(*step)).count() as u64));
        counts.filter(|(_, broken)| *broken > 0).max_by_key(|(_, broken)| *broken)
    }
}

fn bit(step: Step) -> u8 {
    1 << step as u8
}

/// The milestone of a step; the callback has none.
fn point(step: Step) -> Option<Point> {
    Some(match step {
        Step::Interrupt => Point::CompIrq,
        Step::Request => Point::DriverEnqueue,
        Step::BottomHalf => Point::BottomHalf,
        Step::Callback => return None,
        Step::Handler => Point::Handler,
        Step::Waking => Point::Waking,
        Step::Wakeup => Point::Wakeup,
        Step::Switch => Point::SwitchIn,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(missing: &[Step], flags: &[Flag]) -> Joined {
        let mut joined = Joined { slept: true, callback: !missing.contains(&Step::Callback), ..Joined::default() };
        for step in Step::ALL.iter().filter(|step| !missing.contains(step)) {
            if let Some(point) = point(*step) {
                joined.chain.set(point, 1 + u64::from(bit(*step)));
            }
        }
        flags.iter().for_each(|flag| joined.flags.set(*flag));
        joined
    }

    fn collected(samples: &[Joined]) -> Collected {
        let mut collected = Collected::default();
        samples.iter().for_each(|joined| collected.add(joined));
        collected
    }

    #[test]
    fn a_shape_has_its_steps() {
        use CompletionShape::*;
        use Step::*;
        let none = collected(&[joined(&[Request, BottomHalf], &[])]);
        let after = [Handler, Waking, Wakeup, Switch];
        let with = |before: &[Step]| [before, &after].concat();
        assert_eq!(none.path(Some(Anywhere), true), after);
        assert_eq!(none.path(None, true), after);
        assert_eq!(none.path(Some(Direct), false), with(&[Interrupt]));
        assert_eq!(none.path(Some(Direct), true), with(&[Interrupt, Callback]));
        assert_eq!(none.path(Some(Tasklet), false), with(&[Interrupt, BottomHalf]));
        assert_eq!(none.path(Some(Napi), false), with(&[Interrupt, BottomHalf]));
        // Without its callback the path of such a driver is not known, so it is asked for also where no hook gives it.
        assert_eq!(none.path(Some(TaskletPerCq), false), with(&[Interrupt, Request, BottomHalf, Callback]));
        assert_eq!(none.path(Some(Work), false), with(&[Interrupt]));
        assert_eq!(collected(&[joined(&[], &[])]).path(Some(Work), false), with(&[Interrupt, Request, BottomHalf]));
    }

    #[test]
    fn what_came_before_the_sample_is_neither_whole_nor_broken() {
        let path = Step::ALL;
        let samples = [
            joined(&[], &[]),
            joined(&[], &[Flag::IrqShared]),
            joined(&[Step::Interrupt], &[Flag::IrqShared]),
            joined(&[Step::Interrupt, Step::Request], &[Flag::Spurious]),
            // Nothing explains these.
            joined(&[Step::Interrupt], &[]),
            joined(&[Step::Interrupt], &[Flag::IrqShared, Flag::Lost]),
            joined(&[Step::Interrupt, Step::Wakeup], &[Flag::IrqShared]),
            Joined::default(),
        ];
        let chains = collected(&samples).chains(path);
        assert_eq!((chains.samples, chains.slept, chains.earlier, chains.complete), (8, 7, 2, 2));
        let missing = |step: Step| chains.steps.iter().find(|seen| seen.step == step).and_then(|seen| seen.missing);
        assert_eq!((missing(Step::Interrupt), missing(Step::Wakeup), missing(Step::Callback)), (Some(3), Some(1), Some(0)));
    }

    #[test]
    fn a_chain_breaks_at_the_step_through_which_the_others_are_found() {
        let path = Step::ALL;
        assert_eq!(collected(&[joined(&[], &[])]).breaks(path), None);
        for (missing, cause) in [
            (&[Step::Interrupt, Step::Request, Step::BottomHalf, Step::Callback, Step::Handler, Step::Waking][..], Step::Handler),
            (&[Step::Interrupt, Step::Request, Step::BottomHalf, Step::Callback], Step::Callback),
            (&[Step::Interrupt, Step::Request], Step::Request),
            (&[Step::Waking, Step::Wakeup, Step::Switch], Step::Waking),
        ] {
            let samples = [joined(missing, &[]), joined(missing, &[]), joined(&[Step::Interrupt], &[])];
            assert_eq!(collected(&samples).breaks(path), Some((cause, 2)), "{missing:?}");
        }
    }
}
