//! The view while a trace runs: a table that is redrawn in place on a terminal, lines elsewhere.

use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

use analysis::trace::{CqTrace, Join, Times};
use capture::manifest::{TracedProcess, UnreadCqes};
use capture::text::units::{count, ns};

use super::{Options, TraceError, manifest};
use rdmascope_core::machine::Root;
use rdmascope_core::machine::interrupts::{self, Interrupt};

/// Interrupts that are shown: the busiest.
const INTERRUPTS_SHOWN: usize = 6;
/// CPUs that are shown per interrupt.
const CPUS_SHOWN: usize = 8;
/// Height where the terminal does not tell.
const ROWS: usize = 24;

/// The view, and what it showed last.
pub(super) struct LiveView {
    every: Duration,
    is_terminal: bool,
    began: Instant,
    drawn: Instant,
    /// Lines of the last table, to be overwritten.
    lines: usize,
    interrupts: Vec<Interrupt>,
    /// NAPI polls and runs of NET_RX at the last look.
    polls: (u64, u64),
    lost: u64,
}

impl LiveView {
    pub fn new(options: &Options, interrupts: &[Interrupt]) -> Self {
        let now = Instant::now();
        // Calls are printed instead.
        let every = if options.calls { Duration::ZERO } else { options.interval };
        let is_terminal = options.is_terminal;
        LiveView { every, is_terminal, began: now, drawn: now, lines: 0, interrupts: interrupts.to_vec(), polls: (0, 0), lost: 0 }
    }

    /// Whether an interval is over.
    pub fn is_due(&self) -> bool {
        !self.every.is_zero() && self.drawn.elapsed() >= self.every
    }

    /// Shows the interval.
    pub fn draw(
        &mut self,
        join: &Join,
        processes: &[TracedProcess],
        unread: &[UnreadCqes],
        lost: u64,
        out: &mut impl Write,
    ) -> Result<(), TraceError> {
        let seconds = self.drawn.elapsed().as_secs_f64();
        self.drawn = Instant::now();
        let is_ours = |cq: &&CqTrace| processes.iter().any(|process| process.tgid == cq.tgid) && cq.destroyed_ns.is_none();
        let cqs: Vec<&CqTrace> = join.cqs().iter().filter(is_ours).collect();
        let now = interrupts::read(Root::live()).unwrap_or_default();
        let deltas = manifest::interrupts_since(&self.interrupts, &now);
        self.interrupts = now;
        let polls = (join.cpus.napi_poll.n(), join.cpus.net_rx_run.n());
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let mut text = String::new();
        let alive = processes.iter().filter(|process| !process.ended).count();
        let _ = writeln!(
            text,
            "{:>7.1} s  {alive} processes, {} CQs; NAPI polls {:.0}/s, NET_RX {:.0}/s; {} records lost",
            self.began.elapsed().as_secs_f64(),
            cqs.len(),
            rate(polls.0, self.polls.0),
            rate(polls.1, self.polls.1),
            count(lost.saturating_sub(self.lost))
        );
        (self.polls, self.lost) = (polls, lost);
        if self.is_terminal || !cqs.is_empty() {
            let _ = writeln!(
                text,
                "{:>8} {:<16} {:>9} {:>9} {:>6}  {:<26} {:<26} {:<26}",
                "CQ", "process", "events/s", "CQEs/s", "unread", "origin → handler", "handler → run", "run → read"
            );
        }
        for cq in &cqs {
            row(&mut text, cq, processes, unread, seconds);
        }
        let mut busiest = deltas;
        busiest.sort_by_key(|row| std::cmp::Reverse(row.counts.iter().sum::<u64>()));
        for it in busiest.iter().take(INTERRUPTS_SHOWN) {
            let counts = it.counts.iter().enumerate().filter(|(_, n)| **n > 0).take(CPUS_SHOWN);
            let counts: Vec<String> = counts.map(|(cpu, n)| format!("CPU{cpu} {:.0}/s", *n as f64 / seconds)).collect();
            let _ = writeln!(text, "interrupt {:>4} {:<36} {}", it.irq, it.name, counts.join(", "));
        }
        if self.is_terminal {
            self.redraw(&text, out)
        } else {
            out.write_all(text.as_bytes())?;
            Ok(out.flush()?)
        }
    }

    /// Writes over the last table. What does not fit on the screen is cut: the cursor could not go back over it.
    fn redraw(&mut self, text: &str, out: &mut impl Write) -> Result<(), TraceError> {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let rows = size.map_or(ROWS, |size| usize::from(size.ws_row)).max(2) - 1;
        let columns = size.map_or(usize::MAX, |size| usize::from(size.ws_col)).max(20);
        let mut frame = String::new();
        if self.lines > 0 {
            let _ = write!(frame, "\x1b[{}A", self.lines);
        }
        frame.push_str("\r\x1b[J");
        self.lines = 0;
        for line in text.lines().take(rows) {
            frame.extend(line.chars().take(columns));
            frame.push('\n');
            self.lines += 1;
        }
        out.write_all(frame.as_bytes())?;
        Ok(out.flush()?)
    }

    /// Makes room for the final table.
    pub fn end(&mut self, out: &mut impl Write) -> Result<(), TraceError> {
        if self.is_terminal && self.lines > 0 {
            write!(out, "\x1b[{}A\r\x1b[J", self.lines)?;
            self.lines = 0;
        }
        Ok(())
    }
}

fn row(text: &mut String, cq: &CqTrace, processes: &[TracedProcess], unread: &[UnreadCqes], seconds: f64) {
    let it = &cq.interval;
    let id = cq.restrack_id.map_or_else(|| "?".to_owned(), |id| id.to_string());
    let comm = processes.iter().find(|process| process.tgid == cq.tgid).map_or("?", |process| process.comm.as_str());
    let unread = unread.iter().find(|it| it.cq == cq.cq).map_or_else(|| "?".to_owned(), |it| it.cqes.to_string());
    let cqes = if cq.shows_cqes() { format!("{:.0}", it.cqes as f64 / seconds) } else { "?".to_owned() };
    let _ = writeln!(
        text,
        "{id:>8} {comm:<16} {:>9.0} {cqes:>9} {unread:>6}  {:<26} {:<26} {:<26}",
        it.events as f64 / seconds,
        times(&it.origin),
        times(&it.handler_to_run),
        times(&it.run_to_read)
    );
}

/// `p50/p99/max`; a dash where too few values lie above.
fn times(times: &Times) -> String {
    let Some(max_ns) = times.max_ns() else { return "-".to_owned() };
    let shown = |q| times.quantile(q).map_or_else(|| "-".to_owned(), |value| ns(value as f64));
    format!("{}/{}/{}", shown(0.5), shown(0.99), ns(max_ns as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(is_terminal: bool) -> String {
        let options = Options { interval: Duration::from_secs(1), is_terminal, ..Options::default() };
        let mut live = LiveView::new(&options, &[]);
        assert!(!live.is_due());
        let mut join = Join::default();
        join.know(&capture::manifest::KnownCq { tgid: 5, restrack_id: 9, depth: None, device: "rxe0".into() });
        let processes = [TracedProcess { tgid: 5, comm: "program".into(), ..TracedProcess::default() }];
        let mut out = Vec::new();
        for _ in 0..2 {
            live.draw(&join, &processes, &[], 0, &mut out).expect("draws");
        }
        live.end(&mut out).expect("ends");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_terminal_is_drawn_over_and_anything_else_gets_lines() {
        let lines = drawn(false);
        assert!(!lines.contains('\x1b') && lines.matches("program").count() == 2 && lines.matches("events/s").count() == 2, "{lines}");
        let screen = drawn(true);
        let up = screen.matches("A\r\x1b[J").count();
        assert!(screen.starts_with("\r\x1b[J") && up == 2 && screen.ends_with("A\r\x1b[J"), "{screen:?}");
    }

    #[test]
    fn calls_and_no_interval_have_no_view() {
        let second = Duration::from_secs(1);
        for options in [Options { calls: true, interval: second, ..Options::default() }, Options::default()] {
            assert!(LiveView::new(&options, &[]).every.is_zero());
        }
    }
}
