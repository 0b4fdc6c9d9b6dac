//! CQs that exist before the trace, as the kernel lists them. The list comes from the tool `rdma`; without it, or without permission, a CQ
//! is known from its first event on.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use capture::manifest::KnownCq;
use rdmascope_core::machine::Root;
use rdmascope_core::machine::proc_text::field;
use serde::Deserialize;

/// The list is short and comes from the kernel.
const DEADLINE: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Row {
    ifname: String,
    cqn: Option<u32>,
    cqe: Option<u32>,
    /// The thread that created it.
    pid: Option<u32>,
}

/// The CQs of these processes; empty where the list cannot be had.
pub(super) fn existing_cqs(pids: &[u32]) -> Vec<KnownCq> {
    if pids.is_empty() {
        return Vec::new();
    }
    let listed = list().unwrap_or_default();
    parse(&listed, process_of).into_iter().filter(|cq| pids.contains(&cq.tgid)).collect()
}

fn parse(json: &str, process_of: impl Fn(u32) -> Option<u32>) -> Vec<KnownCq> {
    let rows: Vec<serde_json::Value> = serde_json::from_str(json).unwrap_or_default();
    let rows = rows.into_iter().filter_map(|row| serde_json::from_value::<Row>(row).ok());
    rows.filter_map(|row| Some(KnownCq { tgid: process_of(row.pid?)?, restrack_id: row.cqn?, depth: row.cqe, device: row.ifname }))
        .collect()
}

fn list() -> Option<String> {
    let mut command = Command::new("rdma");
    command.args(["-j", "resource", "show", "cq"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut stdout = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let end = Instant::now() + DEADLINE;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= end {
            let _ = child.kill();
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.wait();
    reader.join().ok()?.ok()
}

/// The process of a thread.
fn process_of(thread: u32) -> Option<u32> {
    field(&Root::live().text(format!("/proc/{thread}/status"))?, "Tgid")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_and_kernel_cqs_left_out() {
        let json = r#"[{"ifindex":0,"ifname":"rxe0","cqn":0,"cqe":1023,"users":2,"poll-ctx":"UNBOUND_WORKQUEUE","comm":"ib_core"},
            {"ifindex":0,"ifname":"rxe0","cqn":5,"cqe":501,"users":2,"ctxn":3,"pid":412,"comm":"ibv_rc_pingpong"}]"#;
        let found = parse(json, |thread| Some(thread - 1));
        assert_eq!(found, [KnownCq { tgid: 411, restrack_id: 5, depth: Some(501), device: "rxe0".into() }]);
        assert!(parse("nonsense", Some).is_empty() && parse("[{}]", Some).is_empty());
        assert_eq!(process_of(std::process::id()), Some(std::process::id()));
    }
}
