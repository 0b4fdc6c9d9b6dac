//! The card's process: started before its guests, ended with them.

use super::{Card, socket_of};
use crate::{exit, process};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// What it says once its sockets are there.
const READY: &str = "listening";
const START: Duration = Duration::from_secs(15);
/// It ends by itself once its guests have closed their sockets, and may have a log to finish.
const END: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What it complains about, in the folder that it runs in.
const COMPLAINTS: &str = "card.stderr";

/// A started card; killed when this value goes away, and by the kernel when xtask does.
#[derive(Debug)]
pub struct Running {
    child: Child,
    complaints: PathBuf,
}

impl Running {
    /// Starts the card in `folder`, with a socket for each of `letters`, and waits until the sockets are there.
    pub fn start(card: &Card, folder: &Path, letters: &[char]) -> Result<Self> {
        let complaints = folder.join(COMPLAINTS);
        let mut command = command(card, letters)?;
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&complaints)?);
        let mut child =
            command.spawn().map_err(|error| exit::infrastructure(format!("starting `{}`: {error}", process::line(&command))))?;
        let stdout = child.stdout.take();
        let mut running = Self { child, complaints };
        let stdout = stdout.context("a piped output is there")?;
        let (to, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                // Nobody listens after the first word, but the pipe has to be emptied.
                let _ = to.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        let start = Instant::now();
        loop {
            match lines.recv_timeout(START.saturating_sub(start.elapsed())) {
                Ok(line) if line.trim() == READY => break,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(exit::infrastructure(format!(
                        "the card does not listen after {} s{}",
                        START.as_secs(),
                        running.last_words()
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let how = running.ended_within(END).unwrap_or_else(|| "it closed its output".to_owned());
                    return Err(exit::infrastructure(format!("the card ended before it listened: {how}")));
                }
            }
        }
        Ok(running)
    }

    /// How it ended and what it said last, once it has.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("{status}{}", self.last_words()))
    }

    fn ended_within(&mut self, deadline: Duration) -> Option<String> {
        let start = Instant::now();
        while start.elapsed() < deadline {
            if let Some(how) = self.ended() {
                return Some(how);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.ended()
    }

    /// Its last complaints, to follow other words.
    fn last_words(&self) -> String {
        let text = fs::read(&self.complaints).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().rev().take(3).collect();
        if lines.is_empty() { String::new() } else { format!("; it said: {}", lines.into_iter().rev().collect::<Vec<_>>().join(" | ")) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended_within(END).is_none() {
            // It may end between the two calls; either way it is gone afterwards.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The card's command line. Its sockets are relative to the folder that it runs in, because a unix socket's path must be short.
fn command(card: &Card, letters: &[char]) -> Result<Command> {
    let program = std::path::absolute(&card.program)?;
    if !program.is_file() {
        return Err(exit::infrastructure(format!("there is no card at {}", program.display())));
    }
    let mut command = process::command("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    for letter in letters {
        command.args(["--socket", &socket_of(*letter)]);
    }
    command.args(["--link", card.link.name()]);
    if let Some(log) = &card.log {
        command.arg("--log").arg(std::path::absolute(log)?);
    }
    command.args(&card.arguments);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::super::Link;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(folder: &Path, text: &str) -> Card {
        let path = folder.join("card");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Card::new(path, Link::Ethernet)
    }

    #[test]
    fn the_command_has_a_socket_for_each_guest_and_the_cards_own_arguments_last() {
        let folder = tempfile::tempdir().unwrap();
        let mut card = script(folder.path(), "");
        card.log = Some("/tmp/log".into());
        card.arguments = vec!["--vectors".to_owned(), "2".to_owned()];
        let command = command(&card, &['a', 'b']).unwrap();
        let words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let expected = "--socket card-a.sock --socket card-b.sock --link ethernet --log /tmp/log --vectors 2";
        assert_eq!(words[4..].join(" "), expected);
        assert_eq!(words[..3], ["--pdeathsig", "KILL", "--"]);
    }

    #[test]
    fn a_card_that_listens_is_running_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let mut running =
            Running::start(&script(folder.path(), "echo hello; echo listening; exec sleep 60"), folder.path(), &['a']).unwrap();
        assert_eq!(running.ended(), None);
        let process = PathBuf::from(format!("/proc/{}", running.child.id()));
        assert!(process.exists());
        drop(running);
        assert!(!process.exists());
    }

    #[test]
    fn a_card_that_does_not_start_is_an_error_with_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let error = Running::start(&script(folder.path(), "echo no memory >&2; exit 3"), folder.path(), &['a']).unwrap_err();
        assert_eq!(exit::code_of(&error), 69);
        assert!(error.to_string().contains("exit status: 3; it said: no memory"), "{error}");
        let missing = Card::new(folder.path().join("none"), Link::Infiniband);
        let error = Running::start(&missing, folder.path(), &['a']).unwrap_err();
        assert_eq!(exit::code_of(&error), 69);
        assert!(error.to_string().contains("there is no card at"), "{error}");
    }
}
