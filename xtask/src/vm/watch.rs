//! Watching guests while they run: console and progress lines as they come, deadlines for every wait, and the signs of a
//! guest that has hung.

use super::qemu::Running;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// How long each part of a guest's life may take.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// From start to the first process's first words.
    pub boot: Duration,
    /// Between two lines of any kind.
    pub silence: Duration,
    /// From start to the verdict.
    pub total: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { boot: Duration::from_secs(240), silence: Duration::from_secs(180), total: Duration::from_secs(1200) }
    }
}

/// What the guest says about how it ended: exactly one of these per guest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Verdict {
    /// `command` when the command ran, else the part of the start that failed.
    pub stage: String,
    /// Exit code of the command, or 69.
    pub exit: u8,
    /// Whether the files were written to the disk.
    pub files: bool,
}

/// How a guest ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It gave its verdict.
    Verdict(Verdict),
    /// It did not; the text says what was seen instead.
    Broken(String),
}

/// What a watched guest shows.
#[derive(Debug)]
pub enum Seen<'a> {
    /// A line of the console.
    Console(&'a str),
    /// A JSON line of the second serial line that is not the verdict.
    Progress(&'a str),
}

/// One guest under watch.
#[derive(Debug)]
pub struct Watched {
    letter: char,
    running: Running,
    stdin: Option<ChildStdin>,
    progress: Tail,
    console_log: File,
    is_up: bool,
    is_ready: bool,
    last_sign: Instant,
    verdict: Option<(Verdict, Instant)>,
    hang: Option<(String, Instant)>,
    end: Option<End>,
}

/// Name of the file with what a guest's console has said.
pub fn console_of(letter: char) -> String {
    format!("{letter}.console")
}

/// Text that the kernel prints when it is of no more use.
const HANG_MARKERS: [&str; 7] =
    ["Kernel panic", "BUG: ", "Oops: ", "general protection fault", "soft lockup", "self-detected stall", "detected stalls on CPUs"];
/// After the verdict, the guest only powers off.
const POWER_OFF: Duration = Duration::from_secs(20);
/// The card ends when QEMU closes its socket: then QEMU's own end is what is told.
const CARD_FIRST: Duration = Duration::from_secs(2);
/// After a sign of a hang, the kernel prints where.
const LAST_WORDS: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// So that a flood of lines does not keep the deadlines from being looked at.
const LINES_PER_LOOK: usize = 1000;

/// Whether a console line is a sign of a hang.
fn hang_marker(line: &str) -> bool {
    // Only the kernel's own lines count, not what a program prints about one.
    line.trim_start().starts_with('[') && HANG_MARKERS.iter().any(|marker| line.contains(marker))
}

/// A file that grows; yields its whole lines.
#[derive(Debug)]
struct Tail {
    file: File,
    rest: Vec<u8>,
}

impl Tail {
    fn lines(&mut self) -> Result<Vec<String>> {
        self.file.read_to_end(&mut self.rest)?;
        let mut lines = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            lines.push(String::from_utf8_lossy(&line).trim_matches(['\r', '\n', '\0', ' ']).to_owned());
        }
        Ok(lines)
    }
}

/// The verdict in a progress line, if it is one.
fn verdict_in(line: &str) -> Option<Verdict> {
    #[derive(Deserialize)]
    struct Line {
        verdict: Verdict,
    }
    serde_json::from_str::<Line>(line).ok().map(|line| line.verdict)
}

/// The phase in a progress line of the first process.
fn phase_in(line: &str) -> Option<String> {
    serde_json::from_str::<serde_json::Value>(line).ok()?.get("phase")?.as_str().map(str::to_owned)
}

impl Watched {
    /// Takes over a started guest; `folder` holds its progress file and gets its console log.
    pub fn new(letter: char, mut running: Running, folder: &Path, lines: &Sender<(char, String)>) -> Result<Self> {
        let stdout = running.take_stdout().context("QEMU has an output")?;
        let stderr = running.take_stderr().context("QEMU has an error output")?;
        spawn_reader(letter, stdout, "", lines.clone());
        spawn_reader(letter, stderr, "qemu: ", lines.clone());
        let path = folder.join(format!("{letter}.progress"));
        // QEMU makes it anew at its start; one that is made here would be another file.
        let opened = Instant::now();
        let file = loop {
            match File::open(&path) {
                Ok(file) => break file,
                Err(_) if opened.elapsed() < Duration::from_secs(10) && running.ended().is_none() => {
                    std::thread::sleep(LOOK_EVERY);
                }
                Err(error) => {
                    return Err(error).context("QEMU did not start (see its message above)");
                }
            }
        };
        let console_log = File::create(folder.join(console_of(letter)))?;
        let stdin = running.take_stdin();
        Ok(Self {
            letter,
            running,
            stdin,
            progress: Tail { file, rest: Vec::new() },
            console_log,
            is_up: false,
            is_ready: false,
            last_sign: Instant::now(),
            verdict: None,
            hang: None,
            end: None,
        })
    }

    /// Sends a word to the guest's first process. A guest that is gone shows that by itself.
    fn say(&mut self, word: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _ = writeln!(stdin, "{word}").and_then(|()| stdin.flush());
        }
    }

    fn console(&mut self, line: &str) -> Result<bool> {
        writeln!(self.console_log, "{line}")?;
        self.last_sign = Instant::now();
        let was_up = self.is_up;
        self.is_up |= line.contains("@@ guest up");
        if self.hang.is_none() && self.verdict.is_none() && hang_marker(line) {
            self.hang = Some((line.to_owned(), Instant::now()));
        }
        Ok(was_up || self.hang.is_some() || line.starts_with("qemu: "))
    }

    /// Looks at progress, deadlines and the process; calls `show` for each progress line.
    fn look(&mut self, start: Instant, limits: &Deadlines, show: &mut dyn FnMut(char, Seen<'_>)) -> Result<()> {
        // Asked before the file is read, so that the last lines of a process that has ended are seen.
        let ended = self.running.ended();
        for line in self.progress.lines()? {
            self.last_sign = Instant::now();
            match verdict_in(&line) {
                Some(verdict) if self.verdict.is_none() => self.verdict = Some((verdict, Instant::now())),
                Some(_) => self.end = Some(End::Broken("two verdicts".to_owned())),
                None if !line.is_empty() => {
                    self.is_ready |= phase_in(&line).as_deref() == Some("ready");
                    show(self.letter, Seen::Progress(&line));
                }
                None => {}
            }
        }
        if self.end.is_some() {
            return Ok(());
        }
        let broken = |text: String| Some(End::Broken(text));
        self.end = if let Some((verdict, since)) = &self.verdict {
            (ended.is_some() || since.elapsed() > POWER_OFF).then(|| End::Verdict(verdict.clone()))
        } else if let Some(status) = ended {
            broken(format!("QEMU ended ({status}) without a verdict"))
        } else if let Some((line, since)) = &self.hang {
            (since.elapsed() > LAST_WORDS).then(|| End::Broken(format!("the kernel said: {line}")))
        } else if !self.is_up && start.elapsed() > limits.boot {
            broken(format!("not up within {} s", limits.boot.as_secs()))
        } else if self.last_sign.elapsed() > limits.silence {
            broken(format!("no line for {} s", limits.silence.as_secs()))
        } else if start.elapsed() > limits.total {
            broken(format!("no verdict within {} s", limits.total.as_secs()))
        } else {
            None
        };
        Ok(())
    }
}

fn spawn_reader(letter: char, from: impl Read + Send + 'static, prefix: &'static str, to: Sender<(char, String)>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            let line = format!("{prefix}{}", String::from_utf8_lossy(&line).trim_end_matches('\r'));
            if to.send((letter, line)).is_err() {
                break;
            }
        }
    });
}

/// How several guests go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Together {
    /// Each ends by itself.
    Apart,
    /// They wait for each other before their commands start.
    Start,
    /// Also, the first one is a server that is stopped when the last one is done.
    Server,
}

/// Watches until every guest has ended; returns their ends in the order of `guests`. `ended_card` tells how the emulated card ended,
/// once it has: no guest goes on without it.
pub fn watch(
    mut guests: Vec<Watched>,
    lines: &Receiver<(char, String)>,
    together: Together,
    limits: &Deadlines,
    ended_card: &mut dyn FnMut() -> Option<String>,
    show: &mut dyn FnMut(char, Seen<'_>),
) -> Result<Vec<End>> {
    let start = Instant::now();
    let mut card_is_gone: Option<(String, Instant)> = None;
    let (mut has_started, mut has_stopped) = (together == Together::Apart, together != Together::Server);
    let last = guests.len().saturating_sub(1);
    loop {
        let mut wait = LOOK_EVERY;
        for _ in 0..LINES_PER_LOOK {
            let Ok((letter, line)) = lines.recv_timeout(wait) else {
                break;
            };
            if let Some(guest) = guests.iter_mut().find(|guest| guest.letter == letter)
                && guest.console(&line)?
            {
                show(letter, Seen::Console(&line));
            }
            wait = Duration::ZERO;
        }
        for guest in guests.iter_mut().filter(|guest| guest.end.is_none()) {
            guest.look(start, limits, show)?;
        }
        if card_is_gone.is_none() {
            card_is_gone = ended_card().map(|how| (how, Instant::now()));
        }
        if let Some((how, since)) = &card_is_gone
            && since.elapsed() > CARD_FIRST
        {
            let waiting = guests.iter_mut().filter(|guest| guest.end.is_none() && guest.verdict.is_none());
            waiting.for_each(|guest| guest.end = Some(End::Broken(format!("the card ended before it: {how}"))));
        }
        if !has_started && guests.iter().all(|guest| guest.is_ready) {
            has_started = true;
            guests.iter_mut().for_each(|guest| guest.say("go"));
        }
        if !has_stopped && guests.get(last).is_some_and(|guest| guest.verdict.is_some()) {
            has_stopped = true;
            if let Some(server) = guests.first_mut() {
                server.say("stop");
            }
        }
        let is_any_broken = guests.iter().any(|guest| matches!(guest.end, Some(End::Broken(_))));
        if is_any_broken || guests.iter().all(|guest| guest.end.is_some()) {
            let ended_with_it = || End::Broken("ended with the other guest".to_owned());
            return Ok(guests.into_iter().map(|guest| guest.end.unwrap_or_else(ended_with_it)).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kernel_can_report_a_hang() {
        assert!(hang_marker("[   12.3] Kernel panic - not syncing: x"));
        assert!(hang_marker("[   12.3] rcu: INFO: rcu_preempt self-detected stall on CPU"));
        assert!(hang_marker("[    1.0] BUG: kernel NULL pointer dereference"));
        assert!(!hang_marker("the test expects no Kernel panic"));
        assert!(!hang_marker("[    1.0] rcu: Hierarchical RCU implementation."));
    }

    #[test]
    fn a_verdict_is_told_from_progress() {
        let line = r#"{"guest":"a","verdict":{"stage":"command","exit":3,"files":true}}"#;
        assert_eq!(verdict_in(line), Some(Verdict { stage: "command".to_owned(), exit: 3, files: true }));
        assert_eq!(verdict_in(r#"{"phase":"ready"}"#), None);
        assert_eq!(phase_in(r#"{"phase":"ready"}"#).as_deref(), Some("ready"));
        assert_eq!(verdict_in("noise"), None);
    }

    #[test]
    fn a_tail_yields_whole_lines_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grows");
        let mut writer = File::create(&path).unwrap();
        let mut tail = Tail { file: File::open(&path).unwrap(), rest: Vec::new() };
        writer.write_all(b"one\r\ntw").unwrap();
        assert_eq!(tail.lines().unwrap(), ["one"]);
        writer.write_all(b"o\n").unwrap();
        assert_eq!(tail.lines().unwrap(), ["two"]);
    }
}
