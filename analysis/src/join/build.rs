//! From what the joins found of a sample (its end CQE and its handler call) to its chain: outwards, back to the packet and the post
//! ([`super::rxe`]), forward to the wake-up ([`super::wakeup`]). A milestone that was not seen is left out.
use super::chain::Chain;
use super::facts::RunFacts;
use super::flags::Flag;
use super::joined::{Found, Joined};
use super::learned::Learned;
use super::window::{SLACK_NS, Window};
use super::{preemption, rxe, wakeup};
use crate::stages::Point;
use capture::Sample;
use ebpf_probes::Kind;

/// Builds the chain.
pub fn build(window: &Window<'_>, sample: &Sample, facts: &RunFacts, learned: &Learned, found: Found) -> Joined {
    let cqe = found.cqe;
    let mut joined = Joined::default();
    let chain = &mut joined.chain;
    chain.set(Point::PostBegin, sample.post_begin_ns);
    chain.set(Point::Done, sample.done_ns);
    if let Some(cqe) = cqe {
        chain.set(Point::CqePosted, window.ts(cqe));
    }
    rxe::post(&mut joined, window, sample, facts, cqe);
    rxe::packet(&mut joined, window, sample, facts, cqe);
    let incomplete = wakeup::event(&mut joined, window, sample, facts, learned, found);
    preemption::of_reader(&mut joined, window, sample, facts, cqe);
    post_end(&mut joined, sample, cqe.map(|at| window.ts(at)));
    let sent_early = sent_early(&joined.chain);
    if sent_early {
        joined.chain.clear(Point::PostEnter);
    }
    joined.flags.set_if(found.earlier_event, Flag::Spurious);
    general_flags(&mut joined, sample, facts);
    if incomplete || is_incomplete(&joined, window, sample, facts, Known { found, sent_early }) {
        joined.flags.set(Flag::Lost);
    }
    joined
}

/// What the completeness of a chain depends on besides its milestones.
struct Known {
    found: Found,
    sent_early: bool,
}

/// The request was on its way before rxe's post function was entered.
fn sent_early(chain: &Chain) -> bool {
    chain.get(Point::PostEnter).zip(chain.get(Point::Xmit)).is_some_and(|(entered, sent)| sent < entered)
}

/// The end of the post is a milestone where nothing of the kernel is seen before it, or where the CQE was there before it.
fn post_end(joined: &mut Joined, sample: &Sample, cqe_ns: Option<u64>) {
    let chain = &mut joined.chain;
    if cqe_ns.is_some_and(|ts| ts < sample.post_end_ns) {
        joined.flags.set(Flag::Inline);
        if !chain.has(Point::Handler) && sample.post_end_ns <= sample.done_ns {
            chain.set(Point::PostReturn, sample.post_end_ns);
        }
        return;
    }
    let Some((_, ts)) = chain.points().nth(1).filter(|(point, _)| *point > Point::HwCqe && *point != Point::CqePosted) else { return };
    if ts >= sample.post_end_ns {
        chain.set(Point::PostEnd, sample.post_end_ns);
    } else {
        joined.flags.set(Flag::Inline);
    }
}

fn general_flags(joined: &mut Joined, sample: &Sample, facts: &RunFacts) {
    let flags = &mut joined.flags;
    flags.set_if(sample.empty_wakeups > 0, Flag::Spurious);
    flags.set_if(facts.realtime, Flag::Rt);
    flags.set_if(facts.stolen_rounds.contains(&sample.round), Flag::Guest);
    let cqe = joined.chain.get(Point::CqePosted);
    flags.set_if(sample.arm_ns > 0 && cqe.is_some_and(|ts| ts < sample.arm_ns), Flag::PreArm);
    flags.set_if(facts.may_sleep && !joined.slept, Flag::NoSleep);
    flags.set_if(facts.may_sleep && facts.depth > 1 && sample.wait_end_ns == 0, Flag::Batched);
    let tiny = joined.chain.gaps().any(|gap| gap.duration_ns < 0 && gap.duration_ns.unsigned_abs() <= SLACK_NS);
    flags.set_if(tiny || facts.clock_unsure, Flag::ClockUnsure);
}

/// A chain is incomplete when a milestone is missing that this path always has and that the probes could have recorded.
fn is_incomplete(joined: &Joined, window: &Window<'_>, sample: &Sample, facts: &RunFacts, known: Known) -> bool {
    let Known { found, sent_early } = known;
    let chain = &joined.chain;
    let missing = |point: Point, kind: Kind| !chain.has(point) && facts.records(kind);
    if window.overflowed(sample.post_begin_ns) {
        return true;
    }
    let rxe = facts.rxe
        && (!sent_early && missing(Point::PostEnter, Kind::RxePost)
            || missing(Point::Xmit, Kind::RxeXmit)
            || missing(Point::Rcv, Kind::RxeRcv)
            || (facts.has_cqe && missing(Point::CqePosted, Kind::CqPost)));
    // An event that was read after the CQE was written has a handler call; one that was slept for has the whole wake-up.
    let read_an_event = sample.wait_end_ns > 0 && !found.earlier_event && found.cqe.is_none_or(|at| window.ts(at) <= sample.wait_end_ns);
    let event = read_an_event && missing(Point::Handler, Kind::CompHandler);
    let wakeup = joined.slept
        && (missing(Point::Waking, Kind::SchedWaking)
            || missing(Point::Wakeup, Kind::SchedWakeup)
            || missing(Point::SwitchIn, Kind::SchedSwitch));
    rxe || event || wakeup || preemption::is_return_lost(window, sample, facts)
}
