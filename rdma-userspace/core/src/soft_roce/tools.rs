//! Runs the tools `rdma` and `modprobe`, each with a deadline.
use super::error::SoftRoceError;
use std::env;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a tool said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// It ended with 0.
    pub ok: bool,
    /// What it wrote to both streams, trimmed.
    pub text: String,
}

/// Runs tools; tests put their own in.
pub trait Tools {
    /// Is there such a tool?
    fn has(&self, program: &str) -> bool;
    /// Runs it to its end.
    ///
    /// # Errors
    /// It could not be started, or did not end within its deadline ([`io::ErrorKind::TimedOut`]).
    fn run(&mut self, program: &str, args: &[&str]) -> io::Result<ToolOutput>;
}

/// The tools of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemTools;

/// Loading a module can take long on a slow or emulated machine; the tools themselves end at once.
const DEADLINE: Duration = Duration::from_secs(60);

impl Tools for SystemTools {
    fn has(&self, program: &str) -> bool {
        find(program).is_some()
    }

    fn run(&mut self, program: &str, args: &[&str]) -> io::Result<ToolOutput> {
        let path = find(program).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{program} is not installed")))?;
        run_with_deadline(Command::new(path).args(args), DEADLINE)
    }
}

/// `rdma link delete NAME`.
pub(super) fn delete_link(tools: &mut dyn Tools, name: &str) -> Result<(), SoftRoceError> {
    let command = format!("rdma link delete {name}");
    let output =
        tools.run("rdma", &["link", "delete", name]).map_err(|source| SoftRoceError::ToolFailed { command: command.clone(), source })?;
    if output.ok { Ok(()) } else { Err(SoftRoceError::LinkFailed { command, said: output.text, advice: String::new() }) }
}

/// Looks in PATH, then in the folders for administrators, which an ordinary user's PATH does not have.
fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn run_with_deadline(command: &mut Command, deadline: Duration) -> io::Result<ToolOutput> {
    // Both tools write a few lines at most: less than a pipe holds, so that nobody has to read while they run.
    let mut child = command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let end = Instant::now() + deadline;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no end after {} s", deadline.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut bytes = Vec::new();
    if let Some(mut stream) = child.stdout.take() {
        stream.read_to_end(&mut bytes)?;
    }
    if let Some(mut stream) = child.stderr.take() {
        stream.read_to_end(&mut bytes)?;
    }
    Ok(ToolOutput { ok: status.success(), text: String::from_utf8_lossy(&bytes).trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_both_streams_and_the_result() {
        let output = run_with_deadline(Command::new("sh").args(["-c", "echo a; echo b >&2; exit 3"]), DEADLINE).expect("sh runs");
        assert_eq!(output, ToolOutput { ok: false, text: "a\nb".into() });
    }

    #[test]
    fn a_tool_that_hangs_is_ended() {
        let began = Instant::now();
        let error = run_with_deadline(Command::new("sleep").arg("30"), Duration::from_millis(50)).expect_err("it hangs");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_missing_tool_is_said() {
        assert!(!SystemTools.has("no-such-tool-here"));
        assert_eq!(SystemTools.run("no-such-tool-here", &[]).expect_err("missing").kind(), io::ErrorKind::NotFound);
        assert!(SystemTools.has("sh"));
    }
}
