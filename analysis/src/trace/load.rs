//! A recorded trace, from its capture.
use super::join::Join;
use super::model::TraceReport;
use super::report;
use capture::manifest::TraceFacts;
use capture::text::units::count;
use capture::{self, Capture};

/// Tells a join what was known when the trace began.
pub fn prepare(join: &mut Join, facts: &TraceFacts) {
    join.begin_ns = facts.begin_ns;
    for known in &facts.known_cqs {
        join.know(known);
    }
    for thread in facts.processes.iter().flat_map(|process| &process.threads) {
        join.found_thread(thread.tid, thread.running, thread.at_ns);
    }
}

/// The report over the trace in an open capture.
///
/// # Errors
/// What reading the capture can meet.
pub fn load(capture: &mut Capture, path: String) -> capture::Result<TraceReport> {
    let mut manifest = capture.manifest.clone();
    let facts = manifest.trace.clone().unwrap_or_default();
    let mut join = Join::default();
    prepare(&mut join, &facts);
    let mut undecoded = 0;
    for record in capture.streams()?.records {
        match record?.event() {
            // Probes go one after the other: what came after the end is half a story.
            Ok(event) if facts.end_ns == 0 || event.header.ts_ns < facts.end_ns => join.event(&event),
            Ok(_) => {}
            Err(_) => undecoded += 1,
        }
    }
    manifest.notes.append(&mut capture.notes);
    if undecoded > 0 {
        manifest.notes.push(format!("{} records could not be decoded", count(undecoded)));
    }
    Ok(report(join, manifest, path))
}
