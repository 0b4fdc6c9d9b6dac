//! What a waiting person sees: one line per step on standard error, and the same as JSON lines for a program that watches.
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

/// Reports progress. A line that cannot be written is left out: progress never fails a run.
pub struct Progress {
    begin: Instant,
    quiet: bool,
    in_place: bool,
    json: Option<std::fs::File>,
    line_open: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    at_s: f64,
    phase: &'a str,
    text: &'a str,
    done: u64,
    total: u64,
}

impl Progress {
    /// Progress on standard error unless `quiet`, and JSON lines into `json` (a file or a character device) when given.
    ///
    /// # Errors
    /// When that file cannot be opened.
    pub fn new(quiet: bool, json: Option<&Path>) -> std::io::Result<Progress> {
        let json = json.map(|path| std::fs::OpenOptions::new().create(true).append(true).open(path)).transpose()?;
        Ok(Progress { begin: Instant::now(), quiet, in_place: std::io::stderr().is_terminal(), json, line_open: false })
    }

    /// A step that stays on the screen.
    pub fn say(&mut self, phase: &str, text: &str) {
        self.show(phase, text, 0, 0, false);
    }

    /// A step `done` of `total`, overwritten by the next one on a terminal.
    pub fn step(&mut self, phase: &str, text: &str, done: u64, total: u64) {
        self.show(phase, text, done, total, true);
    }

    /// Something went wrong that does not end the session: said on standard error, also where progress is not.
    pub fn warn(&mut self, text: &str) {
        let _ = writeln!(std::io::stderr(), "rdmascope: {text}");
    }

    fn show(&mut self, phase: &str, text: &str, done: u64, total: u64, transient: bool) {
        let at_s = self.begin.elapsed().as_secs_f64();
        if let Some(json) = &mut self.json
            && let Ok(mut line) = serde_json::to_vec(&Line { at_s, phase, text, done, total })
        {
            line.push(b'\n');
            let _ = json.write_all(&line);
        }
        if self.quiet {
            return;
        }
        let count = if total > 0 { format!(" {done}/{total}") } else { String::new() };
        // Some of it comes from the peer.
        let text = capture::text::printable(text);
        let mut out = std::io::stderr().lock();
        let _ = match (self.in_place, transient) {
            (true, true) => write!(out, "\r\x1b[K[{at_s:6.1} s] {phase}{count}: {text}"),
            (true, false) => writeln!(out, "\r\x1b[K[{at_s:6.1} s] {phase}: {text}"),
            (false, _) => writeln!(out, "[{at_s:6.1} s] {phase}{count}: {text}"),
        };
        let _ = out.flush();
        self.line_open = self.in_place && transient;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.line_open {
            let _ = writeln!(std::io::stderr());
        }
    }
}
