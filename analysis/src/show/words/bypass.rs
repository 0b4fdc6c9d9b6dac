//! The proof of bypass in words: the same for the text and the page.
use crate::report::model::{Bypass, RunReport};
use capture::text::units::count;

/// Lines about a run, the verdict first; empty when the capture holds nothing of it.
pub(in crate::show) fn lines(run: &RunReport) -> Vec<String> {
    let Some(bypass) = &run.bypass else { return Vec::new() };
    let mut lines = vec![bypass.verdict.clone(), moved(bypass)];
    if let Some(calls) = &bypass.calls {
        let named: Vec<String> = calls.calls.iter().map(|it| format!("{} {}", it.name, count(it.calls))).collect();
        let made = if named.is_empty() { "no system call at all".to_owned() } else { named.join(", ") };
        let frame: Vec<String> = calls.frame.iter().map(|it| format!("{} {}", it.name, count(it.calls))).collect();
        lines.push(format!(
            "in a round of its own, every system call counted: {} operations made {made} ({} through sockets); a round by itself takes {}",
            count(calls.operations),
            count(calls.socket_calls),
            if frame.is_empty() { "none".to_owned() } else { frame.join(", ") }
        ));
    }
    if let Some(why) = &bypass.calls_absent {
        lines.push(format!("system calls were not counted: {why}"));
    }
    lines
}

fn moved(bypass: &Bypass) -> String {
    let value = |it: Option<u64>| it.map_or("unknown".to_owned(), count);
    let per_operation = |it: Option<u64>| match it {
        Some(n) if bypass.operations > 0 => format!(" ({:.2} per operation)", n as f64 / bypass.operations as f64),
        _ => String::new(),
    };
    format!(
        "{} measured rounds, {} operations: control connection {} B sent, {} B received; measured thread {} reads{}, {} writes{}, slept {} times",
        count(bypass.rounds),
        count(bypass.operations),
        value(bypass.tcp_sent_bytes),
        value(bypass.tcp_received_bytes),
        value(bypass.reads),
        per_operation(bypass.reads),
        value(bypass.writes),
        per_operation(bypass.writes),
        count(bypass.voluntary_switches)
    )
}
