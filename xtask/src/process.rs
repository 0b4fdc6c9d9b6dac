//! Running other programs: with a clean environment, and with errors that name the command.

use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Whether an inherited variable is kept for a nested program. `CARGO_*` and `RUST*` change how a nested cargo builds (an
/// inherited `CARGO_ENCODED_RUSTFLAGS` silently drops `.BTF`); kept are only where cargo and rustup live and how they reach
/// the network.
fn is_kept(name: &str) -> bool {
    const KEPT: [&str; 6] = ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTR", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];
    if KEPT.iter().any(|kept| name.starts_with(kept)) {
        return true;
    }
    let dropped = ["CARGO", "RUST", "LD_LIBRARY_PATH", "LD_PRELOAD", "MAKEFLAGS", "MFLAGS", "TARGET"];
    !dropped.iter().any(|prefix| name.starts_with(prefix))
}

/// A command that inherits only the harmless part of the environment.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let kept = std::env::vars_os().filter(|(name, _)| is_kept(&name.to_string_lossy()));
    command.env_clear().envs(kept.collect::<Vec<(OsString, OsString)>>());
    command
}

/// The cargo that runs this xtask, for the workspace's own packages.
pub fn cargo() -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(crate::paths::root());
    cargo
}

/// The command line as it could be typed.
pub fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// A word quoted for a POSIX shell where that is needed.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Runs the command with its output shown; fails unless it ends with 0.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("starting `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", line(command));
    }
    Ok(())
}

/// Runs the command and hands on each line of its standard output; its standard error is shown. Killed, and an error, when it
/// takes longer than `deadline`. Returns its exit code, -1 when a signal
/// ended it.
pub fn stream(command: &mut Command, deadline: Duration, mut on_line: impl FnMut(&str)) -> Result<i32> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().with_context(|| format!("starting `{}`", line(command)))?;
    let stdout = child.stdout.take().context("a piped output is there")?;
    let (to, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            if to.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    let start = Instant::now();
    let mut ended = None;
    loop {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => on_line(&line),
            // A grandchild may hold the pipe open after the end: nothing more is waited for.
            Err(mpsc::RecvTimeoutError::Timeout) if ended.is_some() => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) if ended.is_some() => break,
            Err(mpsc::RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(20)),
        }
        if ended.is_none() {
            ended = child.try_wait()?;
        }
        if ended.is_none() && start.elapsed() > deadline {
            child.kill()?;
            child.wait()?;
            bail!("`{}` took longer than {} s", line(command), deadline.as_secs());
        }
    }
    Ok(ended.and_then(|status| status.code()).unwrap_or(-1))
}

/// Runs the command and returns its standard output; its standard error becomes part of the error.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("starting `{}`", line(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}: {}", line(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The path of a program on `PATH` or in the system folders that an ordinary user's `PATH` lacks.
pub fn which(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    let folders = std::env::split_paths(&path).chain(system.iter().map(|folder| Path::new(folder).to_path_buf()));
    folders.map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|itself| itself.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_variables_are_inherited() {
        for kept in ["PATH", "HOME", "CARGO_HOME", "CARGO_HTTP_CAINFO", "RUSTUP_HOME", "http_proxy"] {
            assert!(is_kept(kept), "{kept}");
        }
        for dropped in ["CARGO", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "RUSTFLAGS", "RUSTC", "RUST_LOG", "LD_LIBRARY_PATH"] {
            assert!(!is_kept(dropped), "{dropped}");
        }
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted("a-b/c=1"), "a-b/c=1");
        assert_eq!(quoted("it's so"), r"'it'\''s so'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn lines_are_streamed_and_a_slow_command_is_killed() {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        let code = stream(command.args(["-c", "echo a; echo b; exit 1"]), Duration::from_secs(20), |line| lines.push(line.to_owned()));
        assert_eq!(code.unwrap(), 1);
        assert_eq!(lines, ["a", "b"]);
        let start = Instant::now();
        let error = stream(Command::new("sleep").arg("60"), Duration::from_millis(300), |_| ()).unwrap_err();
        assert!(error.to_string().contains("took longer"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_failing_command_is_named_with_what_it_said() {
        let error = output(Command::new("sh").args(["-c", "echo because >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("because") && error.contains("exit status: 3"), "{error}");
    }
}
