//! soft-roce, doctor and the host facts on a real kernel: runs as root inside the guest of `cargo xtask vm`, where `rxe0` is.
use rdmascope_core::doctor::{self, Options, Severity};
use rdmascope_core::machine::{self, GidType, Root, device, interrupts};
use rdmascope_core::soft_roce::{self, SoftRoceError};
use std::process::Command;
use std::time::Duration;

/// These tests make interfaces and devices: only in the guest, which says so.
fn in_guest() {
    assert_eq!(std::env::var("RDMASCOPE_VM").as_deref(), Ok("1"), "runs inside the guest of `cargo xtask vm run` only");
}

fn ip(args: &str) {
    let output = Command::new("ip").args(args.split_whitespace()).output().expect("ip runs");
    assert!(output.status.success(), "ip {args}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A dummy interface that goes away with the test.
struct Dummy(&'static str);

impl Dummy {
    fn new(name: &'static str) -> Self {
        let output = Command::new("modprobe").arg("dummy").output().expect("modprobe runs");
        assert!(output.status.success(), "modprobe dummy: {}", String::from_utf8_lossy(&output.stderr));
        ip(&format!("link add {name} type dummy"));
        Self(name)
    }
}

impl Drop for Dummy {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "delete", self.0]).output();
    }
}

#[test]
#[ignore = "runs in the VM"]
fn status_sees_rxe0() {
    in_guest();
    let status = soft_roce::status();
    assert!(status.module_loaded);
    let rxe0 = status.rxe.iter().find(|device| device.name == "rxe0").expect("rxe0");
    let port = &rxe0.ports[0];
    assert!(port.is_active(), "{port:?}");
    assert_eq!(port.best_gid().map(|gid| gid.kind), Some(GidType::RoceV2), "{:?}", port.gids);
    let text = status.to_string();
    assert!(text.contains("rxe0  rdma_rxe on ") && text.contains("ACTIVE"), "{text}");
}

#[test]
#[ignore = "runs in the VM"]
fn a_second_device_goes_up_and_down() {
    in_guest();
    let dummy = Dummy::new("dum1");
    let refused = soft_roce::up("dum1", "rxe1").expect_err("the interface is down");
    assert!(refused.to_string().contains("ip link set dev dum1 up"), "{refused}");
    ip("link set dev dum1 up");
    ip("address add 10.88.0.1/24 dev dum1");

    let up = soft_roce::up("dum1", "rxe1").expect("made");
    assert_eq!((up.device.name.as_str(), up.device.netdev.as_deref()), ("rxe1", Some("dum1")));
    let best = up.device.ports[0].best_gid().expect("a GID").clone();
    assert_eq!((best.gid.to_string().as_str(), best.netdev.as_deref()), ("::ffff:10.88.0.1", Some("dum1")));
    assert!(up.to_string().contains("run --loopback --device rxe1"), "{up}");
    // Another program sees it, too.
    let seen = Command::new("ibv_devinfo").args(["-d", "rxe1"]).output().expect("ibv_devinfo runs");
    let seen = String::from_utf8_lossy(&seen.stdout).into_owned();
    assert!(seen.contains("rxe1") && seen.contains("PORT_ACTIVE"), "{seen}");

    let taken = soft_roce::up("dum1", "rxe2").expect_err("one per interface");
    assert!(matches!(&taken, SoftRoceError::NetdevTaken { name, .. } if name == "rxe1"), "{taken}");
    let _other = Dummy::new("dum2");
    ip("link set dev dum2 up");
    let taken = soft_roce::up("dum2", "rxe1").expect_err("the name is taken");
    assert_eq!(taken.to_string(), "there is already an RDMA device `rxe1`: rdma_rxe on dum1");

    let down = soft_roce::down("rxe1").expect("removed");
    assert_eq!(down.netdev.as_deref(), Some("dum1"));
    assert_eq!(device::device(&Root::live(), "rxe1"), None);
    assert!(soft_roce::status().rxe.iter().any(|device| device.name == "rxe0"), "rxe0 stays");
    drop(dummy);
}

#[test]
#[ignore = "runs in the VM"]
fn an_interface_without_an_address_is_usable_and_said() {
    in_guest();
    let _dummy = Dummy::new("dum3");
    ip("link set dev dum3 up");
    let up = soft_roce::up("dum3", "rxe3").expect("made");
    let port = &up.device.ports[0];
    assert!(port.best_gid().is_none() && port.gids.iter().all(|entry| entry.gid.is_link_local()), "{:?}", port.gids);
    assert!(up.notes.iter().any(|note| note.contains("link-local")), "{:?}", up.notes);
    soft_roce::down("rxe3").expect("removed");
}

#[test]
#[ignore = "runs in the VM"]
fn wrong_arguments_say_what_there_is() {
    in_guest();
    let error = soft_roce::up("nonet0", "rxe9").expect_err("no such interface");
    assert!(error.to_string().contains("this machine has: ") && error.to_string().contains("lo"), "{error}");
    assert_eq!(error.exit_code(), 2);
    let error = soft_roce::down("rxe9").expect_err("no such device");
    assert!(error.to_string().contains("rxe0"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[test]
#[ignore = "runs in the VM"]
fn the_doctor_names_rxe0_its_gid_and_btf() {
    in_guest();
    let findings = doctor::run(&Options::default());
    let text = findings.text(false);
    println!("{text}");
    assert_eq!(findings.exit_code(), 0, "{text}");
    let rxe0 = findings.devices.iter().find(|device| device.name == "rxe0").expect("rxe0");
    assert_eq!(rxe0.driver.as_deref(), Some("rdma_rxe"));
    let best = rxe0.ports[0].best_gid().expect("a GID");
    assert!(text.contains("rxe0 (rdma_rxe)") && text.contains(&best.gid.to_string()), "{text}");
    let ok = |id: &str| {
        let finding = findings.findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("no {id}: {text}"));
        assert_eq!(finding.severity, Severity::Ok, "{finding:?}");
    };
    for id in [
        "device.node",
        "verbs.library",
        "verbs.provider",
        "probes.rights",
        "probes.btf",
        "probes.kprobes",
        "probes.tracefs",
        "device.stack",
    ] {
        ok(id);
    }
    // A kernel without types of modules (5.10) says so, and that is no failure.
    let modules = findings.findings.iter().find(|finding| finding.id == "probes.module_btf").expect("modules are loaded");
    assert_eq!(modules.severity == Severity::Ok, std::path::Path::new("/sys/kernel/btf/ib_core").exists(), "{modules:?}");
}

#[test]
#[ignore = "runs in the VM"]
fn the_host_is_told_as_it_is() {
    in_guest();
    let host = machine::host();
    let uname = Command::new("uname").arg("-r").output().expect("uname runs");
    assert_eq!(host.kernel, String::from_utf8_lossy(&uname.stdout).trim());
    let accel = std::env::var("RDMASCOPE_ACCEL").expect("the guest says what runs it");
    assert_eq!(host.emulated, accel.starts_with("tcg"), "{host:?}");
    assert!(host.hypervisor.is_some() && host.cpus > 0 && host.memory_bytes > 0, "{host:?}");
    assert!(interrupts::read(Root::live()).is_ok_and(|table| !table.is_empty()));

    let before = machine::machine_busy_ns().expect("/proc/stat");
    let end = std::time::Instant::now() + Duration::from_millis(300);
    let mut spins = 0_u64;
    while std::time::Instant::now() < end {
        spins = std::hint::black_box(spins + 1);
    }
    let busy_ns = machine::machine_busy_ns().expect("/proc/stat") - before;
    assert!(busy_ns >= 100_000_000, "{busy_ns} ns busy in 300 ms of spinning");
}
