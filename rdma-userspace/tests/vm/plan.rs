//! The plan of this kernel against the expected one, with the driver of every RDMA device that the kernel has loaded.
//!
//! Ignored by default: `cargo xtask test` runs it inside the guest and names the kernel there (`RDMASCOPE_KERNEL`). The
//! expectations are `fixtures/plans/KERNEL.txt`, a table as `tests/support/plan_table.rs` writes it.
//! `RDMASCOPE_UPDATE_PLANS=1 cargo xtask test --guests-only --filter vm_plan --kernels all` writes them anew.

use crate::support::plan_table::{differences, is_update, table};
use capture::Level;
use rdmascope_core::probes::Plan;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const EXPECTED: [(&str, &str); 5] = [
    ("5.10", include_str!("../fixtures/plans/5.10.txt")),
    ("6.1", include_str!("../fixtures/plans/6.1.txt")),
    ("6.12", include_str!("../fixtures/plans/6.12.txt")),
    ("6.12-rt", include_str!("../fixtures/plans/6.12-rt.txt")),
    ("7", include_str!("../fixtures/plans/7.txt")),
];

/// Loads every RDMA driver that the guest carries; what was not there before is unloaded again at the end.
struct Drivers(Vec<String>);

impl Drivers {
    fn load() -> Self {
        let before = loaded();
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
        let list = Path::new("/lib/modules").join(release.trim()).join("modules.dep");
        let text = std::fs::read_to_string(&list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
        let files = text.lines().filter_map(|line| line.split_once(':')).map(|(file, _)| file);
        let is_driver = |file: &&str| file.contains("/infiniband/hw/") || file.contains("/infiniband/sw/");
        let names: Vec<&str> = files.filter(is_driver).filter_map(|file| file.rsplit('/').next()?.split(".ko").next()).collect();
        assert!(names.len() >= 3, "the guest carries rxe, mlx5 and mlx4 at least, but {names:?}");
        for name in names {
            let output = Command::new("modprobe").arg(name).output().expect("modprobe runs");
            assert!(output.status.success(), "modprobe {name}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Self(loaded().difference(&before).cloned().collect())
    }
}

impl Drop for Drivers {
    fn drop(&mut self) {
        // A module that another one uses refuses; each pass frees some more.
        for _ in 0..self.0.len() {
            let there = loaded();
            self.0.retain(|name| there.contains(name));
            for name in &self.0 {
                let _ = Command::new("rmmod").arg(name).output();
            }
        }
    }
}

fn loaded() -> BTreeSet<String> {
    let text = std::fs::read_to_string("/proc/modules").expect("modules");
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// Prints also when the test passes: the harness keeps only what the macros print.
fn shown(text: &str) {
    let mut out = std::io::stdout();
    std::io::Write::write_all(&mut out, format!("\n{text}\n").as_bytes()).expect("the guest's console");
}

#[test]
#[ignore = "runs in the VM"]
fn the_plan_is_the_expected_one() {
    let kernel = std::env::var("RDMASCOPE_KERNEL").expect("xtask names the kernel");
    let drivers = Drivers::load();
    let plan = Plan::for_kernel(Path::new("/"), Level::Std).expect("facts of the running kernel");
    drop(drivers);
    shown(&plan.to_string());
    let missing: Vec<_> = plan.missing().map(|hook| (hook.hook, hook.reason.clone())).collect();
    assert!(missing.is_empty(), "this kernel ought to have: {missing:?}");
    let found = table(&plan);
    let out = PathBuf::from(std::env::var_os("OUT").expect("the guest's folder for files"));
    std::fs::write(out.join("plan.txt"), &found).expect("writes");
    if is_update() {
        println!("the expectation of {kernel} is written anew");
        return;
    }
    let Some((_, expected)) = EXPECTED.iter().find(|(name, _)| *name == kernel) else {
        panic!("no expectation for the kernel `{kernel}`: a plan that nothing is compared with proves nothing");
    };
    let differences = differences(expected, &found);
    assert!(differences.is_empty(), "the plan of {kernel} is another one (- expected, + found):\n{differences}");
}
