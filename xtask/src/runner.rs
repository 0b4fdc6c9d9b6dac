//! The command lines of `rdmascope` and `rdmascope-report` that xtask runs. Their flags are written here and nowhere else.

use crate::vm::Guest;
use crate::{exit, paths, process};
use anyhow::{Context, Result};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the token of the server lies in a guest.
pub const GUEST_TOKEN: &str = "/etc/rdmascope.token";

/// The release build of a program of this workspace.
fn built(name: &str) -> Result<PathBuf> {
    let path = paths::target().join("release").join(name);
    if !path.is_file() {
        return Err(exit::infrastructure(format!("{} is not built", paths::shown(&path))));
    }
    Ok(path)
}

/// Programs that a guest gets beside the usual ones.
pub fn programs() -> Result<Vec<String>> {
    Ok(vec![built("rdmascope")?.display().to_string()])
}

/// A fresh token for one server and one client, in a file.
pub fn token_file() -> Result<PathBuf> {
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes).context("making a token")?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = paths::target().join("vm/token");
    fs::write(&path, token + "\n").with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Guest a of two: serves whoever shows the token until guest b is done. Beside the usual server one runs as nobody on the next port.
pub fn serving_guest(token: &Path) -> Result<Guest> {
    let serve = |bind: &str| format!("rdmascope serve --bind {bind} --device $DEVICE --token-file {GUEST_TOKEN}");
    let command = format!("su -s /bin/sh nobody -c \"{}\" &\n{}", serve("$SELF:18601"), serve("$SELF"));
    let files = vec![(token.to_path_buf(), GUEST_TOKEN.to_owned())];
    Ok(Guest { programs: programs()?, files, command, is_server: true, ..Guest::default() })
}

/// What a demo measures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compare {
    /// Samples per operation and mode.
    pub samples: u64,
    /// More arguments of `rdmascope compare`, as given.
    pub extra: Vec<String>,
}

impl Compare {
    /// Shell text for a guest: compares with itself, or with the server in the other guest.
    fn text(&self, target: &str) -> String {
        let extra: String = self.extra.iter().map(|word| format!(" {}", process::quoted(word))).collect();
        // The host seals and reports: an emulated CPU would take long.
        format!(
            "rdmascope compare {target} --device $DEVICE -n {} --out $OUT --no-seal --no-report --quiet --progress-json $PROGRESS{extra}",
            self.samples
        )
    }

    /// The guests of a job: one that runs both ends, or a server and a client.
    pub fn guests(&self, count: u8) -> Result<Vec<Guest>> {
        if count == 1 {
            let command = self.text("--loopback");
            return Ok(vec![Guest { programs: programs()?, command, ..Guest::default() }]);
        }
        let token = token_file()?;
        let server = serving_guest(&token)?;
        let files = vec![(token, GUEST_TOKEN.to_owned())];
        let command = format!("sleep 1\n{}", self.text(&format!("$PEER --token-file {GUEST_TOKEN}")));
        Ok(vec![server, Guest { programs: programs()?, files, command, ..Guest::default() }])
    }
}

/// Writes the report of every capture below `folder` (index.html, report.json, charts) and prints the summary.
pub fn report(folder: &Path) -> Result<Command> {
    let mut report = process::command(built("rdmascope-report")?);
    report.arg(folder).arg("--html").arg(folder).arg("--json").arg(folder.join("report.json"));
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_target_and_extra_arguments() {
        let compare = Compare { samples: 10, extra: vec!["--op".to_owned(), "a b".to_owned()] };
        let text = compare.text("--loopback");
        assert!(text.starts_with("rdmascope compare --loopback --device $DEVICE -n 10 "), "{text}");
        assert!(text.ends_with(" --op 'a b'"), "{text}");
    }
}
