//! What needs a card: tested on a made-up tree of sysfs, not on hardware. The files and their words are those that the kernel's
//! documentation of sysfs names; no card was there to compare with.
use super::Severity;
use super::tests::{doctor, find, good};
use crate::machine::fixture::{Tree, base_machine};

/// A machine with an mlx5 card: port active at 100 Gb/s, slot of 8 lanes at 8 GT/s, two nodes.
fn mlx5() -> Tree {
    let pci = "sys/devices/pci0000:00/0000:03:00.0";
    let port = "sys/class/infiniband/mlx5_0/ports/1";
    let interrupts = "            CPU0       CPU1
 40:          1          0 PCI-MSIX-0000:03:00.0   0-edge      mlx5_async@pci:0000:03:00.0
 41:          9          0 PCI-MSIX-0000:03:00.0   1-edge      mlx5_comp0@pci:0000:03:00.0
 42:          9          0 PCI-MSIX-0000:03:00.0   2-edge      mlx5_comp1@pci:0000:03:00.0
";
    let mut tree = base_machine()
        .file(&format!("{pci}/current_link_speed"), "8.0 GT/s PCIe\n")
        .file(&format!("{pci}/current_link_width"), "8\n")
        .file(&format!("{pci}/aer_dev_correctable"), "BadTLP 7\nTOTAL_ERR_COR 7\n")
        .file(&format!("{pci}/numa_node"), "1\n")
        .link(&format!("{pci}/driver"), "../../../bus/pci/drivers/mlx5_core")
        .link("sys/class/infiniband/mlx5_0/device", "../../../devices/pci0000:00/0000:03:00.0")
        .file("sys/class/infiniband/mlx5_0/fw_ver", "28.41.1000\n")
        .file(&format!("{port}/state"), "4: ACTIVE\n")
        .file(&format!("{port}/link_layer"), "Ethernet\n")
        .file(&format!("{port}/rate"), "100 Gb/sec (4X EDR)\n")
        .file(&format!("{port}/gids/0"), "0000:0000:0000:0000:0000:ffff:0a00:0002\n")
        .file(&format!("{port}/gid_attrs/types/0"), "IB/RoCE v1\n")
        .file(&format!("{port}/gid_attrs/ndevs/0"), "eth0\n")
        .file("sys/devices/system/node/node0/cpulist", "0\n")
        .file("sys/devices/system/node/node1/cpulist", "1\n")
        .file("proc/sys/kernel/numa_balancing", "1\n")
        .file("proc/interrupts", interrupts)
        .file("sys/module/mlx_compat/initstate", "live\n")
        .file("sys/module/ib_uverbs/initstate", "live\n")
        .file("sys/module/mlx5_core/initstate", "live\n")
        .file("sys/module/mlx5_core/version", "24.10-1.1.4\n")
        .file("sys/kernel/btf/ib_uverbs", "x");
    for irq in 40..43 {
        tree = tree.file(&format!("{pci}/msi_irqs/{irq}"), "msix\n").file(&format!("proc/irq/{irq}/effective_affinity_list"), "0\n");
    }
    tree
}

#[test]
fn a_card_in_a_bad_place() {
    let findings = doctor(&mlx5(), None);
    let warned = |id: &str, word: &str| {
        let finding = find(&findings, id);
        assert_eq!(finding.severity, Severity::Warn, "{finding:?}");
        assert!(finding.found.contains(word), "{finding:?}");
    };
    warned("pcie.link", "63 Gb/s, less than the port's 100 Gb/s");
    warned("pcie.errors", "7 corrected");
    warned("irq.vectors", "all on CPU 0");
    warned("irq.numa", "not on its NUMA node 1 (CPUs 1)");
    warned("gid.table", "RoCE v1");
    warned("memory.numa_balancing", "nodes: 2");
    assert!(find(&findings, "device.stack").found.contains("24.10-1.1.4"));
    assert!(find(&findings, "probes.module_btf").found.ends_with("modules mlx5_core"), "ib_uverbs has its types");
    assert!(find(&findings, "net.flow_control").command.as_deref().is_some_and(|command| command.contains("dcb pfc show dev eth0")));
    assert!(findings.text(false).contains("mlx5_0 (mlx5_core, firmware 28.41.1000)"));
}

#[test]
fn an_emulated_card_says_so() {
    let kind = |board: &str| find(&doctor(&mlx5().file("sys/class/infiniband/mlx5_0/board_id", board), None), "device.kind").found.clone();
    assert!(kind("RDMASCOPE_EMU_01\n").contains("an EMULATED DEVICE"));
    assert!(kind("MT_0000000008\n").contains("firmware 28.41.1000"));
}

/// The first 256 bytes of a function's configuration space with a PCI Express capability at 0x60: device control, link control.
fn config(device_control: u16, link_control: u16) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    bytes[0x06] = 0x10;
    bytes[0x34] = 0x60;
    bytes[0x60] = 0x10;
    bytes[0x68..0x6a].copy_from_slice(&device_control.to_le_bytes());
    bytes[0x70..0x72].copy_from_slice(&link_control.to_le_bytes());
    bytes
}

#[test]
fn a_conventional_function_has_no_link_and_root_is_not_what_it_lacks() {
    let tree = base_machine()
        .link("sys/class/infiniband/mlx5_0/device", "../../../devices/pci0000:00/0000:00:04.0")
        .link("sys/devices/pci0000:00/0000:00:04.0/driver", "../../../bus/pci/drivers/mlx5_core");
    let config = tree.path().join("sys/devices/pci0000:00/0000:00:04.0/config");
    std::fs::write(&config, vec![0; 256]).expect("a file");
    let findings = doctor(&tree, None);
    let link = find(&findings, "pcie.link");
    assert!(link.severity == Severity::Note && link.found.contains("a conventional PCI function"), "{link:?}");
    assert!(findings.findings.iter().all(|finding| finding.id != "pcie.sizes"), "it has none");
    // An ordinary user cannot tell what it is.
    std::fs::write(&config, vec![0; 64]).expect("a file");
    let findings = doctor(&tree, None);
    let link = find(&findings, "pcie.link");
    assert!(link.severity == Severity::Note && link.found.contains("speed not told"), "{link:?}");
    assert!(find(&findings, "pcie.sizes").found.contains("without root"));
}

/// A card in a slot that it fits: 16 lanes at 16 GT/s of as many, requests of 4096 bytes.
fn fitting() -> Tree {
    let pci = "sys/devices/pci0000:00/0000:03:00.0";
    let tree = mlx5()
        .file(&format!("{pci}/current_link_speed"), "16.0 GT/s PCIe\n")
        .file(&format!("{pci}/current_link_width"), "16\n")
        .file(&format!("{pci}/max_link_speed"), "16.0 GT/s PCIe\n")
        .file(&format!("{pci}/max_link_width"), "16\n")
        .file(&format!("{pci}/aer_dev_correctable"), "BadTLP 0\nTOTAL_ERR_COR 0\n")
        .file(&format!("{pci}/aer_dev_nonfatal"), "TOTAL_ERR_NONFATAL 0\n")
        .file(&format!("{pci}/aer_dev_fatal"), "TOTAL_ERR_FATAL 0\n");
    std::fs::write(tree.path().join(format!("{pci}/config")), config(0x5020, 0)).expect("a file");
    tree
}

#[test]
fn a_card_in_a_good_place_has_nothing_to_change() {
    let findings = doctor(&fitting(), None);
    for (id, word) in [
        ("pcie.link", "16.0 GT/s PCIe x16"),
        ("pcie.sizes", "max payload 256 bytes, max read request 4096 bytes"),
        ("pcie.aspm", "(ASPM) is off"),
        ("pcie.errors", "0 corrected, 0 non-fatal, 0 fatal"),
    ] {
        let finding = find(&findings, id);
        assert_eq!((finding.severity, &finding.command), (Severity::Ok, &None), "{finding:?}");
        assert!(finding.found.contains(word), "{finding:?}");
    }
}

#[test]
fn each_fault_of_the_link_has_its_sentence_and_a_command() {
    let pci = "sys/devices/pci0000:00/0000:03:00.0";
    let cases: &[(&str, &str, &str, Severity, &str, &str)] = &[
        ("pcie.link", "current_link_width", "8\n", Severity::Note, "of 16.0 GT/s PCIe x16", "slower link"),
        ("pcie.link", "current_link_speed", "2.5 GT/s PCIe\n", Severity::Warn, "32 Gb/s, less than the port's 100 Gb/s", "the slot"),
        ("pcie.errors", "aer_dev_fatal", "TOTAL_ERR_FATAL 2\n", Severity::Warn, "2 fatal", "replay"),
        ("pcie.errors", "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 3\n", Severity::Warn, "3 non-fatal", "replay"),
    ];
    for (id, file, text, severity, found, effect) in cases {
        let findings = doctor(&fitting().file(&format!("{pci}/{file}"), text), None);
        let finding = find(&findings, id);
        assert_eq!(finding.severity, *severity, "{file}: {finding:?}");
        assert!(finding.found.contains(found), "{file}: {finding:?}");
        assert!(finding.effect.as_deref().is_some_and(|it| it.contains(effect)), "{file}: {finding:?}");
        assert!(finding.command.as_deref().is_some_and(|it| it.contains("0000:03:00.0")), "{file}: {finding:?}");
    }
}

#[test]
fn sizes_and_power_saving_come_from_the_configuration_space() {
    let path = "sys/devices/pci0000:00/0000:03:00.0/config";
    let tree = fitting().file("sys/module/pcie_aspm/parameters/policy", "default performance [powersave] powersupersave\n");
    std::fs::write(tree.path().join(path), config(0x0000, 0x0003)).expect("a file");
    let findings = doctor(&tree, None);
    let sizes = find(&findings, "pcie.sizes");
    assert_eq!(sizes.severity, Severity::Note);
    assert!(sizes.found.contains("max payload 128 bytes, max read request 128 bytes"), "{sizes:?}");
    let power = find(&findings, "pcie.aspm");
    assert_eq!(power.severity, Severity::Warn);
    assert!(power.found.contains("L0s and L1 is on, policy powersave") && power.command.is_some(), "{power:?}");

    // Without root only the first 64 bytes can be read.
    std::fs::write(tree.path().join(path), &config(0x5020, 0)[..64]).expect("a file");
    let findings = doctor(&tree, None);
    assert!(find(&findings, "pcie.sizes").found.contains("without root"), "{:?}", find(&findings, "pcie.sizes"));
    assert!(findings.findings.iter().all(|finding| finding.id != "pcie.aspm"), "what cannot be read is not said to be off");
}

#[test]
fn a_kernel_without_error_counters_is_not_one_without_errors() {
    let tree = fitting();
    for file in ["aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"] {
        std::fs::remove_file(tree.path().join("sys/devices/pci0000:00/0000:03:00.0").join(file)).expect("removed");
    }
    let findings = doctor(&tree, None);
    let errors = find(&findings, "pcie.errors");
    assert!(errors.severity == Severity::Note && errors.found.contains("keeps no PCIe error counters"), "{errors:?}");
}

#[test]
fn interrupts_on_the_cards_node_are_as_they_should_be() {
    let mut tree = fitting();
    for (irq, cpu) in [(40, "1"), (41, "1"), (42, "1")] {
        tree = tree.file(&format!("proc/irq/{irq}/effective_affinity_list"), &format!("{cpu}\n"));
    }
    let findings = doctor(&tree, None);
    assert!(findings.findings.iter().all(|finding| finding.id != "irq.numa"), "CPU 1 is on the card's node 1");
    let findings = doctor(&tree.file("proc/irq/41/effective_affinity_list", "0\n"), None);
    let remote = find(&findings, "irq.numa");
    assert!(remote.found.contains("interrupts 41 run"), "{remote:?}");
    assert_eq!(remote.command.as_deref(), Some("for n in 41; do echo 1 | sudo tee /proc/irq/$n/smp_affinity_list; done"));
}

#[test]
fn the_longest_allowed_idle_exit_is_the_one_that_counts() {
    let cpu = "sys/devices/system/cpu/cpu1/cpuidle";
    let mut tree = good().file("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n");
    for (at, (name, latency_us)) in [("POLL", 0), ("C1", 2), ("C1E", 10), ("C6", 133)].into_iter().enumerate() {
        tree = tree
            .file(&format!("{cpu}/state{at}/name"), &format!("{name}\n"))
            .file(&format!("{cpu}/state{at}/latency"), &format!("{latency_us}\n"));
    }
    let findings = doctor(&tree, None);
    let idle = find(&findings, "cpu.idle");
    assert_eq!(idle.severity, Severity::Warn);
    assert!(idle.found.contains("CPU 1 (intel_idle)") && idle.found.contains("C1E 10 µs, C6 133 µs"), "{idle:?}");
    assert_eq!(idle.command.as_deref(), Some("sudo cpupower idle-set -D 10  # back: sudo cpupower idle-set -E"));
}
