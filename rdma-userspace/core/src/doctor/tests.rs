//! Tests of the doctor on trees of files; cards and what the probes need have files of their own.
use super::{Finding, Findings, Options, Severity, run};
use crate::machine::Root;
use crate::machine::fixture::{Tree, base_machine, rxe_machine, with_rxe};

pub(super) fn doctor(tree: &Tree, device: Option<&str>) -> Findings {
    run(&Options { device: device.map(str::to_owned), json: false, root: tree.root() })
}

pub(super) fn find<'f>(findings: &'f Findings, id: &str) -> &'f Finding {
    findings.findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("no finding {id}: {findings:#?}"))
}

/// A machine on which everything needed is there.
pub(super) fn good() -> Tree {
    let lib = "usr/lib/x86_64-linux-gnu";
    rxe_machine()
        .file("sys/kernel/security/lsm", "capability\n")
        .file("sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n")
        .file("dev/infiniband/uverbs0", "")
        .file(&format!("{lib}/libibverbs.so.1.14.44.0"), "")
        .link(&format!("{lib}/libibverbs.so.1"), "libibverbs.so.1.14.44.0")
        .file(&format!("{lib}/libibverbs/librxe-rdmav34.so"), "")
        .file("etc/libibverbs.d/rxe.driver", "driver rxe\n")
        .file("sys/kernel/btf/vmlinux", "x")
        .file("sys/bus/event_source/devices/kprobe/type", "8\n")
}

#[test]
fn a_good_machine_has_no_problem() {
    let findings = doctor(&good(), None);
    assert_eq!((findings.exit_code(), findings.count(Severity::Problem)), (0, 0), "{}", findings.text(false));
    for id in
        ["device.port", "device.node", "verbs.library", "verbs.provider", "gid.table", "probes.rights", "probes.btf", "probes.kprobes"]
    {
        assert_eq!(find(&findings, id).severity, Severity::Ok, "{id}");
    }
    let text = findings.text(false);
    assert!(text.contains("rxe0 (rdma_rxe)") && text.contains("::ffff:10.0.0.2"), "{text}");
    assert!(text.ends_with("notes.\n") && text.contains("A measurement is possible"), "{text}");
    assert!(!text.contains('\x1b') && findings.text(true).contains('\x1b'));
}

#[test]
fn atomics_that_would_crash_the_kernel_are_a_warning() {
    let with = |symbols: &str| doctor(&good().file("proc/kallsyms", symbols), None);
    let old = with("0000000000000000 t rxe_requester\t[rdma_rxe]\n");
    let finding = find(&old, "device.atomics");
    assert_eq!((finding.severity, old.exit_code()), (Severity::Warn, 0));
    assert!(finding.effect.as_deref().is_some_and(|effect| effect.contains("crash this kernel")), "{finding:?}");
    let new = with("0000000000000000 t rxe_requester\t[rdma_rxe]\n0000000000000000 t rxe_xmit_packet\t[rdma_rxe]\n");
    assert!(!new.findings.iter().any(|finding| finding.id == "device.atomics"));
}

#[test]
fn no_device_is_a_problem_with_the_command_that_makes_one() {
    let findings = doctor(&base_machine(), None);
    let finding = find(&findings, "device.present");
    assert_eq!((finding.severity, findings.exit_code()), (Severity::Problem, 1));
    assert!(finding.command.as_deref().is_some_and(|command| command.ends_with("soft-roce up eth0 --name rxe0")), "{finding:?}");
}

#[test]
fn a_kernel_without_soft_roce_is_told_with_the_way_out_and_no_command_that_fails() {
    let with = |list: &str| {
        let tree = base_machine().file("proc/sys/kernel/osrelease", "6.1.0-40-cloud-amd64\n");
        let findings = doctor(&tree.file("lib/modules/6.1.0-40-cloud-amd64/modules.dep", list), None);
        let finding = find(&findings, "device.present");
        (finding.command.is_some(), finding.effect.clone().unwrap_or_default())
    };
    let (has_command, effect) = with("kernel/net/core/pktgen.ko:\n");
    assert!(!has_command && effect.contains("rdma_rxe") && effect.contains("linux-image-amd64"), "{effect}");
    assert!(with("kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz: kernel/net/ipv4/udp_tunnel.ko\n").0);
}

#[test]
fn a_wrong_name_says_which_there_are() {
    let findings = doctor(&good(), Some("mlx5_0"));
    assert_eq!(find(&findings, "device.present").found, "no RDMA device `mlx5_0`; devices here: rxe0");
    assert_eq!(findings.exit_code(), 1);
    assert_eq!(doctor(&good(), Some("rxe0")).exit_code(), 0);
}

#[test]
fn what_blocks_the_only_device_is_a_problem_and_beside_a_good_one_a_warning() {
    let down = |tree: Tree, name: &str| tree.file(&format!("sys/class/infiniband/{name}/ports/1/state"), "1: DOWN\n");
    let findings = doctor(&down(good(), "rxe0"), None);
    let port = find(&findings, "device.port");
    assert_eq!((port.severity, findings.exit_code()), (Severity::Problem, 1));
    assert_eq!(port.command.as_deref(), Some("sudo ip link set dev eth0 up"));

    let two = down(with_rxe(good(), "rxe1", "eth1"), "rxe1");
    let findings = doctor(&two, None);
    assert_eq!(findings.exit_code(), 0, "{}", findings.text(false));
    assert!(findings.findings.iter().any(|finding| finding.id == "device.port" && finding.severity == Severity::Warn));
    assert_eq!(doctor(&two, Some("rxe1")).exit_code(), 1);
}

#[test]
fn a_device_that_no_program_can_open_is_a_problem() {
    let tree = good();
    tree.remove("dev/infiniband");
    let findings = doctor(&tree, None);
    assert_eq!(find(&findings, "device.node").command.as_deref(), Some("sudo modprobe ib_uverbs"));
    assert_eq!(findings.exit_code(), 1);
    let tree = good();
    tree.remove("usr/lib");
    let findings = doctor(&tree, None);
    assert_eq!(find(&findings, "verbs.library").severity, Severity::Problem);
}

#[test]
fn gids_that_reach_less_far_are_warned_about() {
    let gids = "sys/class/infiniband/rxe0/ports/1";
    let tree = good().file(&format!("{gids}/gids/1"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
    let findings = doctor(&tree, None);
    assert_eq!(find(&findings, "gid.table").severity, Severity::Warn);
    assert!(find(&findings, "gid.table").effect.as_deref().is_some_and(|effect| effect.starts_with("link-local")));
    assert!(find(&findings, "gid.table").found.starts_with("rxe0 port 1: no GID that a run takes by itself"));
    assert!(findings.text(false).contains("\n        0      -  RoCE v2  link-local "), "{}", findings.text(false));
    assert_eq!(findings.exit_code(), 0, "a run takes it by its index");
    let loopback = good().file(&format!("{gids}/gids/1"), "0000:0000:0000:0000:0000:ffff:7f00:0001\n");
    let found = doctor(&loopback, None);
    assert!(find(&found, "gid.table").effect.as_deref().is_some_and(|effect| effect.starts_with("loopback")));
    let tree = tree.file(&format!("{gids}/gids/0"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
    let findings = doctor(&tree, None);
    assert_eq!((find(&findings, "gid.table").severity, findings.exit_code()), (Severity::Problem, 1));
}

#[test]
fn iwarp_has_no_gid_for_a_run() {
    let base = "sys/class/infiniband/rxe0";
    let tree = good().file(&format!("{base}/node_type"), "4: RNIC\n");
    let findings = doctor(&tree, None);
    let table = find(&findings, "gid.table");
    assert!(table.effect.as_deref().is_some_and(|effect| effect.contains("rdma_cm")), "{table:?}");
    assert_eq!((table.severity, findings.exit_code()), (Severity::Problem, 1));
}

#[test]
fn idle_states_and_governor() {
    let cpu = "sys/devices/system/cpu/cpu0";
    let tree = good()
        .file(&format!("{cpu}/cpufreq/scaling_governor"), "powersave\n")
        .file(&format!("{cpu}/cpuidle/state0/name"), "POLL\n")
        .file(&format!("{cpu}/cpuidle/state0/latency"), "0\n")
        .file(&format!("{cpu}/cpuidle/state1/name"), "C6\n")
        .file(&format!("{cpu}/cpuidle/state1/latency"), "133\n");
    let findings = doctor(&tree, None);
    let idle = find(&findings, "cpu.idle");
    assert_eq!(idle.severity, Severity::Warn);
    assert!(idle.found.contains("C6 133 µs") && idle.effect.as_deref().is_some_and(|effect| effect.contains("133 µs")), "{idle:?}");
    assert_eq!(find(&findings, "cpu.governor").severity, Severity::Warn);

    // A limit in force keeps CPUs out of it, and so does switching the state off.
    let limited = doctor(&tree.file("dev/cpu_dma_latency", "\u{1}\0\0\0"), None);
    assert_eq!(find(&limited, "cpu.idle").severity, Severity::Ok, "{:?}", find(&limited, "cpu.idle"));
    let off = good()
        .file(&format!("{cpu}/cpuidle/state1/name"), "C6\n")
        .file(&format!("{cpu}/cpuidle/state1/latency"), "133\n")
        .file(&format!("{cpu}/cpuidle/state1/disable"), "1\n");
    let off = doctor(&off, None);
    assert!(find(&off, "cpu.idle").found.contains("C6 133 µs (off)"));
    assert_eq!(find(&off, "cpu.idle").severity, Severity::Ok);
}

#[test]
fn settings_that_change_figures_are_warned_about_with_a_command() {
    let cases: &[(&str, &str, &str)] = &[
        ("kernel.clocksource", "sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
        ("probes.jit", "proc/sys/net/core/bpf_jit_enable", "0\n"),
        ("irq.irqbalance", "proc/812/comm", "irqbalance\n"),
        ("cpu.load", "proc/loadavg", "1.93 1.0 0.5 3/200 4242\n"),
        ("kernel.time_namespace", "proc/self/timens_offsets", "monotonic      86400         0\nboottime 0 0\n"),
    ];
    for (id, path, text) in cases {
        let tree = good();
        let before = doctor(&tree, None);
        assert!(before.findings.iter().all(|finding| finding.id != *id || finding.severity == Severity::Ok), "{id} before");
        let after = doctor(&tree.file(path, text), None);
        let finding = find(&after, id);
        assert_eq!(finding.severity, Severity::Warn, "{id}");
        assert!(finding.effect.is_some(), "{id}");
        assert_eq!(after.exit_code(), 0, "{id} does not make a measurement impossible");
    }
}

#[test]
fn interrupts_of_a_software_device_are_those_of_its_interface() {
    let tree = good()
        .file("proc/interrupts", "  CPU0 CPU1\n 38: 0 7 PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0\n")
        .file("proc/irq/38/effective_affinity_list", "1\n")
        .file("sys/devices/pci0000:00/0000:00:03.0/msi_irqs/38", "msix\n")
        .file("sys/devices/pci0000:00/0000:00:03.0/virtio2/uevent", "")
        .link("sys/class/net/eth0/device", "../../../devices/pci0000:00/0000:00:03.0/virtio2");
    let findings = doctor(&tree, None);
    assert_eq!(find(&findings, "irq.vectors").found, "interface eth0, interrupts: 38 virtio2-input.0 → CPU 1");
    assert!(findings.findings.iter().all(|finding| !finding.id.starts_with("pcie.")), "the interface's slot is not the device's");
    let none = doctor(&good(), None);
    assert!(find(&none, "irq.vectors").found.starts_with("rxe0: no interrupt below it"));
}

#[test]
fn emulation_is_named() {
    let tree = good().file("proc/cpuinfo", "model name\t: QEMU TCG CPU version 2.5+\nflags\t\t: hypervisor\n");
    let findings = doctor(&tree, None);
    assert!(find(&findings, "kernel.machine").found.contains("QEMU TCG"));
    assert!(findings.text(false).lines().next().is_some_and(|line| line.contains("(emulated)")));
}

#[test]
fn json_has_the_facts_and_the_added_section() {
    let tree = good();
    let options = Options { device: None, json: true, root: tree.root() };
    let mut findings = run(&options);
    findings.add_section("Probe plan", vec!["K5 completion handler: kprobe ib_uverbs_comp_handler".into()]);
    let mut bytes = Vec::new();
    findings.print(&options, false, &mut bytes).expect("written");
    let json: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(json["devices"][0]["ports"][0]["gids"][1]["kind"], "RoCE v2");
    assert_eq!(json["host"]["kernel"], "6.1.0-40-amd64");
    assert_eq!(json["sections"][0]["title"], "Probe plan");
    assert!(
        json["findings"]
            .as_array()
            .is_some_and(|list| list.iter().any(|finding| finding["id"] == "gid.table" && finding["severity"] == "ok"))
    );
    assert!(findings.text(false).contains("\nProbe plan\n  K5 completion handler"));
}

#[test]
fn a_machine_that_tells_nothing_does_not_panic() {
    let findings = doctor(&Tree::new(), None);
    assert_eq!(findings.exit_code(), 1);
    assert!(find(&findings, "device.present").command.is_none(), "no interface is invented");
    assert!(findings.findings.iter().all(|finding| !finding.area.is_empty()));
}

#[test]
fn this_machine_can_be_looked_at() {
    let findings = run(&Options { device: None, json: false, root: Root::live() });
    assert!(findings.text(false).contains(&findings.host.kernel) && !findings.host.kernel.is_empty());
}
