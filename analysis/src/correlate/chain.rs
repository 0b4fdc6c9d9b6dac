//! The chain of one sample: the milestones that were seen, in path order, with their times.
//!
//! [`build`] starts from what the join found (the end CQE and the handler call) and walks outwards: back to the packet and the
//! post ([`super::forward`]), forward to the wake-up ([`super::wakeup`]). A milestone that was not seen is left out.
use super::flags::{Flag, Flags};
use super::identity::Identity;
use super::learned::Learned;
use super::window::{SLACK_NS, Window};
use super::{forward, wakeup};
use crate::capture::Sample;
use crate::stages::{self, Point};
use ebpf_probes::Kind;

const POINTS: usize = Point::ALL.len();

/// Milestones of a sample with their times.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    at_ns: [Option<u64>; POINTS],
}

/// One gap of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Milestone at its begin.
    pub from: Point,
    /// Milestone at its end.
    pub to: Point,
    /// Begin, relative to the begin of the sample; may be negative when clocks disagree.
    pub start_ns: i64,
    /// Duration; negative when the milestones are out of order.
    pub duration_ns: i64,
    /// The stage, or `None`: unattributed.
    pub stage: Option<usize>,
}

impl Default for Chain {
    fn default() -> Self {
        Chain { at_ns: [None; POINTS] }
    }
}

impl Chain {
    /// Adds a milestone.
    pub fn set(&mut self, point: Point, ts_ns: u64) {
        self.at_ns[point as usize] = Some(ts_ns);
    }

    /// Takes a milestone away.
    pub fn clear(&mut self, point: Point) {
        self.at_ns[point as usize] = None;
    }

    /// Time of a milestone.
    pub fn get(&self, point: Point) -> Option<u64> {
        self.at_ns[point as usize]
    }

    /// Was it seen?
    pub fn has(&self, point: Point) -> bool {
        self.get(point).is_some()
    }

    /// The milestones that were seen, in path order.
    pub fn points(&self) -> impl Iterator<Item = (Point, u64)> + '_ {
        Point::ALL.iter().filter_map(|point| self.get(*point).map(|ts| (*point, ts)))
    }

    /// The gaps between neighbours, in path order. Their durations add up to the sample's latency.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        let begin = self.get(Point::PostBegin).unwrap_or(0);
        self.points().zip(self.points().skip(1)).map(move |((from, from_ns), (to, to_ns))| Gap {
            from,
            to,
            start_ns: difference_ns(from_ns, begin),
            duration_ns: difference_ns(to_ns, from_ns),
            stage: stages::between(from, to),
        })
    }
}

/// `to - from`, at the end of its range where it is beyond (times in a damaged capture may be anything).
fn difference_ns(to_ns: u64, from_ns: u64) -> i64 {
    let difference = i128::from(to_ns) - i128::from(from_ns);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

/// The measured thread lost its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preemption {
    /// Thread that got the CPU.
    pub pid: u32,
    /// Its name, known where it was the one that left when the measured thread came back.
    pub comm: Option<[u8; 16]>,
    /// For how long; `None`: not back within the sample.
    pub away_ns: Option<u64>,
}

/// Who was in the way, for the verdict on a slow sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Culprit {
    /// Thread that left the CPU when the waiting thread got it (0 is the idle task), and its name.
    pub before: Option<(u32, [u8; 16])>,
    /// CPU that left an idle state between the wake-up and the switch.
    pub idle_exit_cpu: Option<u32>,
    /// Thread that took the CPU from the measured thread.
    pub preempted_by: Option<Preemption>,
    /// Interrupts on the measured thread's CPU while it was due or polling.
    pub irqs: u32,
    /// Softirqs on that CPU in the same time.
    pub softirqs: u32,
}

/// What is known of a sample after the join.
#[derive(Clone, Copy, Debug, Default)]
pub struct Joined {
    /// The milestones.
    pub chain: Chain,
    /// The flags.
    pub flags: Flags,
    /// Who was in the way.
    pub culprit: Culprit,
    /// The thread left its CPU in the blocking read and was switched in again for the event of this sample.
    pub slept: bool,
}

/// What the joins found of a sample; positions are into the window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// R6 of the end CQE (exact join only).
    pub cqe: Option<usize>,
    /// K5 of the event that ended the blocking read.
    pub handler: Option<usize>,
    /// The blocking read was ended by the event of an earlier CQE, and this one was found by the poll after it.
    pub earlier_event: bool,
}

/// Builds the chain.
pub fn build(window: &Window<'_>, sample: &Sample, identity: &Identity, learned: &Learned, found: Found) -> Joined {
    let cqe = found.cqe;
    let mut joined = Joined::default();
    let chain = &mut joined.chain;
    chain.set(Point::PostBegin, sample.post_begin_ns);
    chain.set(Point::Done, sample.done_ns);
    if let Some(cqe) = cqe {
        chain.set(Point::CqePosted, window.ts(cqe));
    }
    forward::post(&mut joined, window, sample, identity, cqe);
    forward::packet(&mut joined, window, sample, identity, cqe);
    let incomplete = wakeup::event(&mut joined, window, sample, identity, learned, found);
    wakeup::interference(&mut joined, window, sample, identity, cqe);
    post_end(&mut joined, sample, cqe.map(|at| window.ts(at)));
    let sent_early = sent_early(&joined.chain);
    if sent_early {
        joined.chain.clear(Point::PostEnter);
    }
    joined.flags.set_if(found.earlier_event, Flag::Spurious);
    general_flags(&mut joined, sample, identity);
    if incomplete || is_incomplete(&joined, window, sample, identity, Known { found, sent_early }) {
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

fn general_flags(joined: &mut Joined, sample: &Sample, identity: &Identity) {
    let flags = &mut joined.flags;
    flags.set_if(sample.empty_wakeups > 0, Flag::Spurious);
    flags.set_if(identity.realtime, Flag::Rt);
    flags.set_if(identity.stolen_rounds.contains(&sample.round), Flag::Guest);
    let cqe = joined.chain.get(Point::CqePosted);
    flags.set_if(sample.arm_ns > 0 && cqe.is_some_and(|ts| ts < sample.arm_ns), Flag::PreArm);
    flags.set_if(identity.event_mode && !joined.slept, Flag::NoSleep);
    flags.set_if(identity.event_mode && identity.depth > 1 && sample.wait_end_ns == 0, Flag::Batched);
    let tiny = joined.chain.gaps().any(|gap| gap.duration_ns < 0 && gap.duration_ns.unsigned_abs() <= SLACK_NS);
    flags.set_if(tiny || identity.clock_unsure, Flag::ClockUnsure);
}

/// A chain is incomplete when a milestone is missing that this path always has and that the probes could have recorded.
fn is_incomplete(joined: &Joined, window: &Window<'_>, sample: &Sample, identity: &Identity, known: Known) -> bool {
    let Known { found, sent_early } = known;
    let chain = &joined.chain;
    let missing = |point: Point, kind: Kind| !chain.has(point) && identity.records(kind);
    if window.overflowed(sample.post_begin_ns) {
        return true;
    }
    let rxe = identity.rxe
        && (!sent_early && missing(Point::PostEnter, Kind::RxePost)
            || missing(Point::Xmit, Kind::RxeXmit)
            || missing(Point::Rcv, Kind::RxeRcv)
            || (identity.has_cqe && missing(Point::CqePosted, Kind::CqPost)));
    // An event that was read after the CQE was written has a handler call; one that was slept for has the whole wake-up.
    let read_an_event = sample.wait_end_ns > 0 && !found.earlier_event && found.cqe.is_none_or(|at| window.ts(at) <= sample.wait_end_ns);
    let event = read_an_event && missing(Point::Handler, Kind::CompHandler);
    let wakeup = joined.slept
        && (missing(Point::Waking, Kind::SchedWaking)
            || missing(Point::Wakeup, Kind::SchedWakeup)
            || missing(Point::SwitchIn, Kind::SchedSwitch));
    rxe || event || wakeup || wakeup::switched_out_without_return(window, sample, identity)
}
