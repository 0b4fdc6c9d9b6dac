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
        (vec!["run", "--loopback", "-s", "-1"], "invalid value '-1' for '--size"),
        (vec!["run", "--loopback", "--comp-vector", "-1"], "invalid value '-1' for '--comp-vector"),
        (vec!["trace", "--pid", "-1"], "invalid value '-1' for '--pid"),
        (vec!["run", "--loopback", "--port", "0"], "--port"),
        (vec!["serve", "--port", "0"], "--port"),
        (vec!["serve", "--max-memory", "0"], "--max-memory"),
        (vec!["soft-roce", "up", "no-such-netdev"], "no-such-netdev"),
        (vec!["doctor", "--bundle", "new.json"], "--fire"),
        (vec!["doctor", "--fire"], "--fire <DEVICE>"),
        (vec!["doctor", "--fire", "rxe0", "--probes"], "--probes"),
        (vec!["doctor", "--fire", "rxe0", "--kallsyms", "x"], "--kallsyms"),
        (vec!["doctor", "--fire", "rxe0", "--device", "rxe0"], "--device"),
        (vec!["doctor", "--fire", "no_such_device", "--bundle", file], "overwrites nothing"),
        (vec!["doctor", "--fire", "no_such_device", "--bundle", "/no/such/folder/new"], "cannot be written"),
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
fn a_device_that_is_not_there_cannot_be_proven_and_leaves_no_bundle() {
    let dir = tempfile::tempdir().expect("dir");
    let bundle = dir.path().join("bundle.json");
    // A name is no path, either.
    for device in ["no_such_device", "../net/lo"] {
        let (code, text) = end(&["doctor", "--fire", device, "--bundle", bundle.to_str().expect("plain")]);
        assert_eq!(code, Some(69), "{device}: {text}");
        assert!(text.contains("no RDMA device"), "{text}");
        assert!(!bundle.exists(), "an empty bundle is left behind");
    }
}

#[test]
fn the_help_of_doctor_tells_of_the_proof_and_its_bundle() {
    let (code, text) = end(&["doctor", "--help"]);
    assert_eq!(code, Some(0), "{text}");
    for words in ["--fire <DEVICE>", "--bundle <FILE>", "sent to strangers", "sudo rdmascope doctor --fire mlx5_0"] {
        assert!(text.contains(words), "`{words}` is not in\n{text}");
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

fn extract_of(kernel: &str, file: &str) -> String {
    format!("{}/tests/fixtures/kernels/{kernel}/{file}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_plan_of_another_machine_needs_only_its_files() {
    let (kallsyms, btf) = (extract_of("6.12", "proc/kallsyms"), extract_of("6.12", "sys/kernel/btf/vmlinux"));
    let modules = extract_of("6.12", "proc/modules");
    let of_mlx5 = format!("mlx5_core={}", extract_of("6.12", "sys/kernel/btf/mlx5_core"));
    let arguments = ["doctor", "--probes", "--kallsyms", &kallsyms, "--btf", &btf, "--module-btf", &of_mlx5, "--modules", &modules];
    let (code, text) = end(&arguments);
    assert_eq!(code, Some(0), "{text}");
    for words in [
        "chain: K1 (K1b `irq_int_handler`)",
        "mlx5_core:mlx5_add_cq_to_tasklet",
        "tracepoint `tasklet_entry` covers it",
        "silent by design while polling",
        "mlx5_core_cq.irqn",
        "Not there: ",
    ] {
        assert!(text.contains(words), "`{words}` is not in\n{text}");
    }

    let (code, text) = end(&["doctor", "--probes", "--json", "--root", &extract_of("5.10", "")]);
    assert_eq!(code, Some(0), "{text}");
    let plan: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let hooks = plan["drivers"].as_array().expect("drivers").iter().flat_map(|driver| driver["hooks"].as_array().expect("hooks"));
    let tasklet = hooks.into_iter().find(|hook| hook["hook"] == "K4 mlx5 tasklet").expect("planned");
    assert_eq!((tasklet["symbol"].as_str(), tasklet["level"].as_str()), (Some("mlx5_core:mlx5_cq_tasklet_cb"), Some("std")));
}

#[test]
fn a_damaged_file_of_another_machine_is_named_with_its_fault() {
    let dir = tempfile::tempdir().expect("dir");
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).expect("writes");
        path.to_str().expect("plain").to_owned()
    };
    let kallsyms = extract_of("6.12", "proc/kallsyms");
    let vmlinux = extract_of("6.12", "sys/kernel/btf/vmlinux");
    let whole = std::fs::read(&vmlinux).expect("reads");
    let (text_file, cut) = (file("text", b"not a symbol\n"), file("cut", &whole[..whole.len() / 2]));
    let (zeros, listing) = (file("zeros", &[0; 4096]), file("listing", b"Module Size Used by\n"));
    let named = format!("mlx5_ib={cut}");
    let unknown = format!("nosuch={vmlinux}");
    let pipe = dir.path().join("pipe").to_str().expect("plain").to_owned();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    for (arguments, words) in [
        (vec!["--kallsyms", &text_file], "holds no kernel symbol"),
        (vec!["--kallsyms", "/no/such/file"], "/no/such/file"),
        // These would never end.
        (vec!["--kallsyms", "/dev/zero"], "/dev/zero: it is not a regular file"),
        (vec!["--kallsyms", &pipe], "it is not a regular file"),
        (vec!["--kallsyms", &kallsyms, "--btf", &pipe], "it is not a regular file"),
        (vec!["--kallsyms", &kallsyms, "--btf", &cut], "BTF of vmlinux: the data ends before byte"),
        (vec!["--kallsyms", &kallsyms, "--btf", &zeros], "BTF of vmlinux: not BTF"),
        (vec!["--kallsyms", &kallsyms, "--btf", "/no/such/btf"], "/no/such/btf"),
        (vec!["--kallsyms", &kallsyms, "--btf", &vmlinux, "--module-btf", &named], "BTF of mlx5_ib: the data ends"),
        (vec!["--kallsyms", &kallsyms, "--modules", &listing], "line 1: not a line of /proc/modules"),
        (vec!["--root", "/no/such/folder"], "/no/such/folder/proc/kallsyms"),
    ] {
        let (code, text) = end(&[&["doctor", "--probes"], arguments.as_slice()].concat());
        assert_eq!(code, Some(1), "{arguments:?}: {text}");
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
    let with_btf = ["doctor", "--probes", "--kallsyms", &kallsyms, "--btf", &vmlinux];
    for arguments in [
        vec!["doctor", "--kallsyms", &kallsyms],
        [&with_btf[..], &["--module-btf", "x"]].concat(),
        [&with_btf[..], &["--module-btf", &unknown]].concat(),
        vec!["doctor", "--probes", "--device", "rxe0"],
    ] {
        assert_eq!(end(&arguments).0, Some(2), "{arguments:?}");
    }
}
