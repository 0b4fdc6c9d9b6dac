//! The command line: one file per subcommand. Each asks a lower layer and turns its answer into text and an exit code.
mod compare;
mod doctor;
mod doctor_fire;
mod doctor_probes;
pub mod exit;
mod named_value;
mod report;
mod run;
mod serve;
mod soft_roce;
mod trace;
mod traffic;

use capture::text::{chain, printable_lines};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::io::{self, Write};
use std::process::ExitCode;

/// Where RDMA completion time goes: polling against completion events, joined with the kernel.
#[derive(Parser)]
#[command(
    name = "rdmascope",
    version,
    max_term_width = 110,
    after_help = "\
Try it on one host:
  rdmascope doctor                   what this machine does to a measurement
  sudo rdmascope soft-roce up lo     a software RDMA device, without hardware
  sudo rdmascope compare --loopback  every operation, polling and event

Between two hosts (192.0.2.1 is the other one's address):
  rdmascope serve --bind 192.0.2.1                  there: prints a token
  sudo rdmascope compare 192.0.2.1 --token TOKEN    here

Root (or CAP_BPF and CAP_PERFMON) is needed for the kernel probes only;
without them the stages inside the kernel are absent.

Exit codes: 0 done, 1 failed, 2 usage, 3 more records lost than the limit,
4 gate not met, 5 the machine was too noisy to say, 69 something that the job
needs (a device, a package) is missing."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve one client after another: the passive end of a measurement.
    Serve(serve::Args),
    /// Measure one operation in one completion mode.
    Run(run::Args),
    /// Measure operations in polling and in event mode, in interleaved rounds.
    Compare(compare::Args),
    /// Open a capture, or a folder of captures, and report.
    Report(report::Args),
    /// What this machine is, and what it does to a measurement. Changes nothing. --fire DEVICE proves a device's hooks.
    Doctor(doctor::Args),
    /// A software RDMA device (soft-RoCE, rdma_rxe) on a network interface.
    SoftRoce(soft_roce::Args),
    /// Watch a verbs program that is not ours: completion handler to running thread, per CQ.
    Trace(trace::Args),
}

/// Entry point of the program.
pub fn main() -> ExitCode {
    let matches = with_negative_values(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match cli.command {
        Command::Serve(args) => serve::main(&args),
        Command::Run(args) => run::main(&args),
        Command::Compare(args) => compare::main(&args),
        Command::Report(args) => report::main(&args),
        Command::Doctor(args) => doctor::main(&args),
        Command::SoftRoce(args) => soft_roce::main(&args),
        Command::Trace(args) => trace::main(&args),
    };
    result.unwrap_or_else(|error| {
        print_error(&chain(error.as_ref()));
        exit::code_of(&error)
    })
}

/// Lets every flag take a value such as `-1`, which then meets the flag's own limit instead of being taken for a flag.
fn with_negative_values(command: clap::Command) -> clap::Command {
    let takes_value = |arg: &clap::Arg| !arg.is_positional() && arg.get_action().takes_values();
    let allow = |arg: clap::Arg| if takes_value(&arg) { arg.allow_negative_numbers(true) } else { arg };
    command.mut_args(allow).mut_subcommands(with_negative_values)
}

/// Prints an error to standard error; a terminal that is gone is no further error.
fn print_error(text: &str) {
    let _ = writeln!(io::stderr(), "rdmascope: {}", printable_lines(text));
}

/// Prints to standard output. A reader that has seen enough (`| head`) is not a failure.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
