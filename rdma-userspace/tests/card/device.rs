//! The card itself: the kernel's own driver has it, and its completions raise interrupts, before anything of this project looks at it.
//!
//! Ignored by default: `cargo xtask test` runs them inside the guest, and names the link there (`CARD`).

use crate::support::program::Program;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DEVICE: &str = "/sys/class/infiniband/mlx5_0";
const PATIENCE: Duration = Duration::from_secs(100);
const ITERATIONS: u64 = 200;

fn text(path: &str) -> String {
    let path = Path::new(DEVICE).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).trim().to_owned()
}

fn link(path: &str) -> PathBuf {
    let path = Path::new(DEVICE).join(path);
    fs::read_link(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Interrupts so far whose name begins with `name`, on all CPUs.
fn interrupts(name: &str) -> u64 {
    let table = fs::read_to_string("/proc/interrupts").expect("interrupts");
    let cpus = table.lines().next().map_or(0, |head| head.split_whitespace().count());
    let ours = table.lines().filter(|line| line.split_whitespace().last().is_some_and(|it| it.starts_with(name)));
    let counts = ours.flat_map(|line| line.split_whitespace().skip(1).take(cpus));
    counts.map(|count| count.parse::<u64>().expect("a count per CPU")).sum()
}

/// The GID that the ping-pong names; on InfiniBand it needs none.
fn gid() -> Option<String> {
    let is_routable = |index: &u32| {
        let gid = text(&format!("ports/1/gids/{index}"));
        gid.starts_with("0000:0000:0000:0000:0000:ffff:") && text(&format!("ports/1/gid_attrs/types/{index}")) == "RoCE v2"
    };
    (text("ports/1/link_layer") == "Ethernet").then(|| (0..8).find(is_routable).expect("a GID of RoCE v2").to_string())
}

#[test]
#[ignore = "runs in the VM"]
fn the_card_is_there_and_is_driven_by_the_kernels_own_driver() {
    assert!(link("device/driver").ends_with("mlx5_core"), "{:?}", link("device/driver"));
    assert_eq!(text("device/vendor"), "0x15b3");
    assert_eq!(text("ports/1/state"), "4: ACTIVE");
    let wanted = std::env::var("CARD").expect("the guest's first process names the link");
    assert_eq!(text("ports/1/link_layer").to_lowercase(), wanted);
    // Out of the distribution's kernel: no module of it is foreign or was forced.
    for module in ["mlx5_core", "mlx5_ib"] {
        let taint = fs::read_to_string(format!("/sys/module/{module}/taint")).expect("the module is loaded");
        assert_eq!(taint.trim(), "", "{module}");
    }
}

#[test]
#[ignore = "runs in the VM"]
fn completions_of_a_foreign_program_raise_interrupts() {
    let before = interrupts("mlx5_comp");
    let (iterations, gid) = (ITERATIONS.to_string(), gid());
    let mut arguments = vec!["-d", "mlx5_0", "-e", "-n", iterations.as_str(), "-p", "18598"];
    if let Some(gid) = &gid {
        arguments.extend(["-g", gid.as_str()]);
    }
    let mut server = Program::start("ibv_rc_pingpong", &arguments);
    // It has to listen first; there is no other sign of it, and the client fails at once when it does not.
    std::thread::sleep(Duration::from_secs(1));
    let mut client = Program::start("ibv_rc_pingpong", &[&arguments[..], &["127.0.0.1"]].concat());
    for program in [&mut client, &mut server] {
        let end = program.end_within(PATIENCE);
        assert_eq!(end.code, Some(0), "{}", end.text);
    }
    // Each message wakes the side that waits for it.
    let raised = interrupts("mlx5_comp") - before;
    println!("{raised} interrupts for {ITERATIONS} round trips");
    assert!(raised >= ITERATIONS, "{raised} interrupts for {ITERATIONS} round trips");
}
