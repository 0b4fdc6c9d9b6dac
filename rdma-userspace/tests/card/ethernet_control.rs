//! The control for the hook that is always silent for user-space verbs: a kernel consumer makes `mlx5_ib_poll_cq` fire.
//!
//! The connection manager is one: its management packets go through queue pair 1, whose completions the kernel polls. It finds a local
//! address without a subnet manager on Ethernet alone, so xtask leaves this module out of guests whose card is on InfiniBand.
//!
//! Ignored by default: `cargo xtask test` runs them inside the guest.

use crate::support::program::Program;
use capture::Level;
use rdmascope_core::probes::{Config, Plan, Probes};
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const HOOK: &str = "mlx5_ib_poll_cq (kernel consumers)";
const PATIENCE: Duration = Duration::from_secs(100);

/// The address of the card's network device, by the GID that stands for it.
fn address() -> Ipv4Addr {
    let gid = |index: u32| fs::read_to_string(format!("/sys/class/infiniband/mlx5_0/ports/1/gids/{index}")).unwrap_or_default();
    let mapped = |index: u32| gid(index).trim().parse::<Ipv6Addr>().ok()?.to_ipv4_mapped();
    (0..8).find_map(mapped).expect("a GID with an IPv4 address")
}

fn hits(probes: &Probes) -> u64 {
    let hook = probes.hooks().expect("hooks").into_iter().find(|hook| hook.planned.hook == HOOK).expect("planned");
    assert!(hook.attached, "{}", hook.planned.reason);
    hook.hits
}

/// Runs `ib_send_lat` against itself, with these arguments more.
fn exchange(more: &[&str]) {
    let arguments = [&["-d", "mlx5_0", "-n", "100", "-s", "64", "-F", "-p", "18597"], more].concat();
    let mut server = Program::start("ib_send_lat", &arguments);
    // It has to listen first, and says so in no way.
    std::thread::sleep(Duration::from_secs(1));
    let address = address().to_string();
    let mut client = Program::start("ib_send_lat", &[&arguments[..], &[address.as_str()]].concat());
    for program in [&mut client, &mut server] {
        let end = program.end_within(PATIENCE);
        assert_eq!(end.code, Some(0), "{}", end.text);
    }
}

#[test]
#[ignore = "runs in the VM"]
fn a_kernel_consumer_makes_the_kernels_poll_fire_and_user_space_does_not() {
    let loaded = Command::new("modprobe").arg("rdma_ucm").status().expect("modprobe is there");
    assert!(loaded.success(), "rdma_ucm");
    let plan = Plan::for_kernel(Path::new("/"), Level::Std).expect("facts of the running kernel");
    let mut probes = Probes::load(&plan, &Config::default()).expect("the probes load");
    probes.attach().expect("they attach");
    exchange(&[]);
    let by_user_space = hits(&probes);
    exchange(&["-R"]);
    let by_connection_manager = hits(&probes) - by_user_space;
    println!("{HOOK}: {by_user_space} hits of a program that polls, {by_connection_manager} more with the kernel's connection manager");
    assert_eq!(by_user_space, 0);
    assert!(by_connection_manager > 0, "the probe never fires");
}
