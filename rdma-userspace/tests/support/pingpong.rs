//! One exchange of `ibv_rc_pingpong -e` over the soft-RoCE device.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const DEVICE: &str = "rxe0";
const PORT: &str = "18599";

/// Server and client. The client is stopped until [`Pingpong::go`].
pub struct Pingpong {
    server: Child,
    client: Child,
}

impl Pingpong {
    /// Starts the server, and the client as a process that waits: both can be tracked before the first message.
    pub fn start(iterations: u32) -> Self {
        let iterations = iterations.to_string();
        let gid = gid_index().to_string();
        let arguments = ["-d", DEVICE, "-g", &gid, "-e", "-p", PORT, "-n", &iterations];
        let server = spawn(Command::new("ibv_rc_pingpong").args(arguments));
        // `read` waits for our line, and `exec` keeps the process id.
        let script = "read line; exec ibv_rc_pingpong \"$@\" 127.0.0.1";
        let client = spawn(Command::new("sh").args(["-c", script, "sh"]).args(arguments));
        Pingpong { server, client }
    }

    /// Lets the client begin.
    pub fn go(&mut self) {
        // The server has to listen first; it does so within milliseconds, and the client fails at once when it does not.
        std::thread::sleep(Duration::from_millis(500));
        drop(self.client.stdin.take().map(|mut pipe| std::io::Write::write_all(&mut pipe, b"go\n")));
    }

    /// Process ids of server and client.
    pub fn pids(&self) -> [u32; 2] {
        [self.server.id(), self.client.id()]
    }

    /// Whether both have ended well; an error text when one has not.
    pub fn is_done(&mut self) -> Result<bool, String> {
        let mut is_done = true;
        for (name, child) in [("server", &mut self.server), ("client", &mut self.client)] {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => {}
                Some(status) => return Err(format!("the {name} of ibv_rc_pingpong ended with {status}: {}", output(child))),
                None => is_done = false,
            }
        }
        Ok(is_done)
    }
}

impl Drop for Pingpong {
    fn drop(&mut self) {
        for child in [&mut self.server, &mut self.client] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(command: &mut Command) -> Child {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("cannot start {:?}: {error}", command.get_program()))
}

fn output(child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(pipe) = &mut child.stderr {
        let _ = pipe.read_to_string(&mut text);
    }
    text
}

/// The device's first GID that maps an IPv4 address, else its first GID.
fn gid_index() -> usize {
    let gids = Path::new("/sys/class/infiniband").join(DEVICE).join("ports/1/gids");
    let gid = |index: usize| std::fs::read_to_string(gids.join(index.to_string())).unwrap_or_default();
    let is_set = |gid: &str| gid.chars().any(|digit| !matches!(digit, '0' | ':' | '\n'));
    assert!(gids.exists(), "no device {DEVICE} in this guest");
    let candidates: Vec<usize> = (0..16).filter(|index| is_set(&gid(*index))).collect();
    let mapped = candidates.iter().find(|index| gid(**index).starts_with("0000:0000:0000:0000:0000:ffff:"));
    *mapped.or(candidates.first()).expect("a GID")
}
