//! Exit codes: an error may carry the code that the process ends with; every other error ends it with 1.

use std::fmt;
use std::process::ExitCode;

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
    error.chain().find_map(|cause| cause.downcast_ref::<Coded>()).map_or(1, |coded| coded.code)
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
    use anyhow::Context;

    #[test]
    fn the_code_survives_added_context() {
        let error = Err::<(), _>(infrastructure("no qemu")).context("booting").unwrap_err();
        assert_eq!(code_of(&error), 69);
        assert_eq!(code_of(&anyhow::anyhow!("plain")), 1);
    }
}
