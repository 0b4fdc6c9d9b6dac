//! The proof of bypass in a guest with soft-RoCE: one write to the device file per post, no socket, and a counter that is alive.
//!
//! Ignored by default: `cargo xtask test` runs them inside the guest.

use crate::support::program::rdmascope;
use analysis::report::model::{Report, RunReport};
use capture::manifest::SyscallCount;
use rdmascope_core::probes::SyscallCounter;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(400);

fn measure(out: &Path, arguments: &[&str]) -> Report {
    let out = out.to_str().expect("a plain path");
    let usual = ["compare", "--loopback", "--device", "rxe0", "--no-report", "--quiet", "--out", out];
    let end = rdmascope(&[&usual, arguments].concat()).end_within(PATIENCE);
    assert_eq!(end.code, Some(0), "{}", end.text);
    analysis::report::of_folder(Path::new(out)).expect("the captures open")
}

fn calls(of: &[SyscallCount], name: &str) -> u64 {
    of.iter().filter(|it| it.name == name).map(|it| it.calls).sum()
}

fn run_of<'a>(report: &'a Report, op: &str, mode: &str) -> &'a RunReport {
    let found = report.runs.iter().find(|run| run.manifest.run.op.name() == op && run.manifest.run.mode.name() == mode);
    found.unwrap_or_else(|| panic!("no run {op} {mode}"))
}

#[test]
#[ignore = "runs in the VM"]
fn a_polling_round_writes_once_per_post_and_touches_no_socket() {
    let out = tempfile::tempdir().expect("a folder");
    let report = measure(out.path(), &["--op", "send,read,write-pp", "-n", "1000"]);
    for run in &report.runs {
        let name = format!("{} {}", run.manifest.run.op, run.manifest.run.mode);
        let bypass = run.bypass.as_ref().unwrap_or_else(|| panic!("{name}: nothing of it"));
        println!("{name}: {bypass:?}");
        assert_eq!(bypass.is_proven, Some(true), "{name}");
        assert_eq!((bypass.tcp_sent_bytes, bypass.tcp_received_bytes), (Some(0), Some(0)), "{name}");
        assert!(bypass.operations >= 1_000, "{name}: {bypass:?}");
        let counted = bypass.calls.as_ref().unwrap_or_else(|| panic!("{name}: {:?}", bypass.calls_absent));
        assert!(counted.operations >= 900 && counted.socket_calls == 0, "{name}: {counted:?}");
        // A round by itself takes a few calls; the counter has seen them, so that it was alive there too.
        assert!(!counted.frame.is_empty() && counted.frame.iter().map(|it| it.calls).sum::<u64>() <= 30, "{name}: {counted:?}");
        let raw = run.manifest.syscalls.as_ref().expect("recorded");
        if run.manifest.run.mode.spins() {
            // rxe rings its doorbell by a write to the device file: once per post, and nothing else.
            assert_eq!(calls(&raw.calls, "write"), counted.operations, "{name}: {raw:?}");
            assert_eq!(calls(&raw.calls, "read"), 0, "{name}: {raw:?}");
            assert_eq!((bypass.writes, bypass.reads), (Some(bypass.operations), Some(0)), "{name}");
        } else {
            // A write for each post, a call for each arming (an ioctl or, with an older libibverbs, a write too), a read for each event.
            let (posts, arms) = (calls(&raw.calls, "write"), calls(&raw.calls, "ioctl"));
            assert!(posts >= counted.operations && posts + arms >= 2 * counted.operations, "{name}: {raw:?}");
            let events: u64 = run.manifest.rounds.iter().filter(|round| !round.warmup).map(|round| round.events).sum();
            assert!(bypass.reads.is_some_and(|reads| reads >= events), "{name}: {events} events, {:?} reads", bypass.reads);
        }
    }
    assert!(calls(&run_of(&report, "send", "event").manifest.syscalls.as_ref().expect("recorded").calls, "read") > 0);
}

/// The control: calls that were really made are counted, those of other threads are not.
#[test]
#[ignore = "runs in the VM"]
fn the_counter_sees_what_a_thread_calls_and_nothing_of_others() {
    use std::io::Write;
    let mut counter = SyscallCounter::load().expect("loads as root");
    let (tid_in, tid_out) = mpsc::channel();
    let (go_in, go_out) = mpsc::channel::<()>();
    let (done_in, done_out) = mpsc::channel();
    let counted = std::thread::spawn(move || {
        tid_in.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).expect("somebody listens");
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let mut null = std::fs::OpenOptions::new().write(true).open("/dev/null").expect("there");
        go_out.recv().expect("told to go");
        for _ in 0..123 {
            null.write_all(b"x").expect("written");
        }
        for _ in 0..7 {
            socket.send_to(b"x", "127.0.0.1:9").ok();
        }
        done_in.send(()).expect("somebody listens");
        go_out.recv().ok();
    });
    let tid = tid_out.recv().expect("a thread");
    counter.begin(tid).expect("attaches");
    go_in.send(()).expect("the thread lives");
    // This thread writes meanwhile.
    let mut null = std::fs::OpenOptions::new().write(true).open("/dev/null").expect("there");
    (0..1000).for_each(|_| null.write_all(b"x").expect("written"));
    done_out.recv().expect("done");
    let found = counter.end().expect("read");
    let of = |number: libc::c_long| found.iter().find(|(it, _)| libc::c_long::from(*it) == number).map_or(0, |(_, calls)| *calls);
    assert_eq!((of(libc::SYS_write), of(libc::SYS_sendto)), (123, 7), "{found:?}");
    // Detached: nothing more is counted, and a second count begins at 0.
    counter.begin(tid).expect("attaches again");
    assert_eq!(counter.end().expect("read").iter().filter(|(it, _)| libc::c_long::from(*it) == libc::SYS_write).count(), 0);
    drop(go_in);
    counted.join().expect("ends");
}
