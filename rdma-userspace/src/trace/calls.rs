//! The calls as they happen, one per line: when, on which CPU, in which thread, what, of which CQ.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use analysis::trace::{Join, name_of};
use ebpf_probes::config::NONE;
use ebpf_probes::{Body, Event};

use super::{Options, TraceError};

const SECOND_NS: u64 = 1_000_000_000;

/// Lines to standard output, limited in rate, and to a file, all of them.
pub(super) struct Calls {
    is_shown: bool,
    per_second: u64,
    /// The second that is being counted, and lines in it.
    second: u64,
    in_second: u64,
    left_out: u64,
    left_out_in_all: u64,
    ready: String,
    file: Option<(PathBuf, BufWriter<File>)>,
    failed: Option<io::Error>,
    names: HashMap<u32, String>,
}

impl Calls {
    pub fn begin(options: &Options) -> Result<Self, TraceError> {
        let open = |path: &PathBuf| {
            let file = File::create(path).map_err(|error| TraceError::File { path: path.clone(), error })?;
            Ok::<_, TraceError>((path.clone(), BufWriter::new(file)))
        };
        Ok(Calls {
            is_shown: options.calls,
            per_second: u64::from(options.calls_per_second),
            second: 0,
            in_second: 0,
            left_out: 0,
            left_out_in_all: 0,
            ready: String::new(),
            file: options.calls_to.as_ref().map(open).transpose()?,
            failed: None,
            names: HashMap::new(),
        })
    }

    /// Takes a record, in the order of time.
    pub fn event(&mut self, event: &Event, join: &Join, begin_ns: u64) {
        if !self.is_shown && self.file.is_none() {
            return;
        }
        let Some((call, what)) = describe(event, join) else { return };
        let since = event.header.ts_ns as f64 / 1e9 - begin_ns as f64 / 1e9;
        let name = self.name(event.header.pid);
        let line = format!("{since:>12.6} [{:03}] {name:>16}-{:<7} {call:<14} {what}\n", event.header.cpu, event.header.pid);
        if let Some((_, file)) = &mut self.file
            && let Err(error) = file.write_all(line.as_bytes())
        {
            self.failed = Some(error);
        }
        if self.is_shown {
            self.show(&line, event.header.ts_ns / SECOND_NS);
        }
    }

    fn show(&mut self, line: &str, second: u64) {
        if second != self.second {
            self.print_left_out();
            (self.second, self.in_second) = (second, 0);
        }
        if self.in_second < self.per_second {
            self.in_second += 1;
            self.ready.push_str(line);
        } else {
            self.left_out += 1;
        }
    }

    fn print_left_out(&mut self) {
        if self.left_out > 0 {
            let _ = writeln!(self.ready, "... {} calls of this second left out (limit {} lines)", self.left_out, self.per_second);
            self.left_out_in_all += std::mem::take(&mut self.left_out);
        }
    }

    /// Prints what is ready.
    pub fn print(&mut self, out: &mut impl Write) -> Result<(), TraceError> {
        if let Some(error) = self.failed.take() {
            let path = self.file.as_ref().map(|(path, _)| path.clone()).unwrap_or_default();
            return Err(TraceError::File { path, error });
        }
        if !self.ready.is_empty() {
            out.write_all(self.ready.as_bytes())?;
            out.flush()?;
            self.ready.clear();
        }
        Ok(())
    }

    /// Prints and writes what is left.
    pub fn end(&mut self, out: &mut impl Write) -> Result<(), TraceError> {
        self.print_left_out();
        if self.left_out_in_all > 0 {
            let _ = writeln!(self.ready, "{} calls were left out in all (--calls-to FILE writes every one)", self.left_out_in_all);
        }
        self.print(out)?;
        if let Some((path, mut file)) = self.file.take() {
            file.flush().map_err(|error| TraceError::File { path, error })?;
        }
        Ok(())
    }

    fn name(&mut self, thread: u32) -> &str {
        self.names.entry(thread).or_insert_with(|| match thread {
            0 => "<idle>".to_owned(),
            thread => super::processes::name_of(thread).unwrap_or_else(|| "<gone>".to_owned()),
        })
    }
}

/// The call and what it is about; `None` for records that are no calls of the completion path.
fn describe(event: &Event, join: &Join) -> Option<(&'static str, String)> {
    let cq = |address: u64| join.at(address).map_or_else(|| format!("cq {address:#x}"), name_of);
    let kind = event.body.kind().name();
    let what = match event.body {
        Body::CqCreate(it) => format!("{}, {} CQEs, channel {:#x}", cq(it.cq), number(it.depth), it.channel),
        Body::CqDestroy(it) => format!("CQ {} of process {}", number(it.restrack_id), it.owner_tgid),
        Body::CqArm(it) => {
            let unread = if it.unread == NONE { String::new() } else { format!(", {} CQEs unread", it.unread) };
            format!("{}{}{unread}", cq(it.cq), if it.flags & 1 != 0 { ", solicited only" } else { "" })
        }
        Body::CqError(it) => {
            format!("{}: {}", cq(it.cq), if it.event == 0 { "CQ error (overrun)".to_owned() } else { format!("event {}", it.event) })
        }
        Body::CqPost(it) => {
            let failed = if it.status == 0 { String::new() } else { format!(", status {}", it.status) };
            format!("{} wr_id {:#x} qp {}{failed}", cq(it.cq), it.wr_id, it.qpn)
        }
        Body::CompHandler(it) => {
            let origin = join.cpus.origin(event.header.cpu, event.header.pid);
            let from = match (origin.irq, origin.softirq_ns, origin.tasklet_ns, origin.work_ns) {
                (Some((irq, _)), ..) => format!("interrupt {irq}"),
                (_, _, Some(_), _) => "tasklet".to_owned(),
                (_, Some(_), ..) => "softirq".to_owned(),
                (.., Some(_)) => "work item".to_owned(),
                _ => "process".to_owned(),
            };
            format!("{} of process {}, from {from}", cq(it.cq), it.owner_tgid)
        }
        Body::EventRead(it) => format!("channel {:#x}, returned {}", it.channel, it.result),
        Body::SchedWaking(it) => format!("thread {}", it.target_pid),
        Body::SchedWakeup(it) => format!("thread {}", it.target_pid),
        Body::SchedSwitch(it) => {
            format!("{} ({}) → {}", it.prev_pid, if it.preempted != 0 { "preempted" } else { "sleeps" }, it.next_pid)
        }
        _ => return None,
    };
    Some((kind, what))
}

fn number(number: u32) -> String {
    if number == NONE { "?".to_owned() } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebpf_probes::{CqPost, Header, Irq};

    fn at(ts_ns: u64, body: Body) -> Event {
        Event { header: Header { ts_ns, cpu: 1, ..Header::default() }, body }
    }

    #[test]
    fn more_lines_than_the_limit_are_counted_and_the_file_has_them_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("calls");
        let options = Options { calls: true, calls_per_second: 2, calls_to: Some(path.clone()), ..Options::default() };
        let mut calls = Calls::begin(&options).expect("begins");
        let join = Join::default();
        let post = |ts_ns| at(ts_ns, Body::CqPost(CqPost { cq: 0xc0, wr_id: 7, qpn: 17, ..CqPost::default() }));
        for ts_ns in [10, 20, 30, 40, SECOND_NS + 10] {
            calls.event(&post(ts_ns), &join, 0);
        }
        calls.event(&at(50, Body::IrqEntry(Irq::default())), &join, 0);
        let mut out = Vec::new();
        calls.end(&mut out).expect("prints");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text.matches("wr_id 0x7 qp 17").count(), 3, "{text}");
        assert!(text.contains("... 2 calls of this second left out") && text.contains("2 calls were left out in all"), "{text}");
        let all = std::fs::read_to_string(path).expect("the file");
        assert_eq!(all.lines().count(), 5, "{all}");
    }
}
