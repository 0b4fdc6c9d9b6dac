//! What the demo shows while guests measure.

use serde::Deserialize;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A progress line of the program in the guest, or of the guest's first process.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct Progress {
    at_s: f64,
    phase: String,
    text: String,
    done: u64,
    total: u64,
}

impl Progress {
    fn shown(&self) -> String {
        let count = if self.total > 0 { format!(" {}/{}", self.done, self.total) } else { String::new() };
        let text = if self.text.is_empty() { String::new() } else { format!(": {}", self.text) };
        format!("{}{count}{text}", self.phase)
    }
}

/// Shows progress in place on a terminal, else at most one line every few seconds.
pub(super) struct Display {
    in_place: bool,
    is_open: bool,
    start: Instant,
    last: Option<Instant>,
}

impl Display {
    const EVERY: Duration = Duration::from_secs(5);

    /// A display on standard output.
    pub(super) fn new() -> Self {
        Self { in_place: std::io::stdout().is_terminal(), is_open: false, start: Instant::now(), last: None }
    }

    /// Prints a line of a guest's console.
    pub(super) fn line(&mut self, text: &str) {
        self.end();
        println!("{text}");
    }

    /// Shows a line of progress; what is none is left out.
    pub(super) fn progress(&mut self, line: &str) {
        let Ok(progress) = serde_json::from_str::<Progress>(line) else { return };
        let text = format!("[{:5.0} s] {}", self.start.elapsed().as_secs_f64(), progress.shown());
        if self.in_place {
            print!("\r\x1b[K{text}");
            // Nobody is told where nobody can be.
            let _ = std::io::stdout().flush();
            self.is_open = true;
        } else if progress.total == 0 || self.last.is_none_or(|last| last.elapsed() >= Self::EVERY) {
            println!("{text}");
            self.last = Some(Instant::now());
        }
    }

    /// Leaves the line that is shown in place.
    pub(super) fn end(&mut self) {
        if self.is_open {
            println!();
            self.is_open = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_of_both_kinds_is_shown() {
        let shown = |line: &str| serde_json::from_str::<Progress>(line).unwrap().shown();
        assert_eq!(shown(r#"{"at_s":1.5,"phase":"measure","text":"send event","done":3,"total":12}"#), "measure 3/12: send event");
        assert_eq!(shown(r#"{"guest":"a","phase":"modules"}"#), "modules");
    }
}
