//! `rdmascope doctor`: what this machine does to a measurement.
use super::{doctor_fire, doctor_probes, print};
use capture::Level;
use rdmascope_core::doctor::{self, colour_wanted};
use rdmascope_core::machine::Root;
use rdmascope_core::probes::Plan;
use std::process::ExitCode;

/// Flags of `rdmascope doctor`.
#[derive(clap::Args)]
#[command(after_help = "Each finding says what was found, what it does to a measurement, and the command that changes it. \
Exit code 1: something makes a measurement impossible.

Examples:
  rdmascope doctor --device mlx5_0                                what this machine does to a measurement on it
  sudo rdmascope doctor --fire mlx5_0                             which hooks fire on it, from interrupt to thread
  sudo rdmascope doctor --fire mlx5_0 --bundle mlx5-fires.json    the same as a file that names nobody
  rdmascope doctor --probes                                       which hooks this kernel offers, of every driver")]
pub struct Args {
    /// Only this RDMA device.
    #[arg(long, short, conflicts_with = "probes")]
    device: Option<String>,

    /// JSON instead of text.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    fire: doctor_fire::FireArgs,

    #[command(flatten)]
    plan: doctor_probes::PlanArgs,
}

/// Looks, and prints.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    if args.plan.probes {
        return doctor_probes::main(&args.plan, args.json);
    }
    if let Some(device) = &args.fire.fire {
        return doctor_fire::main(device, &args.fire, args.json);
    }
    let options = doctor::Options { device: args.device.clone(), json: args.json, ..doctor::Options::default() };
    let mut findings = doctor::run(&options);
    let plan = match Plan::for_kernel(Root::live(), Level::Std) {
        Ok(plan) => plan.to_string().lines().map(str::to_owned).collect(),
        Err(error) => vec![format!("no plan: {}", capture::text::chain(&error))],
    };
    findings.add_section("Probe plan", plan);
    let mut text = Vec::new();
    findings.print(&options, colour_wanted(), &mut text)?;
    print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::from(findings.exit_code()))
}
