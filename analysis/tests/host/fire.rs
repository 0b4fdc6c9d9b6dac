//! `doctor --fire` on synthetic captures: everything there, a hook gone, too little to judge; and what its bundle does not tell.
use analysis::explain::fire::{Bundle, JUDGED_MIN, judge};
use analysis::report::model::{Expected, Failure, FireReport, Judgement, Step};
use analysis::show::text::fire as text_of;
use analysis::testing::{Fixture, Scenario, generate, write_log};
use capture::manifest::{InterruptName, KernelThread, Outcome, PlanRow, ServerSide, Unasked};
use capture::{Capture, Level, Manifest};
use ebpf_probes::{Body, Header, Kind, Switch};

const SAMPLES: u32 = 400;
const POLL: &str = "mlx5_ib_poll_cq (kernel consumers)";
const KERNEL_CONSUMERS: &str = "kernel consumers only: it never runs for user-space verbs";

/// The rows of a plan as a run has them: hook, symbol, what it gives.
const ROWS: [(&str, &str, &[Kind]); 14] = [
    ("K0 idle exit", "cpu_idle", &[Kind::CpuIdleExit]),
    ("K1 interrupt", "irq_handler_entry", &[Kind::IrqEntry]),
    ("interrupt end", "irq_handler_exit", &[Kind::IrqExit]),
    ("K4 softirq", "softirq_entry", &[Kind::SoftirqEntry]),
    ("K4 tasklet", "tasklet_entry", &[Kind::TaskletEntry]),
    ("K6 waking", "sched_waking", &[Kind::SchedWaking]),
    ("K7 wakeup", "sched_wakeup", &[Kind::SchedWakeup]),
    ("K8 run", "sched_switch", &[Kind::SchedSwitch]),
    ("page fault in the kernel", "page_fault_kernel", &[Kind::PageFault]),
    ("K5 completion handler", "ib_uverbs:ib_uverbs_comp_handler", &[Kind::CompHandler]),
    ("K1b mlx5 interrupt handler", "mlx5_core:irq_int_handler", &[Kind::DriverIrq]),
    ("K3 mlx5 CQ to bottom half", "mlx5_core:mlx5_add_cq_to_tasklet", &[Kind::DriverEnqueue]),
    ("mlx5 callback", "mlx5_ib:mlx5_ib_cq_comp", &[Kind::DriverComp]),
    (POLL, "mlx5_ib:mlx5_ib_poll_cq", &[]),
];

fn row(hook: &str, symbol: &str, gives: &[Kind]) -> PlanRow {
    PlanRow {
        hook: hook.into(),
        kind: "fentry".into(),
        symbol: Some(symbol.into()),
        program: hook.into(),
        gives: gives.iter().map(|kind| kind.name().into()).collect(),
        reason: "one function of that name".into(),
        attached: true,
        hits: Some(0),
        silence: (hook == POLL).then(|| KERNEL_CONSUMERS.into()),
    }
}

fn absent(hook: &str, gives: &[Kind], reason: &str) -> PlanRow {
    PlanRow { symbol: None, attached: false, hits: None, reason: reason.into(), ..row(hook, "", gives) }
}

/// Each row's hits are the records of its kinds.
fn count_hits(fixture: &mut Fixture) {
    for row in fixture.manifest.plan.iter_mut().filter(|row| row.attached) {
        let ours = fixture.events.iter().filter(|(_, body)| row.gives.iter().any(|name| name == body.kind().name()));
        row.hits = Some(ours.count() as u64);
    }
}

/// A run on a card, with everything there.
fn card() -> Fixture {
    let mut fixture = generate(Scenario::SendMlx5, 2, SAMPLES, 3);
    fixture.manifest.run.level = Level::Full;
    fixture.manifest.losses.clear();
    fixture.manifest.rounds.iter_mut().for_each(|round| round.hits.clear());
    fixture.manifest.plan = ROWS.iter().map(|(hook, symbol, gives)| row(hook, symbol, gives)).collect();
    fixture.manifest.plan.push(absent("K4 mlx5 tasklet", &[Kind::DriverBottomHalf], "tracepoint `tasklet_entry` covers it on this kernel"));
    let elsewhere = Unasked::modules(&["mlx4_ib"]).to_string();
    fixture.manifest.plan.push(absent("mlx4 callback", &[Kind::DriverComp], &elsewhere));
    count_hits(&mut fixture);
    fixture
}

fn judged(fixture: &Fixture) -> (Manifest, FireReport) {
    let dir = tempfile::tempdir().expect("dir");
    write_log(fixture, dir.path()).expect("writes");
    let mut capture = Capture::open(dir.path()).expect("opens");
    let report = judge(&mut capture).expect("joins");
    (capture.manifest, report)
}

fn judgement<'a>(report: &'a FireReport, hook: &str) -> &'a Judgement {
    &report.hooks.iter().find(|it| it.hook == hook).unwrap_or_else(|| panic!("no {hook}")).judgement
}

fn missing(report: &FireReport, step: Step) -> Option<u64> {
    report.chains.steps.iter().find(|seen| seen.step == step).expect("every step").missing
}

#[test]
fn a_card_whose_hooks_all_fire_is_proven() {
    let (_, report) = judged(&card());
    assert!(report.is_proven(), "{:?}", report.failures);
    let all = u64::from(SAMPLES);
    assert_eq!((report.chains.samples, report.chains.slept, report.chains.earlier, report.chains.complete), (all, all, 0, all));
    assert!(Step::ALL.iter().all(|step| missing(&report, *step) == Some(0)), "{:?}", report.chains);
    for hook in ["K1 interrupt", "K3 mlx5 CQ to bottom half", "K4 tasklet", "mlx5 callback", "K5 completion handler", "K8 run"] {
        assert_eq!(judgement(&report, hook), &Judgement::AsExpected, "{hook}");
    }
    assert_eq!(judgement(&report, POLL), &Judgement::SilentByDesign(KERNEL_CONSUMERS.into()));
    assert_eq!(judgement(&report, "page fault in the kernel"), &Judgement::NotSeen);
    assert_eq!(judgement(&report, "K0 idle exit"), &Judgement::Fired);
    assert_eq!(judgement(&report, "mlx4 callback"), &Judgement::Absent("module mlx4_ib is not loaded".into()));
    assert!(report.stages.iter().any(|it| it.stage.name() == "bottom half" && it.p50_ns.is_some()), "{:?}", report.stages);
    let text = text_of(&report, false);
    for words in
        ["PROVEN: every hook", "400 of 400 chains are whole", "400 or more", "silent by design: kernel consumers only", "tasklet-per-cq"]
    {
        assert!(text.contains(words), "`{words}` is not in\n{text}");
    }
    assert!(!text.contains("EMULATED DEVICE") && !text.contains("not in this device's path"), "{text}");
}

#[test]
fn more_hits_than_expected_are_other_users_of_the_hook_and_fewer_are_named() {
    let mut fixture = card();
    let set = |fixture: &mut Fixture, hook: &str, hits: u64| {
        fixture.manifest.plan.iter_mut().find(|row| row.hook == hook).expect("a row").hits = Some(hits);
    };
    set(&mut fixture, "K1 interrupt", 100_000);
    set(&mut fixture, "K1b mlx5 interrupt handler", u64::from(SAMPLES) - 7);
    let (_, report) = judged(&fixture);
    assert_eq!(judgement(&report, "K1 interrupt"), &Judgement::AsExpected);
    assert_eq!(judgement(&report, "K1b mlx5 interrupt handler"), &Judgement::Fewer(7));
    // It fired, and no chain lacks anything.
    assert!(report.is_proven() && text_of(&report, false).contains("FEWER than expected, by 7"), "{:?}", report.failures);
}

#[test]
fn a_hook_that_is_not_there_is_named() {
    let why = "no function `mlx5_add_cq_to_tasklet`";
    let mut fixture = card();
    fixture.events.retain(|(_, body)| body.kind() != Kind::DriverEnqueue);
    let at = fixture.manifest.plan.iter().position(|row| row.hook.starts_with("K3 mlx5")).expect("a row");
    fixture.manifest.plan[at] = absent("K3 mlx5 CQ to bottom half", &[Kind::DriverEnqueue], why);
    let (_, report) = judged(&fixture);
    assert_eq!(judgement(&report, "K3 mlx5 CQ to bottom half"), &Judgement::Absent(why.into()));
    let named = |failure: &Failure| matches!(failure, Failure::StepWithoutHook { step: Step::Request, hooks } if hooks[0].why == why);
    assert!(report.failures.iter().any(named), "{:?}", report.failures);
    let text = text_of(&report, false);
    assert!(text.contains("NOT PROVEN") && text.contains("\"K3 mlx5 CQ to bottom half\" is absent (no function"), "{text}");

    // The plan does not even have a row for it.
    fixture.manifest.plan.remove(at);
    let (_, report) = judged(&fixture);
    let named = |failure: &Failure| matches!(failure, Failure::StepWithoutHook { step: Step::Request, hooks } if hooks.is_empty());
    assert!(report.failures.iter().any(named), "{:?}", report.failures);
}

#[test]
fn a_hook_that_never_fires_is_named_with_the_chains_that_break_at_it() {
    for (kind, hook, step) in [
        (Kind::IrqEntry, "K1 interrupt", Step::Interrupt),
        (Kind::DriverEnqueue, "K3 mlx5 CQ to bottom half", Step::Request),
        (Kind::DriverComp, "mlx5 callback", Step::Callback),
        (Kind::CompHandler, "K5 completion handler", Step::Handler),
        (Kind::SchedWaking, "K6 waking", Step::Waking),
        (Kind::SchedWakeup, "K7 wakeup", Step::Wakeup),
    ] {
        let mut fixture = card();
        fixture.events.retain(|(_, body)| body.kind() != kind);
        count_hits(&mut fixture);
        let (_, report) = judged(&fixture);
        assert_eq!(judgement(&report, hook), &Judgement::Silent, "{hook}");
        assert!(report.failures.contains(&Failure::HookSilent { hook: hook.into() }), "{hook}: {:?}", report.failures);
        let broken = |failure: &Failure| matches!(failure, Failure::ChainsIncomplete { step: at, hooks, complete: 0, .. } if *at == step && hooks.contains(&hook.to_owned()));
        assert!(report.failures.iter().any(broken), "{hook}: {:?}", report.failures);
        let text = text_of(&report, false);
        assert!(text.contains(&format!("\"{hook}\" must fire and never did")), "{text}");
    }
}

#[test]
fn a_few_records_that_are_gone_are_within_the_limit_and_more_are_not() {
    for (every, proven) in [(200, true), (20, false)] {
        let mut fixture = card();
        let mut seen = 0;
        fixture.events.retain(|(_, body)| {
            seen += u32::from(body.kind() == Kind::IrqEntry);
            body.kind() != Kind::IrqEntry || seen % every != 0
        });
        count_hits(&mut fixture);
        let (_, report) = judged(&fixture);
        let gone = u64::from(SAMPLES / every);
        assert_eq!(judgement(&report, "K1 interrupt"), &Judgement::Fewer(gone));
        assert_eq!((missing(&report, Step::Interrupt), report.is_proven()), (Some(gone), proven), "{:?}", report.failures);
    }
}

#[test]
fn too_few_samples_that_slept_prove_nothing() {
    let mut fixture = generate(Scenario::SendMlx5, 2, JUDGED_MIN as u32 / 2, 3);
    fixture.manifest.plan = card().manifest.plan;
    count_hits(&mut fixture);
    let (_, report) = judged(&fixture);
    assert_eq!(report.failures, [Failure::TooFewSlept { judged: JUDGED_MIN / 2, needed: JUDGED_MIN }]);
}

#[test]
fn a_software_device_has_no_interrupt_to_look_for() {
    let mut fixture = generate(Scenario::SendEvent612, 2, SAMPLES, 3);
    let of_rxe = [
        ("R1 post enters the kernel", "rdma_rxe:rxe_post_send", &[Kind::RxePost][..]),
        ("R2 packet sent", "rdma_rxe:rxe_xmit_packet", &[Kind::RxeXmit]),
        ("R4 request received", "rdma_rxe:rxe_resp_queue_pkt", &[Kind::RxeRcv]),
        ("R6 CQE posted", "rdma_rxe:rxe_cq_post", &[Kind::CqPost]),
    ];
    let generic = ROWS.iter().filter(|(_, symbol, _)| !symbol.starts_with("mlx5")).copied();
    fixture.manifest.plan = generic.chain(of_rxe).map(|(hook, symbol, gives)| row(hook, symbol, gives)).collect();
    fixture.manifest.rounds.iter_mut().for_each(|round| round.hits.clear());
    count_hits(&mut fixture);
    let (_, report) = judged(&fixture);
    assert!(report.is_proven(), "{:?}", report.failures);
    for step in [Step::Interrupt, Step::Request, Step::BottomHalf, Step::Callback] {
        assert_eq!(missing(&report, step), None, "{step}");
    }
    let interrupt = report.hooks.iter().find(|it| it.hook == "K1 interrupt").expect("a row");
    assert_eq!(interrupt.expected, Expected::NotInPath);
    assert!(matches!(interrupt.judgement, Judgement::SilentByDesign(_)), "{interrupt:?}");
    assert_eq!(judgement(&report, "R6 CQE posted"), &Judgement::AsExpected);
    let text = text_of(&report, false);
    assert!(text.contains("K1 interrupt                   not in this device's path") && !text.contains("MISSING"), "{text}");
}

#[test]
fn an_emulated_card_is_named_at_the_top() {
    let mut fixture = card();
    fixture.manifest.device.board = Some(format!("{}_001", capture::manifest::EMULATED_BOARD));
    let (manifest, report) = judged(&fixture);
    assert!(text_of(&report, false).starts_with("! EMULATED DEVICE"));
    let bundle = serde_json::to_value(Bundle::of(&manifest, &report)).expect("JSON");
    assert_eq!((&bundle["device"]["emulated"], &bundle["proven"]), (&true.into(), &true.into()));
}

/// A capture that holds, wherever one can, something that its owner would not send to strangers.
fn telltale() -> Fixture {
    let mut fixture = card();
    let manifest = &mut fixture.manifest;
    manifest.host.boot_id = "5ecre700-boot".into();
    manifest.host.interrupts = vec![InterruptName { irq: 77, name: "SECRET-interrupt@pci:0000:5e:00.0".into() }];
    let device = &mut manifest.device;
    device.name = "SECRET-device".into();
    device.netdev = Some("SECRET-netdev".into());
    device.gid = "fe80::5ec:2e7f:fe12:3456".into();
    device.gid_reason = "192.0.2.77 reaches 192.0.2.78 at 02:5e:c2:e7:12:34".into();
    (device.firmware, device.board, device.gid_type) = ("20.99.1234".into(), Some("MT_0000000223".into()), "RoCE v2".into());
    let placement = &mut manifest.placement;
    (placement.tgid, placement.tid, placement.qpn) = (918_273, 918_274, 918_275);
    (placement.cq_handle, placement.irq, placement.irq_cpus) = (0x7f91_8276_0000, Some(918_277), Some("918278".into()));
    placement.text = "SECRET-placement".into();
    manifest.kernel_threads = vec![KernelThread { pid: 918_279, name: "irq/SECRET".into() }];
    manifest.notes = vec!["SECRET-note of /no/such/SECRET".into()];
    manifest.outcome = Outcome::Failed("SECRET-outcome".into());
    manifest.server_side = ServerSide::Absent("SECRET-server".into());
    manifest.started_unix_s = 1_789_182_800;
    manifest.plan.push(absent("K2 CQ armed", &[Kind::CqArm], "cannot read /no/such/SECRET/vmlinux: gone"));
    // The names of other programs are in the records.
    for (Header { .. }, body) in &mut fixture.events {
        if let Body::SchedSwitch(Switch { prev_comm, .. }) = body {
            prev_comm[..6].copy_from_slice(b"SECRET");
        }
    }
    // The joins go by these: the records tell the same.
    for (header, body) in &mut fixture.events {
        let renamed = |id: &mut u32| *id = if *id == 1000 { 918_274 } else { *id };
        renamed(&mut header.pid);
        match body {
            Body::SchedSwitch(switch) => [&mut switch.prev_pid, &mut switch.next_pid].into_iter().for_each(renamed),
            Body::SchedWaking(wake) | Body::SchedWakeup(wake) => renamed(&mut wake.target_pid),
            Body::CompHandler(handler) => (handler.owner_tgid, handler.user_handle) = (918_273, 0x7f91_8276_0000),
            _ => {}
        }
    }
    fixture
}

#[test]
fn a_bundle_tells_what_matters_and_nothing_of_its_owner() {
    let fixture = telltale();
    let (manifest, report) = judged(&fixture);
    let text = serde_json::to_string_pretty(&Bundle::of(&manifest, &report)).expect("JSON");
    for hidden in ["SECRET", "5ecre700", "fe80", "192.0.2", "02:5e", "9182", "7f91", "0000:5e", "1789182800", "/no/such", "pid", "comm"] {
        assert!(!text.contains(hidden), "`{hidden}` is in the bundle:\n{text}");
    }
    // What is searched for is there to be found: in the capture, and the run joins with it.
    let capture = serde_json::to_string(&manifest).expect("JSON");
    assert!(["SECRET", "5ecre700", "fe80", "192.0.2", "918274"].iter().all(|hidden| capture.contains(hidden)));
    assert_eq!(report.chains.complete, u64::from(SAMPLES), "{report:?}");
    for told in [
        "6.1.0-fixture",
        "mlx5_core",
        "20.99.1234",
        "MT_0000000223",
        "tasklet-per-cq",
        "RoCE v2",
        "mlx5_ib:mlx5_ib_cq_comp",
        "bottom half",
        "\"proven\": true",
    ] {
        assert!(text.contains(told), "`{told}` is not in the bundle:\n{text}");
    }
}
