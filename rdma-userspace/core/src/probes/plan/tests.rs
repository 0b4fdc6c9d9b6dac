//! The planner on extracts of kernels of different eras (symbols from docs/probes.md; no BTF, so nothing depends on offsets
//! other than the constant ones and the table).

use super::*;
use crate::machine::kernel::Symbols;
use crate::probes::drivers::HookKind;
use capture::CompletionShape;

/// Tracepoints that every kernel has.
const TRACEPOINTS: &[&str] = &[
    "cpu_idle",
    "irq_handler_entry",
    "irq_handler_exit",
    "softirq_entry",
    "softirq_exit",
    "local_timer_entry",
    "local_timer_exit",
    "page_fault_user",
    "page_fault_kernel",
    "workqueue_queue_work",
    "workqueue_execute_start",
    "napi_poll",
    "sched_waking",
    "sched_wakeup",
    "sched_switch",
    "sched_migrate_task",
    "netif_receive_skb",
    "net_dev_start_xmit",
];
const UVERBS: &[&str] = &["ib_uverbs:ib_uverbs_comp_handler", "ib_uverbs:ib_uverbs_comp_event_read"];
const MLX5: &[&str] =
    &["mlx5_core:mlx5_add_cq_to_tasklet", "mlx5_core:mlx5_cq_tasklet_cb", "mlx5_ib:mlx5_ib_cq_comp", "mlx5_ib:mlx5_ib_poll_cq"];
/// Functions of every era's `rdma_rxe`.
const RXE: &[&str] = &["rdma_rxe:rxe_post_send", "rdma_rxe:rxe_comp_queue_pkt", "rdma_rxe:rxe_resp_queue_pkt", "rdma_rxe:rxe_cq_post"];
const TASKS: &[&str] = &["rdma_rxe:rxe_requester", "rdma_rxe:rxe_completer", "rdma_rxe:rxe_responder"];

/// A kernel with these functions (`module:function`) and tracepoints; the modules named are loaded.
fn kernel(functions: &[&[&str]], more_tracepoints: &[&str]) -> Facts {
    let mut text = String::new();
    let mut facts = Facts::default();
    for (at, (module, name)) in functions.iter().flat_map(|list| list.iter()).filter_map(|name| name.split_once(':')).enumerate() {
        text += &format!("ffffffffc0{at:06x} t {name}\t[{module}]\n");
        facts.modules.insert(module.to_owned());
    }
    for name in TRACEPOINTS.iter().chain(more_tracepoints) {
        text += &format!("ffffffff81000000 T __traceiter_{name}\n");
    }
    facts.symbols = Symbols::read(text.as_bytes(), |_| true).expect("reads");
    facts.vmlinux = Some(std::sync::Arc::new(crate::machine::btf::test_support::kernel_btf()));
    facts
}

fn linux_5_10() -> Facts {
    kernel(
        &[UVERBS, RXE, TASKS, &["rdma_rxe:rxe_send", "rdma_rxe:rxe_loopback", "rdma_rxe:rxe_do_task", "rdma_rxe:rxe_send_complete"]],
        &[],
    )
}

fn linux_6_1() -> Facts {
    let own =
        ["rdma_rxe:rxe_xmit_packet", "rdma_rxe:rxe_send", "rdma_rxe:rxe_loopback", "rdma_rxe:rxe_do_task", "rdma_rxe:rxe_send_complete"];
    with_packet_btf(kernel(&[UVERBS, RXE, TASKS, &own, MLX5], &["tasklet_entry", "tasklet_exit"]))
}

fn linux_6_8() -> Facts {
    let own = ["rdma_rxe:rxe_xmit_packet", "rdma_rxe:rxe_send", "rdma_rxe:rxe_loopback", "rdma_rxe:do_work", "rdma_rxe:do_task"];
    with_packet_btf(kernel(&[UVERBS, RXE, TASKS, &own], &["tasklet_entry"]))
}

fn linux_6_12() -> Facts {
    let own = ["rdma_rxe:rxe_xmit_packet", "rdma_rxe:do_work", "rdma_rxe:do_task", "rdma_rxe:rxe_sender", "rdma_rxe:rxe_receiver"];
    with_packet_btf(kernel(&[UVERBS, RXE, TASKS, &own, MLX5], &["tasklet_entry"]))
}

fn linux_7() -> Facts {
    // `do_task` is inlined; `do_complete` and `do_work` exist in other modules too.
    let own = ["rdma_rxe:rxe_xmit_packet", "rdma_rxe:do_work", "other:do_work", "rdma_rxe:rxe_sender", "rdma_rxe:rxe_receiver"];
    with_packet_btf(kernel(&[UVERBS, RXE, TASKS, &own], &["tasklet_entry"]))
}

fn with_packet_btf(mut facts: Facts) -> Facts {
    let base = facts.vmlinux.clone();
    facts.module_btf.insert("rdma_rxe".to_owned(), crate::machine::btf::test_support::rxe_btf(base));
    facts
}

fn symbol<'p>(plan: &'p Plan, hook: &str) -> Option<&'p str> {
    plan.hook(hook).unwrap_or_else(|| panic!("no hook {hook}")).symbol.as_deref()
}

#[test]
fn every_era_gets_its_own_transmit_and_tasks() {
    let expected = [
        (linux_5_10(), "rdma_rxe:rxe_send", Some("rdma_rxe:rxe_loopback"), "rdma_rxe:rxe_requester", Some("rdma_rxe:rxe_completer")),
        (linux_6_1(), "rdma_rxe:rxe_xmit_packet", None, "rdma_rxe:rxe_requester", Some("rdma_rxe:rxe_completer")),
        (linux_6_8(), "rdma_rxe:rxe_xmit_packet", None, "rdma_rxe:rxe_requester", Some("rdma_rxe:rxe_completer")),
        (linux_6_12(), "rdma_rxe:rxe_xmit_packet", None, "rdma_rxe:rxe_sender", None),
        (linux_7(), "rdma_rxe:rxe_xmit_packet", None, "rdma_rxe:rxe_sender", None),
    ];
    for (at, (facts, sent, loopback, requester, completer)) in expected.into_iter().enumerate() {
        let plan = Plan::decide(&facts, Level::Full);
        assert_eq!(symbol(&plan, "R2 packet sent"), Some(sent), "kernel {at}: {plan}");
        assert_eq!(symbol(&plan, "R2 packet sent to the same host"), loopback, "kernel {at}");
        assert_eq!(symbol(&plan, "R5 requester"), Some(requester), "kernel {at}");
        assert_eq!(symbol(&plan, "R5 completer"), completer, "kernel {at}");
        assert_eq!(symbol(&plan, "R6 CQE posted"), Some("rdma_rxe:rxe_cq_post"), "kernel {at}");
        assert_eq!(symbol(&plan, "K5 completion handler"), Some("ib_uverbs:ib_uverbs_comp_handler"), "kernel {at}");
        let std = Plan::decide(&facts, Level::Std);
        let missing: Vec<_> = std.missing().map(|hook| (hook.hook, &hook.reason)).collect();
        assert!(missing.is_empty(), "kernel {at}: {missing:?}");
    }
}

#[test]
fn tasklets_and_work_items_are_there_where_a_driver_uses_them() {
    let of = |facts: Facts| {
        let plan = Plan::decide(&facts, Level::Std);
        let there = |hook| symbol(&plan, hook).is_some();
        (there("K4 tasklet"), there("Rq work queued"), there("K4 work starts"), plan.tasklets.len(), plan.works.len())
    };
    assert_eq!(of(linux_5_10()), (false, false, false, 1, 0), "no tracepoint yet");
    assert_eq!(of(linux_6_1()), (true, false, false, 2, 0));
    assert_eq!(of(linux_6_8()), (false, true, true, 0, 1), "nothing notifies through a tasklet");
    assert_eq!(of(linux_6_12()), (true, true, true, 1, 1), "mlx5 does");
    assert_eq!(of(linux_7()), (false, true, true, 0, 1), "only the work function of rdma_rxe counts");
}

#[test]
fn levels_hold_what_they_say() {
    let names = |level| {
        let plan = Plan::decide(&linux_6_12(), level);
        plan.hooks.iter().map(|hook| hook.hook).collect::<Vec<_>>()
    };
    assert!(names(Level::None).is_empty());
    assert_eq!(names(Level::Min), ["K6 waking", "K8 run", "K5 completion handler"]);
    let (std, full) = (names(Level::Std), names(Level::Full));
    assert!(std.contains(&"K7 wakeup") && !std.contains(&"K9 event read returns") && full.contains(&"K9 event read returns"));
    assert!(std.iter().all(|name| full.contains(name)));
    let plan = Plan::decide(&linux_6_12(), Level::Std);
    assert!(plan.hooks.iter().all(|hook| hook.kind != HookKind::Kretprobe), "no return probe below full");
}

#[test]
fn tasks_of_soft_roce_are_at_std_where_they_can_wait_for_a_worker() {
    for (facts, is_there) in [(linux_5_10(), false), (linux_6_1(), false), (linux_6_8(), true), (linux_6_12(), true), (linux_7(), true)] {
        for task in ["R5 requester", "R5 completer", "R5 responder"] {
            let plan = Plan::decide(&facts, Level::Std);
            assert_eq!(plan.hook(task).is_some(), is_there, "{task}: {plan}");
            assert!(Plan::decide(&facts, Level::Full).hook(task).is_some());
        }
    }
}

#[test]
fn the_end_of_a_cq_is_looked_for_where_the_kernel_deletes_cqs() {
    let of = |functions: &[&str]| {
        // The rest as on 5.10, whose offsets need no BTF.
        let plan = Plan::decide(&kernel(&[UVERBS, RXE, TASKS, &["rdma_rxe:rxe_do_task"], functions], &[]), Level::Trace);
        symbol(&plan, "CQ destroyed").map(str::to_owned)
    };
    assert_eq!(of(&["ib_core:rdma_restrack_del"]).as_deref(), Some("ib_core:rdma_restrack_del"));
    let both = ["ib_core:rdma_restrack_del", "ib_core:rdma_restrack_begin_del", "ib_core:rdma_restrack_commit_del"];
    assert_eq!(of(&both).as_deref(), Some("ib_core:rdma_restrack_commit_del"), "the function of one step is for other objects");
}

#[test]
fn only_the_packets_that_end_the_operations_are_looked_at() {
    let hooks = [
        ("R4 request received", Arrival::Request),
        ("R5 responder", Arrival::Request),
        ("R4 answer received", Arrival::Answer),
        ("R5 completer", Arrival::Answer),
    ];
    for wanted in [&[Arrival::Request][..], &[Arrival::Answer], &[Arrival::Request, Arrival::Answer]] {
        let plan = Plan::decide(&linux_6_8(), Level::Std).for_arrivals(wanted);
        for (name, arrival) in hooks {
            let hook = plan.hook(name).expect("planned");
            assert_eq!(hook.symbol.is_some(), wanted.contains(&arrival), "{wanted:?}: {name}: {}", hook.reason);
            assert!(hook.symbol.is_some() || (!hook.mandatory && hook.reason.contains("no operation asked for ends with")));
        }
        assert!(symbol(&plan, "R5 requester").is_some() && symbol(&plan, "R6 CQE posted").is_some());
        assert_eq!(plan.missing().count(), 0);
    }
    assert_eq!((Arrival::of(true), Arrival::of(false)), (Arrival::Request, Arrival::Answer), "a ping-pong ends with the peer's request");
}

#[test]
fn only_the_driver_of_the_measured_device_is_looked_at() {
    let of = |driver: &str| -> Vec<&'static str> {
        let plan = Plan::decide(&linux_6_12(), Level::Std).for_device_of(driver);
        assert_eq!(plan.missing().count(), 0, "{driver}");
        let mut drivers: Vec<_> = plan.hooks.iter().filter(|hook| hook.symbol.is_some()).map(|hook| hook.driver).collect();
        drivers.dedup();
        drivers
    };
    assert_eq!(of("rdma_rxe"), ["kernel", "uverbs", "rxe", "mlx5"]);
    assert_eq!(of("mlx5_core"), ["kernel", "uverbs", "mlx5"]);
    let rxe = Plan::decide(&linux_6_12(), Level::Std).for_device_of("rdma_rxe");
    let mlx5: Vec<_> = rxe.hooks.iter().filter(|hook| hook.driver == "mlx5" && hook.symbol.is_some()).map(|hook| hook.hook).collect();
    assert_eq!(mlx5, ["mlx5_ib_poll_cq (kernel consumers)"], "its silence is told of every run");
    let left_out = rxe.hook("mlx5 callback").expect("planned");
    assert_eq!((left_out.mandatory, left_out.reason.as_str()), (false, "left out: the measured device belongs to rdma_rxe"));
    // hfi1 completes through rdmavt, which this kernel does not have.
    assert_eq!(of("hfi1"), ["kernel", "uverbs", "mlx5"]);
    let (unknown, all) = (of("something_new"), Plan::decide(&linux_6_12(), Level::Std));
    let mut everyone: Vec<_> = all.hooks.iter().filter(|hook| hook.symbol.is_some()).map(|hook| hook.driver).collect();
    everyone.dedup();
    assert_eq!(unknown, everyone);
}

#[test]
fn the_hooks_of_a_device_and_its_completion_shape_come_from_one_driver() {
    for (device, name, shape) in [("rdma_rxe", "rxe", CompletionShape::Anywhere), ("mlx5_core", "mlx5", CompletionShape::TaskletPerCq)] {
        let plan = Plan::decide(&linux_6_12(), Level::Std).for_device_of(device);
        let driver = drivers::of_device(device).expect("known");
        assert_eq!((driver.name, drivers::completion_shape(device)), (name, Some(shape)));
        let own = |hook: &&PlannedHook| hook.symbol.is_some() && !hook.for_every_device && !["kernel", "uverbs"].contains(&hook.driver);
        assert!(plan.hooks.iter().filter(own).all(|hook| hook.driver == driver.name), "{device}");
    }
}

#[test]
fn a_plan_can_be_narrowed_to_kinds() {
    let plan = Plan::decide(&linux_6_12(), Level::Std).only(&[Kind::CqPost, Kind::SchedSwitch]);
    let names: Vec<_> = plan.hooks.iter().map(|hook| hook.hook).collect();
    assert_eq!(names, ["K8 run", "R6 CQE posted", "R6 siw send CQE posted", "R6 siw receive CQE posted", "R6 rdmavt CQE posted"]);
}

#[test]
fn an_absent_hook_says_why() {
    let mut facts = linux_6_12();
    facts.modules.remove("mlx4_ib");
    let plan = Plan::decide(&facts, Level::Std);
    let mlx4 = plan.hook("K3 mlx4 CQ to bottom half").expect("planned");
    assert_eq!((mlx4.symbol.as_deref(), mlx4.mandatory), (None, false));
    assert_eq!(mlx4.reason, "module mlx4_ib is not loaded");
    let mlx5 = plan.hook("mlx5_ib_poll_cq (kernel consumers)").expect("planned");
    assert_eq!(mlx5.symbol.as_deref(), Some("mlx5_ib:mlx5_ib_poll_cq"));
    assert!(mlx5.silence.is_some_and(|text| text.contains("kernel consumers only")));
    let covered = plan.hook("R5 completer").expect("planned");
    assert!(covered.reason.contains("rxe_sender"), "{}", covered.reason);
}

#[test]
fn a_missing_function_of_a_loaded_driver_is_reported() {
    let plan = Plan::decide(&kernel(&[UVERBS, &["rdma_rxe:rxe_post_send"]], &[]), Level::Std);
    let missing: Vec<_> = plan.missing().map(|hook| hook.hook).collect();
    assert!(missing.contains(&"R6 CQE posted") && missing.contains(&"R4 answer received"), "{missing:?}");
    assert!(!missing.contains(&"R1 post enters the kernel"));
}

#[test]
fn two_functions_of_one_name_are_refused() {
    let facts = kernel(&[UVERBS, RXE, &["rdma_rxe:rxe_cq_post"]], &[]);
    let plan = Plan::decide(&facts, Level::Std);
    let hook = plan.hook("R6 CQE posted").expect("planned");
    assert!(hook.symbol.is_none() && hook.reason.contains("2 functions"), "{}", hook.reason);
}

#[test]
fn a_function_with_other_arguments_is_refused() {
    let mut facts = linux_6_12();
    let base = facts.vmlinux.clone();
    facts.module_btf.insert("rdma_rxe".to_owned(), crate::machine::btf::test_support::rxe_btf_with_swapped_arguments(base));
    let plan = Plan::decide(&facts, Level::Std);
    let hook = plan.hook("R4 answer received").expect("planned");
    assert!(hook.symbol.is_none() && hook.reason.contains("takes (struct sk_buff *, struct rxe_qp *)"), "{}", hook.reason);
}

#[test]
fn without_btf_the_scheduler_is_absent_with_the_reason() {
    let mut facts = linux_6_1();
    facts.vmlinux = None;
    let plan = Plan::decide(&facts, Level::Min);
    let hook = plan.hook("K6 waking").expect("planned");
    assert!(hook.symbol.is_none() && hook.reason.contains("task_struct.pid"), "{}", hook.reason);
    assert!(symbol(&plan, "K5 completion handler").is_some(), "its offsets are the same everywhere");
}
