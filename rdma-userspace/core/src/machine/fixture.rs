//! For tests: a temporary tree of files that stands for a machine's /proc and /sys.
use super::Root;
use std::fs;
use std::path::Path;

/// A tree of files; it goes away when dropped.
pub(crate) struct Tree(tempfile::TempDir);

impl Tree {
    /// An empty machine.
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    /// With a file (its folders are made).
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        self.write(path, text);
        self
    }

    /// Writes a file into the tree.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    /// With a symbolic link.
    pub(crate) fn link(self, path: &str, target: &str) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::os::unix::fs::symlink(target, path).expect("a link");
        self
    }

    /// Removes a folder.
    pub(crate) fn remove(&self, path: &str) {
        fs::remove_dir_all(self.0.path().join(path)).expect("removed");
    }

    /// Where the tree is.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The tree as a root.
    pub(crate) fn root(&self) -> Root {
        Root::at(self.path())
    }
}

/// A machine with `rxe0` on `eth0`: port active, a link-local RoCE v1 and v2 GID and an IPv4-mapped v2 one.
pub(crate) fn rxe_machine() -> Tree {
    with_rxe(base_machine(), "rxe0", "eth0")
}

/// The files of one rxe device.
pub(crate) fn with_rxe(tree: Tree, name: &str, netdev: &str) -> Tree {
    write_rxe(&tree, name, netdev);
    tree
}

/// Writes the files of one rxe device, as 6.1 shows them.
pub(crate) fn write_rxe(tree: &Tree, name: &str, netdev: &str) {
    let base = format!("sys/class/infiniband/{name}");
    let port = format!("{base}/ports/1");
    for (path, text) in [
        (format!("{base}/parent"), format!("{netdev}\n")),
        (format!("{base}/node_desc"), "rxe\n".into()),
        (format!("{base}/node_type"), "1: CA\n".into()),
        (format!("{base}/fw_ver"), "\n".into()),
        (format!("{base}/node_guid"), "5054:00ff:fe12:3456\n".into()),
        (format!("{port}/state"), "4: ACTIVE\n".into()),
        (format!("{port}/phys_state"), "5: LinkUp\n".into()),
        (format!("{port}/link_layer"), "Ethernet\n".into()),
        (format!("{port}/rate"), "2.5 Gb/sec (1X SDR)\n".into()),
        (format!("{port}/gids/0"), "fe80:0000:0000:0000:5054:00ff:fe12:3456\n".into()),
        (format!("{port}/gids/1"), "0000:0000:0000:0000:0000:ffff:0a00:0002\n".into()),
        (format!("{port}/gids/2"), "0000:0000:0000:0000:0000:0000:0000:0000\n".into()),
        (format!("{port}/gid_attrs/types/0"), "RoCE v2\n".into()),
        (format!("{port}/gid_attrs/types/1"), "RoCE v2\n".into()),
        (format!("{port}/gid_attrs/ndevs/0"), format!("{netdev}\n")),
        (format!("{port}/gid_attrs/ndevs/1"), format!("{netdev}\n")),
    ] {
        tree.write(&path, &text);
    }
}

/// A plain x86 machine without RDMA.
pub(crate) fn base_machine() -> Tree {
    Tree::new()
        .file("proc/sys/kernel/osrelease", "6.1.0-40-amd64\n")
        .file("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.153-1 (2025-09-20)\n")
        .file("proc/sys/kernel/random/boot_id", "0b0c1f5e-5b2e-4c4e-a6c5-8f6d1f2d9a77\n")
        .file(
            "proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Some CPU @ 2.00GHz\nflags\t\t: fpu constant_tsc nonstop_tsc\n",
        )
        .file("proc/meminfo", "MemTotal:        2048000 kB\nMemFree:         1000000 kB\n")
        .file("sys/devices/system/cpu/online", "0-1\n")
        .file("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
        .file("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm\n")
        .file("sys/class/net/eth0/flags", "0x1003\n")
        .file("sys/class/net/eth0/operstate", "up\n")
        .file("sys/class/net/eth0/mtu", "1500\n")
        .file("sys/class/net/eth0/type", "1\n")
        .file(
            "proc/self/status",
            "Name:\trdmascope\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t1\n",
        )
}
