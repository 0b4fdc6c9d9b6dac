//! The command line as a user meets it on any host: exit codes, words that teach, and output that nobody reads.
use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

fn rdmascope(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rdmascope"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn end(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = rdmascope(arguments).output().expect("starts");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

#[test]
fn wrong_usage_is_exit_code_2_and_says_what_to_do() {
    let dir = tempfile::tempdir().expect("dir");
    let file = dir.path().join("file");
    std::fs::write(&file, "x").expect("writes");
    let (folder, file) = (dir.path().to_str().expect("plain"), file.to_str().expect("plain"));
    let token = "0123456789abcdef";
    for (arguments, words) in [
        (vec!["run"], "--loopback"),
        (vec!["compare", "host"], "--token-file"),
        (vec!["run", "host", "--token", "short"], "16 to 256"),
        (vec!["run", "host", "--token-file", "/nonexistent"], "/nonexistent"),
        (vec!["run", "--loopback", "--token", token], "--token"),
        (vec!["run", "host", "--token", token, "--out", folder], "is not empty"),
        (vec!["run", "host", "--token", token, "--out", file], "is a file"),
        (vec!["run", "host", "--token", token, "--out", "/proc/self/new"], "--out"),
        (vec!["run", "--loopback", "-n", "-1"], "--samples"),
        (vec!["run", "--loopback", "--port", "0"], "--port"),
        (vec!["serve", "--port", "0"], "--port"),
        (vec!["serve", "--max-memory", "0"], "--max-memory"),
        (vec!["soft-roce", "up", "no-such-netdev"], "no-such-netdev"),
    ] {
        let (code, text) = end(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
}

#[test]
fn a_comparison_in_which_nothing_is_left_to_run_is_refused() {
    let dir = tempfile::tempdir().expect("dir");
    let out = dir.path().join("out");
    let (code, text) =
        end(&["compare", "--loopback", "--op", "write-pp,write-pp", "--mode", "event", "--out", out.to_str().expect("plain")]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("no CQE marks the pong"), "{text}");
    assert!(!out.exists(), "an empty folder is left behind");
}

#[test]
fn a_missing_device_is_exit_code_69() {
    let dir = tempfile::tempdir().expect("dir");
    let out = dir.path().join("out");
    for arguments in [
        &["serve", "--device", "no_such_device"][..],
        &["run", "--loopback", "--device", "no_such_device", "--out", out.to_str().expect("plain")],
    ] {
        let (code, text) = end(arguments);
        assert_eq!(code, Some(69), "{arguments:?}: {text}");
        assert!(text.contains("RDMA device"), "{text}");
    }
}

#[test]
fn a_cause_is_told_once() {
    let (code, text) = end(&["report", "/no/such/folder"]);
    assert_eq!((code, text.matches("No such file").count()), (Some(1), 1), "{text}");
}

#[test]
fn nobody_who_reads_is_no_panic() {
    for arguments in [&["soft-roce", "status"][..], &["doctor"]] {
        let mut child = rdmascope(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
        drop(child.stdout.take());
        let usual = rdmascope(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("starts").code();
        assert_eq!(child.wait().expect("ends").code(), usual, "{arguments:?} into a closed pipe");
    }
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").expect("/dev/full"));
    for arguments in [&["soft-roce", "status"][..], &["doctor"], &["report", "/no/such/folder"]] {
        let status = rdmascope(arguments).stdout(full()).stderr(full()).status().expect("starts");
        assert_eq!(status.code(), Some(1), "{arguments:?} into a full disk");
    }
}
