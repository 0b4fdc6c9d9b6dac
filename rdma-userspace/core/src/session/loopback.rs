//! The server of a loopback session: a process of our own on this host, and what it announces.
use super::SessionError;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Longest wait for the server to say where it listens.
const ANNOUNCEMENT_DEADLINE: Duration = Duration::from_secs(20);

/// What a server announces to the process that started it, on one line of its standard output.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct Announcement {
    /// Where it listens.
    pub address: std::net::SocketAddr,
    /// Its token.
    pub token: String,
}

/// Starts the server process, and waits until it listens.
///
/// # Errors
/// [`SessionError::Loopback`] when it does not come up.
pub(super) async fn start_server(device: &str, port: u8) -> Result<(Announcement, Child), SessionError> {
    let failed = |error: std::io::Error| SessionError::Loopback(error.to_string());
    let program = std::env::current_exe().map_err(failed)?;
    let mut child = Command::new(program)
        .args(["serve", "--once", "--bind", "127.0.0.1:0", "--announce", "--device", device, "--port", &port.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        // Ctrl-C on the terminal is for the client, which then tells the server: both at once would look like a server that failed.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let stdout = child.stdout.take().ok_or_else(|| SessionError::Loopback("it has no output".to_owned()))?;
    let mut line = String::new();
    let read = tokio::time::timeout(ANNOUNCEMENT_DEADLINE, BufReader::new(stdout).read_line(&mut line)).await;
    match read {
        Ok(Ok(bytes)) if bytes > 0 => {}
        Ok(Ok(_)) => return Err(SessionError::Loopback("it ended before it listened; its own message is above".to_owned())),
        Ok(Err(error)) => return Err(failed(error)),
        Err(_) => return Err(SessionError::Loopback(format!("it did not listen within {} s", ANNOUNCEMENT_DEADLINE.as_secs()))),
    }
    let announcement = serde_json::from_str(&line).map_err(|error| SessionError::Loopback(error.to_string()))?;
    Ok((announcement, child))
}
