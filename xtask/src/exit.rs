//! Exit codes: what those of xtask, `rdmascope`, `rdmascope-report` and the benches mean (one list, the one in README.md), and
//! errors that carry the code that the process ends with; every other error ends it with 1.

use std::fmt;
use std::process::ExitCode;

/// All went well.
pub const DONE: u8 = 0;
/// Something failed; what, only the program's own words tell.
pub const FAILED: u8 = 1;
/// The command was used wrongly.
pub const USAGE: u8 = 2;
/// The work is done, but more records or samples were lost than the limit.
pub const LOSS: u8 = 3;
/// A goal was not met.
pub const GATE: u8 = 4;
/// The machine was too noisy to say.
pub const UNSTABLE: u8 = 5;
/// Something that the job needs is missing: a package, a device, a virtual machine.
pub const INFRASTRUCTURE: u8 = 69;

/// An error with the exit code that it asks for.
#[derive(Debug)]
pub struct Coded {
    /// Exit code of the process.
    pub code: u8,
    /// What is said to the user.
    pub message: String,
}

impl fmt::Display for Coded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Coded {}

/// An error for something that the job needs and that is not there (exit 69).
pub fn infrastructure(message: impl Into<String>) -> anyhow::Error {
    coded(INFRASTRUCTURE, message)
}

/// An error that ends the process with `code`.
pub fn coded(code: u8, message: impl Into<String>) -> anyhow::Error {
    Coded { code, message: message.into() }.into()
}

/// The exit code that an error stands for: that of the first [`Coded`] error in its chain, else 1.
pub fn code_of(error: &anyhow::Error) -> u8 {
    error.chain().find_map(|cause| cause.downcast_ref::<Coded>()).map_or(FAILED, |coded| coded.code)
}

/// The exit code of a program that was run to its end; one that a signal ended has failed.
pub fn of_program(status: i32) -> u8 {
    u8::try_from(status).unwrap_or(FAILED)
}

/// Prints the error chain once and turns the outcome into the exit code.
pub fn report(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let text = format!("{error:#}");
            // An empty message: everything was said already.
            if !text.is_empty() {
                eprintln!("xtask: {text}");
            }
            ExitCode::from(code_of(&error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;
    use anyhow::Context;

    #[test]
    fn the_code_survives_added_context() {
        let error = Err::<(), _>(infrastructure("no qemu")).context("booting").unwrap_err();
        assert_eq!(code_of(&error), 69);
        assert_eq!(code_of(&anyhow::anyhow!("plain")), 1);
    }
    #[test]
    fn the_readme_lists_these_codes() {
        let readme = std::fs::read_to_string(paths::root().join("README.md")).unwrap();
        let section = readme.split("## Exit codes\n").nth(1).unwrap().split("\n## ").next().unwrap().replace('\n', " ");
        let listed: Vec<u8> = section.split('·').map(|entry| entry.split_whitespace().next().unwrap().parse().unwrap()).collect();
        assert_eq!(listed, [DONE, FAILED, USAGE, LOSS, GATE, UNSTABLE, INFRASTRUCTURE]);
    }

    #[test]
    fn a_program_that_a_signal_ended_has_failed() {
        assert_eq!([0, 3, 255, 256, -1].map(of_program), [0, 3, 255, FAILED, FAILED]);
    }
}
