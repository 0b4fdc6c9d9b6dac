//! The manifest of a synthetic capture.
use super::Scenario;
use super::ids::{CQ_HANDLE, QPN, TGID, TID};
use capture::manifest::{ClockCheck, Device, Host, LossRow, Outcome, Placement, PlanRow, Run, SCHEMA_VERSION, ServerSide};
use capture::{Level, Manifest, Side, Transport};
use ebpf_probes::Kind;

/// Of a scenario, without rounds yet.
pub(super) fn manifest(scenario: Scenario, per_round: u32) -> Manifest {
    let (op, mode) = scenario.op_mode();
    let gives = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name().to_string()).collect::<Vec<_>>();
    let all = Kind::ALL.iter().copied().filter(|kind| !matches!(kind, Kind::EventRead | Kind::NetPacket)).collect::<Vec<_>>();
    let row = |hook: &str, symbol: &str, kinds: &[Kind], silence: Option<&str>| PlanRow {
        hook: hook.into(),
        kind: "kprobe".into(),
        symbol: Some(symbol.into()),
        program: symbol.into(),
        gives: gives(kinds),
        reason: "present on this kernel".into(),
        attached: true,
        hits: silence.map(|_| 0),
        silence: silence.map(Into::into),
    };
    let two = scenario == Scenario::TwoGuests;
    let (name, driver) = if scenario == Scenario::SendMlx5 { ("mlx5_0", "mlx5_core") } else { ("rxe0", "rdma_rxe") };
    Manifest {
        schema_version: SCHEMA_VERSION,
        tool_version: "0.1.0".into(),
        tool_revision: None,
        started_unix_s: 1_700_000_000,
        side: Side::Client,
        server_side: ServerSide::Unknown,
        host: Host { kernel: "6.1.0-fixture".into(), cpus: 2, boot_id: "fixture".into(), emulated: true, ..Host::default() },
        device: Device { name: name.into(), driver: driver.into(), ..Device::default() },
        run: Run {
            index: 0,
            op,
            mode,
            server_mode: Some(mode),
            transport: Some(Transport::Rc),
            size_bytes: 64,
            samples: per_round.into(),
            metric: op.metric(),
            depth: 1,
            inline_bytes: 0,
            cq_depth: 64,
            level: Level::Std,
            same_kernel: !two,
        },
        placement: Placement {
            tgid: TGID,
            tid: TID,
            cq_handle: CQ_HANDLE,
            qpn: QPN,
            peer_qpn: QPN + 1,
            cpu: Some(0),
            ..Placement::default()
        },
        workers: Vec::new(),
        rounds: Vec::new(),
        kernel_threads: Vec::new(),
        plan: vec![
            row("K5 completion handler", "ib_uverbs:ib_uverbs_comp_handler", &[Kind::CompHandler], None),
            row("other hooks", "all", &all, None),
            row("mlx5 poll", "mlx5_ib:mlx5_ib_poll_cq", &[], Some("kernel consumers only; no control possible here")),
        ],
        losses: vec![LossRow { kind: "comp_handler".into(), attempted: 10, delivered: 10, lost: 0 }],
        missed_probes: None,
        clock_check: Some(ClockCheck { before_ns: 10, kernel_ns: 11, after_ns: 12 }),
        poll_costs: None,
        syscalls: None,
        sealed: None,
        trace: None,
        notes: Vec::new(),
        outcome: Outcome::Complete,
    }
}
