//! A delay in user space, between the wake-up and the poll, lands in the return to user space.
//!
//! The client runs inside of this test program, whose `ibv_get_cq_event` is slow now and then; the server is the program. Ignored by
//! default: `cargo xtask test` runs it inside the guest.
#[path = "vm/injector.rs"]
#[expect(dead_code, reason = "this test needs a part of it only")]
mod injector;
#[path = "vm/judge.rs"]
mod judge;
#[path = "vm/program.rs"]
#[expect(dead_code, reason = "this test needs a part of it only")]
mod program;
#[path = "vm/slow_reader.rs"]
mod slow_reader;

use judge::{Case, Rule};
use program::rdmascope;
use rdma_userspace::control::token::Token;
use rdma_userspace::probes::Level;
use rdma_userspace::runner::{Mode, OpKind};
use rdma_userspace::session::{self, CpuChoice, Options, Target};
use std::time::Duration;

const DELAY_NS: u64 = 120_000_000;
const ADDRESS: &str = "127.0.0.1:18711";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[test]
#[ignore = "runs in the VM"]
fn a_spin_between_wake_up_and_poll_is_the_return_to_user_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, format!("{TOKEN}\n")).expect("a token file");
    let token = token.to_str().expect("a plain path");
    let _server = rdmascope(&["serve", "--once", "--bind", ADDRESS, "--device", "rxe0", "--token-file", token]);
    let out = folder.path().join("out");
    let options = Options {
        ring_bytes: 16 << 20,
        target: Target::Host { address: ADDRESS.to_owned(), token: Token::parse(TOKEN, "the test").expect("a token") },
        device: Some("rxe0".to_owned()),
        port: 1,
        gid_index: None,
        server_gid_index: None,
        ops: vec![OpKind::Send],
        modes: vec![Mode::Event],
        server_mode: None,
        size_bytes: 64,
        samples: 20_000,
        level: Level::Std,
        peer_capture: false,
        cpu: CpuChoice::Cpu(1),
        server_cpu: CpuChoice::Cpu(0),
        comp_vector: 0,
        out: out.clone(),
        connect_timeout: Duration::from_secs(60),
        warm_up_max: Duration::from_secs(90),
        quiet: true,
        progress_json: None,
    };
    slow_reader::start(DELAY_NS, 100_000_000);
    let outcome = session::run(options);
    let log = slow_reader::stop();
    outcome.expect("the session runs to its end");
    // The spin ends before the call returns, and the runner stamps the end of its wait after that.
    let hits = judge::check(&out, &log, &Case { stages: &["return to user"], delay_ns: DELAY_NS, rule: Rule::Overlaps });
    judge::check_culprit(&hits, "none_seen", None);
}
