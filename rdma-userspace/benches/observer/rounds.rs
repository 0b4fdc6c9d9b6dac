//! The rounds: every state of the probes in turn, so that a drift of the machine hits all of them alike.
use super::data::{Case, Data, Round};
use super::traffic::Traffic;
use anyhow::{Context, bail};
use capture::{Level, Mode, Operation};
use rdmascope_core::machine::Root;
use rdmascope_core::probes::{Arrival, Config, Plan, Probes, monotonic_ns};
use rdmascope_core::runner::Params;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Operations that are thrown away after the probes came or went: they tell of cold caches.
const SETTLE: u64 = 30;
/// Operations before the first round of a case.
const WARM_UP: u64 = 300;
/// Functions that must not be in the kernel's list of kprobes in an untraced round.
const PROBED: [&str; 2] = ["ib_uverbs_comp_handler", "rxe_cq_post"];

/// What `measure` is asked to do.
#[derive(clap::Args)]
pub struct Args {
    /// Where the measurement goes.
    #[arg(long)]
    out: PathBuf,
    /// Rounds of every state.
    #[arg(long, default_value_t = 8)]
    rounds: u32,
    /// Operations in each.
    #[arg(long, default_value_t = 400)]
    samples: u64,
    /// Message size of SEND in bytes.
    #[arg(long, default_value_t = 64)]
    size: u32,
    /// Virtual nanoseconds per instruction, where the guest's time counts instructions.
    #[arg(long)]
    ns_per_instruction: Option<f64>,
    /// Only SEND by event.
    #[arg(long)]
    event_only: bool,
    /// Also compare with bpftrace on the same hooks.
    #[arg(long)]
    against: bool,
}

/// The state of the probes in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// No probe is attached.
    None,
    /// The same, as a control: what separates the two is noise.
    Control,
    /// Level `min`.
    Min,
    /// Level `std`.
    Std,
    /// Level `std`, with nothing tracked: the same hits, hardly a record.
    Untracked,
    /// Level `full`.
    Full,
}

impl State {
    /// All of them.
    pub const ALL: [State; 6] = [State::None, State::Min, State::Std, State::Control, State::Untracked, State::Full];

    /// Its name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            State::None => "none",
            State::Control => "none again",
            State::Min => "min",
            State::Std => "std",
            State::Untracked => "std untracked",
            State::Full => "full",
        }
    }

    const fn level(self) -> Level {
        match self {
            State::None | State::Control => Level::None,
            State::Min => Level::Min,
            State::Std | State::Untracked => Level::Std,
            State::Full => Level::Full,
        }
    }
}

/// Runs all rounds and writes the file.
pub fn measure(args: &Args) -> anyhow::Result<()> {
    let mut cases = vec![(Operation::Send, Mode::Event)];
    if !args.event_only {
        cases.push((Operation::FetchAdd, Mode::Poll));
    }
    let data = Data {
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        accel: std::env::var("RDMASCOPE_ACCEL").unwrap_or_else(|_| "host".to_owned()),
        cpus: std::thread::available_parallelism()?.get(),
        ns_per_instruction: args.ns_per_instruction,
        cases: cases.into_iter().map(|(op, mode)| case(args, op, mode)).collect::<Result<_, _>>()?,
    };
    std::fs::write(&args.out, serde_json::to_vec(&data)?).with_context(|| format!("writing {}", args.out.display()))
}

fn case(args: &Args, op: Operation, mode: Mode) -> anyhow::Result<Case> {
    let mut traffic = Traffic::open(&Params::new(op, mode, args.size))?;
    traffic.round(WARM_UP)?;
    let mut loaded = BTreeMap::new();
    for state in State::ALL.into_iter().filter(|state| state.level() != Level::None) {
        let plan = Plan::for_kernel(Root::live(), state.level())?.for_arrivals(&[Arrival::of(op.server_answers())]);
        let mut probes = Probes::load(&plan, &Config::default())?;
        if state == State::Full {
            for hook in probes.hooks()?.iter().filter(|hook| hook.planned.symbol.is_some()) {
                println!("{:<36} {:<9} {}", hook.planned.hook, hook.planned.kind.name(), hook.planned.reason);
            }
        }
        if state != State::Untracked {
            probes.track_tgid(std::process::id())?;
            if mode.spins() {
                probes.track_poller(traffic.tid())?;
            } else {
                probes.track_pid(traffic.tid())?;
            }
            probes.track_qpn(traffic.qpn())?;
        }
        loaded.insert(state, probes);
    }
    let mut rounds = Vec::new();
    for index in 0..args.rounds as usize {
        let mut order = State::ALL;
        // A different state is first each time, and the order turns round.
        order.rotate_left(index % State::ALL.len());
        if index % 2 == 1 {
            order.reverse();
        }
        for state in order {
            rounds.push(round(&mut traffic, state, loaded.get_mut(&state), args.samples)?);
        }
    }
    let against = match loaded.get_mut(&State::Min).filter(|_| args.against && mode == Mode::Event) {
        Some(probes) => Some(super::against::measure(&mut traffic, probes, args.samples * 2)?),
        None => None,
    };
    Ok(Case { name: format!("{} {}", op.name().to_uppercase(), mode.name()), rounds, against })
}

fn round(traffic: &mut Traffic, state: State, probes: Option<&mut Probes>, samples: u64) -> anyhow::Result<Round> {
    let Some(probes) = probes else {
        check_untraced()?;
        traffic.round(SETTLE)?;
        let latencies_ns = latencies(traffic, samples)?;
        return Ok(Round { state: state.name().to_owned(), latencies_ns, ..empty() });
    };
    probes.attach()?;
    traffic.round(SETTLE)?;
    probes.drain(|_| ());
    let (hits, losses) = (probes.hits()?, probes.losses()?);
    let latencies_ns = latencies(traffic, samples)?;
    let now = probes.hits()?;
    let begin_ns = monotonic_ns();
    let mut bytes = Vec::new();
    probes.drain(|record| bytes.extend_from_slice(record));
    let drain_ns = monotonic_ns() - begin_ns;
    let after = probes.losses()?;
    probes.detach();
    let before: BTreeMap<&str, u64> = hits.into_iter().collect();
    let attempted = |losses: &rdmascope_core::probes::Losses| losses.kinds.iter().map(|kind| kind.attempted).sum::<u64>();
    Ok(Round {
        state: state.name().to_owned(),
        latencies_ns,
        hits: now.into_iter().map(|(hook, now)| (hook.to_owned(), now - before.get(hook).copied().unwrap_or(0))).collect(),
        records: attempted(&after) - attempted(&losses),
        lost: after.lost() - losses.lost(),
        drain_ns,
    })
}

fn empty() -> Round {
    Round { state: String::new(), latencies_ns: Vec::new(), hits: Vec::new(), records: 0, lost: 0, drain_ns: 0 }
}

fn latencies(traffic: &mut Traffic, samples: u64) -> anyhow::Result<Vec<u64>> {
    let result = traffic.round(samples)?;
    if result.samples.len() as u64 != samples {
        bail!("{} of {samples} operations", result.samples.len());
    }
    Ok(result.samples.iter().filter_map(|sample| sample.latency_ns()).collect())
}

/// An untraced round is one without a probe of ours in the kernel, as the kernel's own list says.
fn check_untraced() -> anyhow::Result<()> {
    let list = std::fs::read_to_string("/sys/kernel/debug/kprobes/list").context("reading the kernel's list of kprobes")?;
    let traced = std::fs::read_to_string("/sys/kernel/tracing/enabled_functions").context("reading the kernel's list of trampolines")?;
    match PROBED.iter().find(|name| list.contains(*name) || traced.contains(*name)) {
        Some(name) => bail!("{name} still has a probe in an untraced round"),
        None => Ok(()),
    }
}
