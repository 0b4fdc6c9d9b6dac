//! Delays that begin at a known point of the client's own loop: between the return of the event read and the poll, and before the next post.
//!
//! The client runs inside of this test program, whose `ibv_get_cq_event` does something besides now and then; the server is the program.
//! Ignored by default: `cargo xtask test` runs it inside the guest, as root.

use crate::support::injector::{Injection, Partner, WorkqueueCpus, spin_until};
use crate::support::judge::{self, Case, Rule};
use crate::support::program::rdmascope;
use crate::support::slow_reader;
use analysis::stages::StageId;
use capture::{Level, Mode, Operation};
use ebpf_probes::Kind;
use rdmascope_core::control::token::Token;
use rdmascope_core::probes::{Plan, monotonic_ns};
use rdmascope_core::session::{self, CpuChoice, Options, Target};
use std::path::Path;
use std::time::Duration;

/// Five times what the slowest of the kernels here takes for its slowest sample in a hundred, undisturbed.
const DELAY_NS: u64 = 120_000_000;
const GAP_NS: u64 = 100_000_000;
const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const CLIENT_CPU: u32 = 1;
const OTHER_CPU: u32 = 0;

/// Runs a session of `op` by event from CPU 1 against a server of its own on `port`, and gives what the reader did meanwhile.
fn disturbed(folder: &Path, op: Operation, port: u16) -> Vec<Injection> {
    let address = format!("127.0.0.1:{port}");
    let token = folder.join("token");
    std::fs::write(&token, format!("{TOKEN}\n")).expect("a token file");
    let token = token.to_str().expect("a plain path");
    let _server = rdmascope(&["serve", "--once", "--bind", &address, "--device", "rxe0", "--token-file", token]);
    let options = Options {
        ring_bytes: 16 << 20,
        target: Target::Host { address, token: Token::parse(TOKEN, "the test").expect("a token") },
        device: Some("rxe0".to_owned()),
        port: 1,
        gid_index: None,
        server_gid_index: None,
        ops: vec![op],
        modes: vec![Mode::Event],
        server_mode: None,
        size_bytes: 64,
        samples: 20_000,
        level: Level::Std,
        peer_capture: false,
        cpu: CpuChoice::Cpu(CLIENT_CPU),
        server_cpu: CpuChoice::Cpu(OTHER_CPU),
        comp_vector: 0,
        out: folder.join("out"),
        connect_timeout: Duration::from_secs(60),
        warm_up_max: Duration::from_secs(90),
        quiet: true,
        progress_json: None,
    };
    let outcome = session::run(options);
    let log = slow_reader::stop();
    outcome.expect("the session runs to its end");
    log
}

#[test]
#[ignore = "runs in the VM"]
fn a_spin_between_wake_up_and_poll_is_the_return_to_user_space() {
    let folder = tempfile::tempdir().expect("a folder");
    slow_reader::start(GAP_NS, |log| {
        let begin_ns = monotonic_ns();
        spin_until(begin_ns + DELAY_NS);
        log.injected(begin_ns, monotonic_ns());
    });
    let log = disturbed(folder.path(), Operation::Send, 18_711);
    // The spin ends before the call returns, and the runner stamps the end of its wait after that.
    let case = Case { stages: &[StageId::ReturnToUser], delay_ns: DELAY_NS, rule: Rule::Overlaps };
    let hits = judge::check(&folder.path().join("out"), &log, &case);
    judge::check_culprit(&hits, "none_seen", None);
}

/// Does the plan of this kernel have work items of rxe?
fn has_workqueue() -> bool {
    let plan = Plan::for_kernel(Path::new("/"), Level::Std).expect("facts of this kernel");
    plan.hooks.iter().any(|hook| hook.symbol.is_some() && hook.gives.contains(&Kind::WorkStart))
}

#[test]
#[ignore = "runs in the VM"]
fn a_hog_on_the_workers_cpu_is_the_workqueue() {
    if !has_workqueue() {
        println!("rxe has no work items on this kernel, says the plan: nothing to delay");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // The workers get a CPU of their own. A hog takes it while nothing is under way: the next post has to wait for a worker.
    let _cpus = WorkqueueCpus::only("1");
    let partner = Partner::on(OTHER_CPU);
    // The hog goes on after the read has returned.
    slow_reader::start(DELAY_NS + GAP_NS, move |log| {
        let begin_ns = monotonic_ns();
        let end_ns = begin_ns + DELAY_NS;
        if partner.hold(end_ns, begin_ns + DELAY_NS / 4) {
            log.injected(begin_ns, end_ns);
        } else {
            log.touched(begin_ns, end_ns);
        }
    });
    let log = disturbed(folder.path(), Operation::Read, 18_712);
    let case = Case { stages: &[StageId::RequesterWorkqueue], delay_ns: DELAY_NS, rule: Rule::PostedWithin };
    let hits = judge::check(&folder.path().join("out"), &log, &case);
    judge::check_culprit(&hits, "worker", None);
}
