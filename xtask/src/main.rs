//! `cargo xtask`: everything that is done to rdmascope rather than by it. Set-up of the machine, the BPF build, virtual
//! machines with soft-RoCE, the tests and the demo. Each subcommand has its own module; docs/building.md and docs/vm.md
//! tell how they are used.

mod artifacts;
mod bench;
mod bpf;
mod demo;
mod exit;
mod paths;
mod process;
mod runner;
mod setup;
mod sources;
mod test;
mod tidy;
mod toolchain;
mod vm;

use clap::{Parser, Subcommand};

/// Set-up, builds, virtual machines, tests and the demo of rdmascope.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install what is missing on this machine: system packages and a toolchain for the BPF target.
    Setup(setup::Args),
    /// Build the probes' program into target/bpf/ and check the object.
    Bpf(bpf::Args),
    /// From nothing to a report: a guest with soft-RoCE, every operation polling and event-driven, the probes on.
    Demo(demo::Args),
    /// Every check: set-up, formatting, lints, unit tests, the BPF build, tests in virtual machines.
    Test(test::Args),
    /// What the probes cost, and how fast their reader is.
    #[command(subcommand)]
    Bench(bench::Command),
    /// The project's own rules alone.
    Tidy(tidy::Args),
    /// Virtual machines with soft-RoCE: run any command in one.
    #[command(subcommand)]
    Vm(vm::Command),
}

fn main() -> std::process::ExitCode {
    let outcome = match Cli::parse().command {
        Command::Setup(args) => setup::run(&args),
        Command::Bpf(args) => bpf::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Bench(command) => bench::run(&command),
        Command::Tidy(args) => tidy::command(&args),
        Command::Vm(command) => vm::run(&command),
    };
    exit::report(outcome)
}
