//! Tests of `up`, `down` and `status` on a tree of files, with tools that change it as the kernel would.
use super::down::down_with;
use super::status::status_at;
use super::tools::{ToolOutput, Tools};
use super::up::up_with;
use super::{SoftRoceError, Up};
use crate::machine::fixture::{Tree, base_machine, rxe_machine, write_rxe};
use std::cell::RefCell;
use std::io;
use std::time::Duration;

/// Tools that write what the kernel would show.
struct Fake<'a> {
    tree: &'a Tree,
    calls: RefCell<Vec<String>>,
    missing: &'static [&'static str],
    modules: &'static [&'static str],
    /// Files written over those of a new device.
    twist: &'static [(&'static str, &'static str)],
    refuse: Option<&'static str>,
}

impl<'a> Fake<'a> {
    fn new(tree: &'a Tree) -> Self {
        Self {
            tree,
            calls: RefCell::default(),
            missing: &[],
            modules: &["crc32_generic", "ib_uverbs", "rdma_rxe"],
            twist: &[],
            refuse: None,
        }
    }

    fn calls(&self) -> Vec<String> {
        self.calls.borrow().clone()
    }

    fn up(&mut self, netdev: &str, name: &str) -> Result<Up, SoftRoceError> {
        let root = self.tree.root();
        up_with(&root, self, netdev, name, Duration::from_millis(60))
    }
}

impl Tools for Fake<'_> {
    fn has(&self, program: &str) -> bool {
        !self.missing.contains(&program)
    }

    fn run(&mut self, program: &str, args: &[&str]) -> io::Result<ToolOutput> {
        self.calls.borrow_mut().push(format!("{program} {}", args.join(" ")));
        let done = |text: &str| Ok(ToolOutput { ok: text.is_empty(), text: text.into() });
        match (program, args) {
            ("modprobe", [module]) if self.modules.contains(module) => {
                self.tree.write(&format!("sys/module/{module}/refcnt"), "0\n");
                done("")
            }
            ("modprobe", [module]) => done(&format!("modprobe: FATAL: Module {module} not found in directory /lib/modules/x")),
            ("rdma", ["link", "add", name, "type", "rxe", "netdev", netdev]) => {
                if let Some(text) = self.refuse {
                    return done(text);
                }
                write_rxe(self.tree, name, netdev);
                self.tree.write("sys/class/infiniband_verbs/uverbs0/ibdev", name);
                self.tree.write("dev/infiniband/uverbs0", "");
                self.twist.iter().for_each(|(path, text)| self.tree.write(path, text));
                done("")
            }
            ("rdma", ["link", "delete", name]) => {
                self.tree.remove(&format!("sys/class/infiniband/{name}"));
                done("")
            }
            other => panic!("no such call is expected: {other:?}"),
        }
    }
}

#[test]
fn up_loads_makes_and_says_what_to_run() {
    let tree = base_machine();
    let mut fake = Fake::new(&tree);
    let up = fake.up("eth0", "rxe0").expect("made");
    assert_eq!(
        fake.calls(),
        ["modprobe crc32_generic", "modprobe ib_uverbs", "modprobe rdma_rxe", "rdma link add rxe0 type rxe netdev eth0"]
    );
    assert_eq!(up.device.ports[0].best_gid().map(|gid| gid.index), Some(1));
    let text = up.to_string();
    assert!(text.contains("run --loopback --device rxe0"), "{text}");
    assert!(text.contains("soft-roce down rxe0"), "{text}");
    assert!(text.contains("apt-get install ibverbs-providers"), "the tree has no provider: {text}");
}

#[test]
fn an_interface_with_only_a_link_local_address_is_usable_by_index_and_said() {
    let tree = base_machine();
    let mut fake = Fake { twist: &[("sys/class/infiniband/rxe0/ports/1/gids/1", "::\n")], ..Fake::new(&tree) };
    let up = fake.up("eth0", "rxe0").expect("made");
    assert_eq!(up.device.ports[0].best_gid(), None, "a run takes none by itself");
    let text = up.to_string();
    assert!(text.contains("run --loopback --device rxe0 --gid-index 0 --server-gid-index 0 --op send"), "{text}");
    assert!(text.contains("only the link-local GID fe80::5054:ff:fe12:3456"), "{text}");
    assert!(status_at(&tree.root()).to_string().contains("no GID that a run takes by itself"));
}

#[test]
fn a_kernel_without_crc32_generic_is_fine_and_loaded_modules_are_left_alone() {
    let tree = base_machine().file("sys/module/rdma_rxe/refcnt", "0\n").file("sys/module/ib_uverbs/refcnt", "0\n");
    let mut fake = Fake { modules: &[], ..Fake::new(&tree) };
    fake.up("eth0", "rxe0").expect("made");
    assert_eq!(fake.calls(), ["modprobe crc32_generic", "rdma link add rxe0 type rxe netdev eth0"]);
}

#[test]
fn a_missing_interface_lists_those_that_there_are() {
    let tree = base_machine().file("sys/class/net/lo/flags", "0x9\n").file("sys/class/net/bonding_masters", "\n");
    let mut fake = Fake::new(&tree);
    let error = fake.up("eth9", "rxe0").expect_err("no eth9");
    assert_eq!(error.to_string(), "there is no network interface `eth9`; this machine has: eth0, lo");
    assert_eq!(error.exit_code(), 2);
    assert!(fake.calls().is_empty(), "nothing is changed before");
}

#[test]
fn taken_names_and_interfaces_say_by_what() {
    let tree = rxe_machine().file("sys/class/net/eth1/flags", "0x1003\n");
    let mut fake = Fake::new(&tree);
    let error = fake.up("eth1", "rxe0").expect_err("taken");
    assert_eq!(error.to_string(), "there is already an RDMA device `rxe0`: rdma_rxe on eth0");
    let error = fake.up("eth0", "rxe1").expect_err("taken");
    assert!(matches!(&error, SoftRoceError::NetdevTaken { name, .. } if name == "rxe0"), "{error}");
    assert!(error.to_string().contains("soft-roce down rxe0"), "{error}");
    assert_eq!(error.exit_code(), 2);
    assert!(fake.calls().is_empty());
}

#[test]
fn an_interface_that_is_down_or_without_carrier_is_refused() {
    let tree = base_machine().file("sys/class/net/eth0/flags", "0x1002\n");
    let error = Fake::new(&tree).up("eth0", "rxe0").expect_err("down");
    assert!(error.to_string().contains("sudo ip link set dev eth0 up"), "{error}");
    let tree = base_machine().file("sys/class/net/eth0/carrier", "0\n");
    let error = Fake::new(&tree).up("eth0", "rxe0").expect_err("no carrier");
    assert!(error.to_string().contains("no carrier"), "{error}");
    assert_eq!(error.exit_code(), 1);
}

#[test]
fn names_that_the_kernel_would_refuse() {
    let tree = base_machine();
    for name in ["", "a/b", "-x", "rxe%d", "a b", &"x".repeat(64)] {
        let error = Fake::new(&tree).up("eth0", name).expect_err(name);
        assert!(matches!(error, SoftRoceError::BadName { .. }) && error.exit_code() == 2, "{error}");
    }
}

#[test]
fn without_root_the_exact_command_is_given() {
    let tree = base_machine().file("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n");
    let error = Fake::new(&tree).up("eth0", "rxe7").expect_err("not root");
    let text = error.to_string();
    assert!(text.contains("sudo ") && text.ends_with("soft-roce up eth0 --name rxe7"), "{text}");
    assert_eq!(error.exit_code(), 1);
}

#[test]
fn missing_tools_name_their_package() {
    let tree = base_machine();
    let error = Fake { missing: &["rdma"], ..Fake::new(&tree) }.up("eth0", "rxe0").expect_err("no rdma");
    assert!(error.to_string().ends_with("apt-get install iproute2"), "{error}");
    assert_eq!(error.exit_code(), 69);
    let error = Fake { missing: &["modprobe"], ..Fake::new(&tree) }.up("eth0", "rxe0").expect_err("no modprobe");
    assert!(error.to_string().ends_with("apt-get install kmod"), "{error}");
}

#[test]
fn a_missing_module_says_where_it_is() {
    let cases = [
        ("6.1.0-40-cloud-amd64", "ID=debian\n", "linux-image-amd64"),
        ("6.8.0-45-generic", "NAME=\"Ubuntu\"\nID=ubuntu\n", "linux-modules-extra-6.8.0-45-generic"),
        ("6.1.0-40-amd64", "ID=debian\n", "not installed"),
    ];
    for (kernel, release, advice) in cases {
        let tree = base_machine().file("proc/sys/kernel/osrelease", kernel).file("etc/os-release", release);
        let error = Fake { modules: &["ib_uverbs"], ..Fake::new(&tree) }.up("eth0", "rxe0").expect_err("no rdma_rxe");
        let text = error.to_string();
        assert!(text.contains(advice) && text.contains(kernel) && text.contains("rdma_rxe"), "{text}");
        assert_eq!(error.exit_code(), 69);
    }
}

#[test]
fn what_the_tool_said_is_passed_on() {
    let tree = base_machine();
    let mut fake = Fake { refuse: Some("error: Invalid argument"), ..Fake::new(&tree) };
    let text = fake.up("eth0", "rxe0").expect_err("refused").to_string();
    assert!(text.starts_with("`rdma link add rxe0 type rxe netdev eth0` failed: error: Invalid argument; "), "{text}");
}

#[test]
fn a_device_that_stays_down_is_removed_again() {
    let tree = base_machine();
    let mut fake = Fake { twist: &[("sys/class/infiniband/rxe0/ports/1/state", "1: DOWN\n")], ..Fake::new(&tree) };
    let error = fake.up("eth0", "rxe0").expect_err("down");
    assert!(error.to_string().contains("no active port (state DOWN); it was removed again"), "{error}");
    assert_eq!(fake.calls().last().map(String::as_str), Some("rdma link delete rxe0"));
    assert!(status_at(&tree.root()).rxe.is_empty());
}

#[test]
fn down_removes_rxe_only() {
    let tree = rxe_machine().file("sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
    let root = tree.root();
    let mut fake = Fake::new(&tree);
    let error = down_with(&root, &mut fake, "mlx5_0").expect_err("hardware");
    assert!(matches!(error, SoftRoceError::NotRxe { .. }) && error.exit_code() == 2, "{error}");
    let error = down_with(&root, &mut fake, "rxe9").expect_err("none");
    assert_eq!(error.to_string(), "there is no RDMA device `rxe9`; soft-RoCE devices here: rxe0");
    assert!(fake.calls().is_empty());
    let down = down_with(&root, &mut fake, "rxe0").expect("removed");
    assert_eq!(fake.calls(), ["rdma link delete rxe0"]);
    assert_eq!(down.to_string(), "Removed rxe0 from eth0. The module rdma_rxe stays loaded.\n");
}

#[test]
fn status_lists_devices_and_free_interfaces() {
    let tree = rxe_machine().file("sys/class/net/eth1/flags", "0x1002\n");
    let text = status_at(&tree.root()).to_string();
    assert!(text.contains("rxe0  rdma_rxe on eth0  port 1 ACTIVE (Ethernet)  GID 1 ::ffff:10.0.0.2 RoCE v2"), "{text}");
    assert!(text.contains("eth1  down") && !text.contains("eth0  up") && !text.contains("Make one"), "{text}");

    let text = status_at(&base_machine().root()).to_string();
    assert!(text.contains("No soft-RoCE device (rdma_rxe is not loaded).") && text.contains("soft-roce up eth0 --name rxe0"), "{text}");
}
