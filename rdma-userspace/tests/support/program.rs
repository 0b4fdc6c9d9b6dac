//! A program that a test starts, watches and ends. Nothing waits without a deadline, and nothing outlives its test.
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A running program; killed when dropped.
pub struct Program {
    child: Child,
    name: String,
    text: Arc<Mutex<String>>,
    readers: Vec<std::thread::JoinHandle<()>>,
}

/// How a program ended.
pub struct End {
    /// Its exit code; `None`: by a signal.
    pub code: Option<i32>,
    /// Everything that it wrote.
    pub text: String,
}

/// The program under test.
pub fn rdmascope(arguments: &[&str]) -> Program {
    Program::start("rdmascope", arguments)
}

/// Looks again and again until `condition` holds; `false` when it did not in time.
pub fn wait_for(deadline: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < deadline {
        if condition() {
            return true;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    condition()
}

impl Program {
    /// Starts a program of the PATH.
    pub fn start(name: &str, arguments: &[&str]) -> Program {
        let mut child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let text = Arc::new(Mutex::new(String::new()));
        let stdout = collect(child.stdout.take().expect("piped"), Arc::clone(&text));
        let stderr = collect(child.stderr.take().expect("piped"), Arc::clone(&text));
        Program { child, name: format!("{name} {}", arguments.join(" ")), text, readers: vec![stdout, stderr] }
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has written so far.
    pub fn text(&self) -> String {
        self.text.lock().expect("no reader panics").clone()
    }

    /// Is it still there?
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal by name, such as `KILL` or `INT`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.id().to_string()]).status().expect("kill is there");
        assert!(sent.success(), "no process {} to signal", self.id());
    }

    /// Where its threads are, in the kernel too: what keeps a program from ending.
    fn threads(&self) -> String {
        let folder = format!("/proc/{}/task", self.id());
        let tasks = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let text = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        tasks.map(|task| format!("{}{}", text(task.path().join("stat")), text(task.path().join("stack")))).collect()
    }

    /// Waits for its end; a program that goes on is a failure.
    pub fn end_within(&mut self, deadline: Duration) -> End {
        let mut status = None;
        wait_for(deadline, || {
            status = self.child.try_wait().expect("our child");
            status.is_some()
        });
        let status = status.unwrap_or_else(|| {
            let threads = self.threads();
            panic!("{} did not end within {} s; it said: {}\nits threads:\n{threads}", self.name, deadline.as_secs(), self.text())
        });
        for reader in self.readers.drain(..) {
            reader.join().expect("readers do not panic");
        }
        End { code: status.code(), text: self.text() }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut from: impl Read + Send + 'static, into: Arc<Mutex<String>>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            into.lock().expect("no reader panics").push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    })
}
