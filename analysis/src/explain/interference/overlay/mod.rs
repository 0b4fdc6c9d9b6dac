//! The overlay of one sample: a sweep over its events with a stack of what is open.
//!
//! Time flows to what was begun last and is not over. So durations are net of what is nested in them, and their sum cannot be more
//! than the sample. A begin whose end is missing keeps no time at all: how long it took is not known.
use super::{Overlay, Taken, What};
use capture::Sample;
use ebpf_probes::{Body, Event, Switch};

/// What is open, as it is seen at its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Irq(u32),
    Tick,
    Softirq(u32),
    /// Off the CPU: who got it, which CPU, whether the thread still wanted to run.
    Off {
        by: u32,
        cpu: u32,
        wanted: bool,
    },
    /// The sleep of a blocking read: nothing was taken.
    Sleep,
}

impl Begun {
    fn is_hard(self) -> bool {
        matches!(self, Begun::Irq(_) | Begun::Tick)
    }

    fn is_away(self) -> bool {
        matches!(self, Begun::Off { .. } | Begun::Sleep)
    }

    /// As it is told when nothing more is known than its begin.
    fn told(self) -> Option<What> {
        match self {
            Begun::Irq(irq) => Some(What::Irq(irq)),
            Begun::Tick => Some(What::Tick),
            Begun::Softirq(vec) => Some(What::Softirq(vec)),
            Begun::Off { by, wanted: true, .. } => Some(What::Preempted { by, last: by }),
            Begun::Off { wanted: false, .. } => Some(What::Blocked),
            Begun::Sleep => None,
        }
    }
}

struct Open {
    begun: Begun,
    start_ns: u64,
    net_ns: u64,
    /// Threads that had the CPU before the present one, while the measured thread was off it.
    before: Vec<Taken>,
}

struct Sweep {
    now_ns: u64,
    open: Vec<Open>,
    overlay: Overlay,
}

impl Sweep {
    fn advance(&mut self, ts_ns: u64) {
        let passed = ts_ns.saturating_sub(self.now_ns);
        if let Some(top) = self.open.last_mut() {
            top.net_ns += passed;
        }
        self.now_ns = self.now_ns.max(ts_ns);
    }

    fn begin(&mut self, begun: Begun) {
        self.open.push(Open { begun, start_ns: self.now_ns, net_ns: 0, before: Vec::new() });
    }

    /// What is open from this position on has ended unseen.
    fn lose_from(&mut self, at: usize) {
        for open in self.open.drain(at..) {
            for part in open.before {
                self.overlay.taken_ns += part.duration_ns.unwrap_or(0);
                self.overlay.items.push(part);
            }
            if let Some(what) = open.begun.told() {
                self.overlay.unknown += 1;
                self.overlay.items.push(Taken { what, start_ns: open.start_ns, duration_ns: None });
            }
        }
    }

    fn lose(&mut self, is_over: impl Fn(Begun) -> bool) {
        if let Some(at) = self.open.iter().position(|open| is_over(open.begun)) {
            self.lose_from(at);
        }
    }

    /// Ends the innermost one that fits, with a name that may know more than its begin. An end without a begin is left out.
    fn end(&mut self, fits: impl Fn(Begun) -> bool, name: impl Fn(Begun) -> Option<What>) {
        let Some(at) = self.open.iter().rposition(|open| fits(open.begun)) else { return };
        self.lose_from(at + 1);
        let Some(mut open) = self.open.pop() else { return };
        let Some(mut what) = name(open.begun) else { return };
        if let (What::Migrated { by, .. }, Some(first)) = (&mut what, open.before.first()) {
            // One absence, with what it was for: that others ran on the old CPU meanwhile took nothing more.
            *by = first.what.pid().unwrap_or(*by);
            open.net_ns += open.before.iter().filter_map(|part| part.duration_ns).sum::<u64>();
            open.start_ns = first.start_ns;
            open.before.clear();
        }
        open.before.push(Taken { what, start_ns: open.start_ns, duration_ns: Some(open.net_ns) });
        for part in open.before {
            self.overlay.taken_ns += part.duration_ns.unwrap_or(0);
            self.overlay.items.push(part);
        }
    }

    /// The CPU goes from one thread to the next while the measured one waits for it.
    fn hand_on(&mut self, event: &Event, switch: &Switch) {
        let now_ns = self.now_ns;
        let Some(open) = self.open.last_mut() else { return };
        if let Begun::Off { by, cpu, wanted: true } = &mut open.begun
            && *cpu == event.header.cpu
        {
            let what = What::Preempted { by: *by, last: switch.prev_pid };
            open.before.push(Taken { what, start_ns: open.start_ns, duration_ns: Some(open.net_ns) });
            (*by, open.start_ns, open.net_ns) = (switch.next_pid, now_ns, 0);
        }
    }

    /// A record made by the thread itself: it had the CPU, so that a return to it was lost where it seems to be away.
    fn is_here(&mut self) {
        self.lose(Begun::is_away);
    }

    fn away(&mut self, event: &Event, switch: &Switch, sample: &Sample) {
        self.is_here();
        self.lose(Begun::is_hard);
        let wanted = switch.preempted != 0;
        let sleeps = !wanted && sample.arm_ns > 0 && event.header.ts_ns >= sample.arm_ns;
        self.begin(if sleeps { Begun::Sleep } else { Begun::Off { by: switch.next_pid, cpu: event.header.cpu, wanted } });
    }

    fn back(&mut self, event: &Event, switch: &Switch) {
        let (to, last) = (event.header.cpu, switch.prev_pid);
        self.end(Begun::is_away, |begun| match begun {
            Begun::Off { by, cpu, wanted: true } if cpu != to => Some(What::Migrated { from: cpu, to, by }),
            Begun::Off { by, wanted: true, .. } => Some(What::Preempted { by, last }),
            other => other.told(),
        });
    }
}

/// What took the CPU from thread `tid` between the post and the completion of `sample`. `events`: those of the sample by time; what lies
/// after its end can only close what is open.
pub fn overlay(events: &[Event], sample: &Sample, tid: u32) -> Overlay {
    let mut sweep = Sweep { now_ns: sample.post_begin_ns, open: Vec::new(), overlay: Overlay::default() };
    for event in events.iter().filter(|event| event.header.ts_ns >= sample.post_begin_ns) {
        let ended = event.header.ts_ns > sample.done_ns;
        if ended && sweep.open.is_empty() {
            break;
        }
        let ts_ns = event.header.ts_ns.min(sample.done_ns);
        if let Body::SchedSwitch(switch) = event.body {
            if switch.next_pid == tid {
                sweep.advance(ts_ns);
                sweep.back(event, &switch);
            } else if switch.prev_pid == tid && !ended {
                sweep.advance(ts_ns);
                sweep.away(event, &switch, sample);
            } else if !ended {
                sweep.advance(ts_ns);
                sweep.hand_on(event, &switch);
            }
            continue;
        }
        if event.header.pid != tid {
            continue;
        }
        let begun = match event.body {
            Body::IrqEntry(irq) | Body::IrqExit(irq) => Begun::Irq(irq.irq),
            Body::TimerEntry(_) | Body::TimerExit(_) => Begun::Tick,
            Body::SoftirqEntry(softirq) | Body::SoftirqExit(softirq) => Begun::Softirq(softirq.vec),
            Body::PageFault(_) if !ended => {
                sweep.advance(ts_ns);
                sweep.is_here();
                sweep.overlay.items.push(Taken { what: What::PageFault, start_ns: ts_ns, duration_ns: None });
                continue;
            }
            _ => continue,
        };
        sweep.advance(ts_ns);
        sweep.is_here();
        if matches!(event.body, Body::IrqExit(_) | Body::TimerExit(_) | Body::SoftirqExit(_)) {
            sweep.end(|open| open == begun, Begun::told);
        } else if !ended {
            // None of them nests in itself: an open one has ended unseen.
            sweep.lose(|open| open == begun);
            sweep.begin(begun);
        }
    }
    sweep.lose_from(0);
    sweep.overlay.items.sort_by_key(|item| item.start_ns);
    sweep.overlay
}

#[cfg(test)]
mod tests;
