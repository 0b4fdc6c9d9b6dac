//! Building with cargo where the programs' names hold hashes: which programs there are, from cargo's own messages.

use crate::process;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A program that cargo built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// What cargo calls its target's kind: `test`, `bench`, `bin`, …
    pub kind: String,
    /// Name of the target.
    pub name: String,
    /// The program.
    pub path: PathBuf,
}

/// Runs a command of cargo that builds, and gives the programs that it built or found built.
pub fn built(cargo: &mut Command, deadline: Duration) -> Result<Vec<Artifact>> {
    cargo.args(["--message-format", "json-render-diagnostics"]);
    let mut artifacts = Vec::new();
    let code = process::stream(cargo, deadline, |line| artifacts.extend(artifact(line)))?;
    if code != 0 {
        bail!("`{}` failed", process::line(cargo));
    }
    Ok(artifacts)
}

/// The program of this kind and name.
pub fn path_of<'a>(artifacts: &'a [Artifact], kind: &str, name: &str) -> Result<&'a Path> {
    let found = artifacts.iter().find(|artifact| artifact.kind == kind && artifact.name == name);
    found.map(|artifact| artifact.path.as_path()).with_context(|| format!("cargo built no {kind} `{name}`"))
}

/// The program that a line of cargo's JSON output announces.
fn artifact(line: &str) -> Option<Artifact> {
    #[derive(Deserialize)]
    struct Message {
        target: Target,
        executable: Option<PathBuf>,
    }
    #[derive(Deserialize)]
    struct Target {
        kind: Vec<String>,
        name: String,
    }
    let message: Message = serde_json::from_str(line).ok()?;
    Some(Artifact { kind: message.target.kind.into_iter().next()?, name: message.target.name, path: message.executable? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_tests_are_told_from_other_artifacts() {
        let line = |kind: &str, name: &str| {
            format!(r#"{{"reason":"compiler-artifact","target":{{"kind":["{kind}"],"name":"{name}"}},"executable":"/t/{name}-1"}}"#)
        };
        let lines =
            [line("bin", "vm"), line("test", "host"), line("test", "vm"), r#"{"reason":"build-finished","success":true}"#.to_owned()];
        let found: Vec<Artifact> = lines.iter().filter_map(|line| artifact(line)).collect();
        assert_eq!(found.len(), 3);
        assert_eq!(found[2], Artifact { kind: "test".to_owned(), name: "vm".to_owned(), path: PathBuf::from("/t/vm-1") });
        assert_eq!(path_of(&found, "test", "vm").unwrap(), Path::new("/t/vm-1"));
        assert_eq!(path_of(&found, "test", "pair").unwrap_err().to_string(), "cargo built no test `pair`");
        // A library has no program.
        assert_eq!(artifact(r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"vm"},"executable":null}"#), None);
    }
}
