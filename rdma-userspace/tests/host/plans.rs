//! The plan of kernels that are not here, from small extracts in `tests/fixtures/kernels/`: chosen symbol per hook, or why none.
//!
//! `expected.txt` of each extract is the table; `RDMASCOPE_UPDATE_PLANS=1 cargo test -p rdma-userspace --test host plans` writes it again,
//! and what guests are expected to find, to be read before it is committed.

use capture::Level;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::support::offsets_seen;
use crate::support::plan_table::{differences, is_update, row, table};
use rdmascope_core::machine::Sources;
use rdmascope_core::probes::Plan;

const KERNELS: [&str; 7] = ["5.10", "5.15", "6.1", "6.8", "6.12", "6.12-rt", "7.3"];

fn folder(kernel: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kernels").join(kernel)
}

fn plan(kernel: &str, level: Level) -> Plan {
    Plan::from_sources(&Sources::tree(&folder(kernel)).strict(), level).unwrap_or_else(|error| panic!("{kernel}: {error}"))
}

/// Holds a table against the expected one in this file, or writes that anew.
fn check(found: &str, path: &Path) {
    if is_update() {
        std::fs::write(path, found).expect("writes");
    }
    let expected = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let differences = differences(&expected, found);
    assert!(differences.is_empty(), "{} (- expected, + found):\n{differences}", path.display());
    assert_eq!(found, expected, "{}: the order", path.display());
}

#[test]
fn every_kernel_gets_the_plan_of_its_table() {
    for kernel in KERNELS {
        let plan = plan(kernel, Level::Full);
        assert!(plan.hooks.len() > 20, "{kernel}: the plan is cut short");
        check(&table(&plan), &folder(kernel).join("expected.txt"));
    }
}

/// What `vm_plan` compares the plan of a guest's kernel with, follows from the extracts too.
#[test]
fn the_guests_tables_are_the_ones_of_the_extracts() {
    for (kernel, guest) in [("5.10", "5.10"), ("6.1", "6.1"), ("6.12", "6.12"), ("6.12-rt", "6.12-rt"), ("7.3", "7")] {
        check(&table(&plan(kernel, Level::Std)), &folder(kernel).join("../../plans").join(format!("{guest}.txt")));
    }
}

#[test]
fn what_differs_from_the_expected_table_is_shown() {
    let table = table(&plan("6.12", Level::Std));
    assert_eq!(differences(&table, &table), "");
    let changed = table.replacen("K8 run ", "K8 ran ", 1);
    let lines: Vec<String> = differences(&table, &changed).lines().map(|line| line[..8].to_owned()).collect();
    assert_eq!(lines, ["- K8 run", "+ K8 ran"]);
}

#[test]
fn levels_hold_the_rows_of_their_level_and_below() {
    for kernel in KERNELS {
        let full = plan(kernel, Level::Full);
        for &level in Level::OF_RUNS {
            let expected: Vec<String> = full.hooks.iter().filter(|hook| hook.level <= level).map(row).collect();
            let found: Vec<String> = plan(kernel, level).hooks.iter().map(row).collect();
            assert_eq!(found, expected, "{kernel} at {level}");
        }
    }
}

#[test]
fn a_loaded_driver_lacks_nothing_on_a_running_kernel() {
    for kernel in ["5.10", "6.1", "6.12", "6.12-rt", "7.3"] {
        let plan = plan(kernel, Level::Full);
        let missing: Vec<_> = plan.missing().map(row).collect();
        assert!(missing.is_empty(), "{kernel}: {missing:#?}");
        assert!(plan.drivers.iter().any(|driver| driver.name == "mlx5"), "{kernel}");
    }
}

fn symbol(plan: &Plan, hook: &str) -> Option<String> {
    let hook = plan.hook(hook).unwrap_or_else(|| panic!("no hook {hook}"));
    hook.symbol.as_ref().map(|symbol| symbol.rsplit(':').next().unwrap_or(symbol).to_owned())
}

#[test]
fn mlx5_has_its_bottom_half_on_every_kernel() {
    // Kernel, handler, K4 by the driver's function, K4 by the tracepoint.
    for (kernel, handler, own, is_traced) in [
        ("5.10", "mlx5_irq_int_handler", Some("mlx5_cq_tasklet_cb"), false),
        ("5.15", "irq_int_handler", Some("mlx5_cq_tasklet_cb"), false),
        ("6.1", "irq_int_handler", None, true),
        ("6.8", "irq_int_handler", None, true),
        ("6.12", "irq_int_handler", None, true),
        ("6.12-rt", "irq_int_handler", None, true),
        ("7.3", "irq_int_handler", None, true),
    ] {
        let plan = plan(kernel, Level::Full);
        assert_eq!(symbol(&plan, "K1b mlx5 interrupt handler").as_deref(), Some(handler), "{kernel}");
        assert_eq!(symbol(&plan, "K3 mlx5 CQ to bottom half").as_deref(), Some("mlx5_add_cq_to_tasklet"), "{kernel}");
        assert_eq!(symbol(&plan, "K4 mlx5 tasklet").as_deref(), own, "{kernel}");
        assert_eq!(symbol(&plan, "K4 tasklet").is_some(), is_traced, "{kernel}");
        assert_eq!(symbol(&plan, "mlx5 callback").as_deref(), Some("mlx5_ib_cq_comp"), "{kernel}");
    }
}

#[test]
fn the_interrupt_handler_is_at_std_on_a_kernel_with_threaded_interrupts_only() {
    for kernel in KERNELS {
        let plan = plan(kernel, Level::Std);
        let is_rt = kernel == "6.12-rt";
        assert_eq!((plan.threaded_irqs, plan.hook("K1b mlx5 interrupt handler").is_some()), (is_rt, is_rt), "{kernel}");
    }
}

#[test]
fn soft_roce_has_its_shape() {
    for (kernel, begin, requester, is_queued, is_notified_by_tasklet) in [
        ("5.10", "requester inline in the post, tasklets", "rxe_requester", false, true),
        ("5.15", "requester inline in the post, tasklets", "rxe_requester", false, true),
        ("6.1", "requester inline in the post, tasklets", "rxe_requester", false, true),
        ("6.8", "requester inline in the post, workqueue", "rxe_requester", true, false),
        ("6.12", "workqueue for everything", "rxe_sender", true, false),
        ("6.12-rt", "workqueue for everything", "rxe_sender", true, false),
        ("7.3", "workqueue for everything", "rxe_sender", true, false),
    ] {
        let plan = plan(kernel, Level::Full);
        let rxe = plan.drivers.iter().find(|driver| driver.name == "rxe").unwrap_or_else(|| panic!("{kernel}: no rxe"));
        let chain = rxe.chain.expect("rxe has shapes");
        assert!(chain.starts_with(begin), "{kernel}: {chain}");
        assert_eq!(chain.contains("rxe_send_complete"), is_notified_by_tasklet, "{kernel}: {chain}");
        assert_eq!(symbol(&plan, "R5 requester").as_deref(), Some(requester), "{kernel}");
        assert_eq!(chain.contains("Rq"), is_queued, "{kernel}: {chain}");
    }
}

#[test]
fn offsets_of_the_running_kernels_are_the_ones_of_the_table() {
    for kernel in ["5.10", "6.1", "6.12", "6.12-rt", "7.3"] {
        let plan = plan(kernel, Level::Full);
        let expected = offsets_seen::of(&plan.release);
        assert!(expected.len() > 14, "{kernel}: {} is in no table", plan.release);
        for (global, bytes) in expected {
            let offset = plan.offsets.get(global).expect("wanted");
            assert_eq!(offset.known(), Some(bytes), "{kernel}: {global}: {offset:?}");
        }
        // An extract that was taken before a member was read lacks it: take it again.
        for (global, offset) in plan.offsets.iter().filter(|(_, offset)| offset.is_relevant) {
            assert!(offset.known().is_some(), "{kernel}: {global}: {offset:?}");
        }
    }
}

/// A copy of an extract with its symbols changed.
fn changed(kernel: &str, change: impl Fn(&str) -> String) -> Plan {
    let copy = tempfile::tempdir().expect("folder");
    for file in ["proc/kallsyms", "proc/modules", "proc/sys/kernel/osrelease", "sys/kernel/btf/vmlinux"] {
        let Ok(bytes) = std::fs::read(folder(kernel).join(file)) else { continue };
        let to = copy.path().join(file);
        std::fs::create_dir_all(to.parent().expect("parent")).expect("folders");
        let bytes = if file == "proc/kallsyms" { change(&String::from_utf8_lossy(&bytes)).into_bytes() } else { bytes };
        std::fs::write(to, bytes).expect("writes");
    }
    Plan::from_sources(&Sources::tree(copy.path()).strict(), Level::Full).expect("plans")
}

#[test]
fn the_three_shapes_of_hns_are_told_by_symbols() {
    let own = "ffffffffc1000000 t hns_roce_v2_msix_interrupt_eq\t[hns_roce_hw_v2]\n\
               ffffffffc1000010 t hns_roce_cq_completion\t[hns_roce_hw_v2]\n";
    let work = "ffffffffc1000020 t hns_roce_ceq_work\t[hns_roce_hw_v2]\n";
    let bh = "ffffffff81000000 T workqueue_softirq_action\n";
    for (kernel, more, ends, works) in [
        ("6.1", String::new(), "no bottom half", 0),
        ("6.1", work.to_owned(), "K5 [kworker]", 1),
        ("6.8", format!("{work}{bh}"), "K5 [softirq]", 1),
    ] {
        let plan = changed(kernel, |text| format!("{text}{own}{more}"));
        let hns = plan.drivers.iter().find(|driver| driver.name == "hns").unwrap_or_else(|| panic!("{kernel}: no hns"));
        assert!(hns.chain.is_some_and(|chain| chain.ends_with(ends)), "{kernel}: {hns:?}");
        // rdmavt's, and soft-RoCE's on 6.8, are there without hns.
        let before = self::plan(kernel, Level::Full).works.len();
        assert_eq!(plan.works.len() - before, works, "{kernel}");
        assert_eq!(symbol(&plan, "hns callback").as_deref(), Some("hns_roce_cq_completion"));
        assert!(symbol(&plan, "K4 work starts").is_some(), "{kernel}");
    }
}

#[test]
fn hidden_addresses_turn_filters_off_and_say_so() {
    let hide = |text: &str| -> String { text.lines().map(|line| format!("0000000000000000{}\n", &line[16..])).collect() };
    let plan = changed("6.12", hide);
    assert!(plan.all_tasklets && plan.tasklets.is_empty());
    let tasklet = plan.hook("K4 tasklet").expect("planned");
    assert!(tasklet.symbol.is_some() && tasklet.reason.contains("addresses are hidden: every tasklet is recorded"), "{}", tasklet.reason);
    let work = plan.hook("K4 work starts").expect("planned");
    assert!(work.symbol.is_none() && work.reason.contains("kptr_restrict"), "{}", work.reason);
    assert!(symbol(&plan, "K3 mlx5 CQ to bottom half").is_some(), "attaching by name needs no address");
}

#[test]
fn more_functions_than_places_turn_the_filter_off_and_say_so() {
    let more = |text: &str| {
        let mut text = text.to_owned();
        for at in 0..9 {
            writeln!(text, "ffffffffc10000{at}0 t mlx5_cq_tasklet_cb\t[mlx5_core]").expect("a string");
            writeln!(text, "ffffffffc10001{at}0 t do_work\t[rdma_rxe]").expect("a string");
        }
        text
    };
    let plan = changed("6.12", more);
    assert!(plan.all_tasklets && plan.all_works);
    for (hook, words) in [
        ("K4 tasklet", "the filter holds 8: every tasklet is recorded"),
        ("K4 work starts", "the filter holds 4: every work item is recorded"),
    ] {
        let reason = &plan.hook(hook).expect("planned").reason;
        assert!(reason.contains(words), "{hook}: {reason}");
    }
}

#[test]
fn a_compilers_copy_a_padding_twin_and_a_second_function_are_no_place_to_attach() {
    let copy = |text: &str| text.replace(" mlx5_ib_cq_comp\t", " mlx5_ib_cq_comp.constprop.0\t");
    let plan = changed("6.12", copy);
    let hook = plan.hook("mlx5 callback").expect("planned");
    assert!(hook.symbol.is_none() && hook.mandatory && hook.reason.contains("only `mlx5_ib_cq_comp.constprop.0`"), "{}", hook.reason);

    let text = std::fs::read_to_string(folder("6.12").join("proc/kallsyms")).expect("reads");
    assert!(text.contains("__pfx_mlx5_ib_cq_comp"), "the kernel has padding twins");
    assert_eq!(symbol(&changed("6.12", str::to_owned), "mlx5 callback").as_deref(), Some("mlx5_ib_cq_comp"));

    let twice = |text: &str| format!("{text}ffffffffc1000000 t rxe_cq_post\t[rdma_rxe]\n");
    let plan = changed("6.12", twice);
    let hook = plan.hook("R6 CQE posted").expect("planned");
    assert!(hook.symbol.is_none() && hook.reason.contains("2 functions are called"), "{}", hook.reason);
}

#[test]
fn a_driver_of_an_era_without_events_says_so() {
    let plan = plan("5.15", Level::Full);
    let hook = plan.hook("K1b efa interrupt handler").expect("planned");
    assert!(hook.symbol.is_none() && !hook.mandatory && hook.reason.starts_with("this era of efa"), "{}", hook.reason);
    let efa = plan.drivers.iter().find(|driver| driver.name == "efa").expect("loaded");
    assert!(efa.chain.is_some_and(|chain| chain.starts_with("no completion events")), "{efa:?}");
}

#[test]
fn names_that_cover_only_one_of_two_functions_are_never_used() {
    const NEVER: [&str; 6] =
        ["do_complete", "make_send_cqe", "check_psn", "irdma_iwarp_ce_handler", "mana_gd_process_eqe", "ib_uverbs_event_read"];
    let drivers = rdmascope_core::probes::drivers::DRIVERS;
    for candidate in drivers.iter().flat_map(|driver| driver.hooks).flat_map(|hook| hook.candidates) {
        assert!(!NEVER.contains(&candidate.symbol), "{}", candidate.symbol);
    }
}

#[test]
fn the_table_of_offsets_holds_without_soft_roce_too() {
    let without_rxe =
        |text: &str| -> String { text.lines().filter(|line| !line.ends_with("[rdma_rxe]")).map(|line| format!("{line}\n")).collect() };
    let of = |kernel| changed(kernel, without_rxe).offsets.get("OFF_CQ_TASK").expect("wanted").known();
    assert_eq!(of("5.10"), Some(192));
    assert_eq!(of("5.15"), None, "no BTF, and no kernel of the table");
}
