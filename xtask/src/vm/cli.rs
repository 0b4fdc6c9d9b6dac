//! `cargo xtask vm …`: any command in a guest, by hand.

use super::card::{CardArgs, Device};
use super::job::{Guest, Job, boot};
use super::kernel;
use super::watch::{Deadlines, Seen};
use crate::{exit, paths, process};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Duration;

/// Subcommands of `cargo xtask vm`.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Fetch a kernel (5.10, 6.1, 6.12, 6.12-rt, 7, or host) and say what it is.
    Kernel {
        /// Name of the kernel.
        name: String,
        /// Fetch it again, for a newer build of it.
        #[arg(long)]
        refresh: bool,
    },
    /// Run a command in one guest, or in two that are joined by a wire.
    Run(Box<RunArgs>),
}

/// Options of `cargo xtask vm run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Kernel: 5.10, 6.1, 6.12, 6.12-rt, 7, or host.
    #[arg(long, default_value = "6.1")]
    kernel: String,
    /// One guest, or two joined by a wire (addresses 10.77.0.1 and 10.77.0.2).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    guests: u8,
    /// Virtual CPUs of each guest.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    smp: u32,
    /// Memory of each guest in MiB.
    #[arg(long, default_value_t = 1536, value_parser = clap::value_parser!(u32).range(256..))]
    memory: u32,
    /// Repeatable virtual time (counts instructions), one CPU.
    #[arg(long)]
    icount: bool,
    /// What RDMA device the guests have.
    #[arg(long, default_value = "rxe")]
    device: Device,
    #[command(flatten)]
    card: CardArgs,
    /// What soft-RoCE sits on in a single guest: lo, dummy0, or none for no device.
    #[arg(long, default_value = "lo", value_parser = ["lo", "dummy0", "none"])]
    netdev: String,
    /// A program for the guest's /bin, with its libraries: a path or a name on PATH. May be repeated.
    #[arg(long)]
    with: Vec<String>,
    /// Let `modprobe` find the drivers of RDMA cards too (irdma, bnxt_re, …: what the kernel has).
    #[arg(long)]
    drivers: bool,
    /// Another file, as HOST:GUEST. May be repeated.
    #[arg(long)]
    file: Vec<String>,
    /// Shell text for guest a, which runs until guest b's command ends. With two guests only.
    #[arg(long)]
    server: Option<String>,
    /// Where the guest's /out goes.
    ///
    /// By default target/vm/out, which is cleared first.
    #[arg(long)]
    out: Option<PathBuf>,
    /// More kernel arguments.
    #[arg(long, default_value = "")]
    append: String,
    /// Seconds from start to the end of the command.
    #[arg(long, default_value_t = 1200)]
    timeout: u64,
    /// Seconds without any line after which the guest counts as hung.
    #[arg(long, default_value_t = 180)]
    silence: u64,
    /// Show progress lines too.
    #[arg(long)]
    progress: bool,
    /// The command. One word is shell text; more are a program and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Runs the subcommand.
pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Kernel { name, refresh } => {
            let kernel = kernel::ensure(name, *refresh)?;
            println!("{}: {} ({})", kernel.name, kernel.release, kernel.packages.join(" "));
            Ok(())
        }
        Command::Run(args) => run_command(args),
    }
}

fn run_command(args: &RunArgs) -> Result<()> {
    if args.server.is_some() && args.guests != 2 {
        return Err(exit::coded(2, "--server needs --guests 2"));
    }
    let mut guest =
        Guest { programs: args.with.clone(), command: shell_text(&args.command), with_drivers: args.drivers, ..Guest::default() };
    let runner = paths::target().join("release/rdmascope");
    if runner.is_file() && !args.with.iter().any(|with| with.ends_with("/rdmascope")) {
        guest.programs.push(runner.display().to_string());
    }
    for file in &args.file {
        let (host, inside) = file.split_once(':').context("--file wants HOST:GUEST")?;
        guest.files.push((PathBuf::from(host), inside.to_owned()));
    }
    let mut guests = vec![guest; usize::from(args.guests)];
    if let Some(server) = &args.server {
        guests[0].command = server.clone();
        guests[0].is_server = true;
    }
    let mut job = Job::new(kernel::ensure(&args.kernel, false)?, guests);
    job.cpus = args.smp;
    job.memory_mib = args.memory;
    job.icount = args.icount;
    job.netdev = args.netdev.clone();
    job.card = match args.device {
        Device::Mlx5 => Some(args.card.card()?),
        Device::Rxe if args.card.is_any_given() => {
            return Err(exit::coded(exit::USAGE, "--link, --card, --card-log and --card-args want --device mlx5"));
        }
        Device::Rxe => None,
    };
    job.append = args.append.clone();
    job.deadlines =
        Deadlines { total: Duration::from_secs(args.timeout), silence: Duration::from_secs(args.silence), ..Deadlines::default() };
    let is_pair = args.guests > 1;
    let out = args.out.clone().unwrap_or_else(|| paths::target().join("vm/out"));
    if args.out.is_none() && out.exists() {
        std::fs::remove_dir_all(&out).with_context(|| format!("clearing {}", out.display()))?;
    }
    let outcome = boot(&job, &out, &mut |letter, seen| match seen {
        Seen::Console(line) if is_pair => println!("[{letter}] {line}"),
        Seen::Console(line) => println!("{line}"),
        Seen::Progress(line) if args.progress => eprintln!("[{letter}] {line}"),
        Seen::Progress(_) => {}
    })?;
    eprintln!("xtask: exit {} under {}; files in {}", outcome.exit, outcome.accel, paths::shown(&out));
    match outcome.exit {
        0 => Ok(()),
        code => Err(exit::coded(code, format!("the guest's command ended with {code}"))),
    }
}

/// One word is shell text as it is; more are quoted.
fn shell_text(words: &[String]) -> String {
    match words {
        [text] => text.clone(),
        words => words.iter().map(|word| process::quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_shell_text_and_more_are_quoted() {
        assert_eq!(shell_text(&["a | b".to_owned()]), "a | b");
        assert_eq!(shell_text(&["echo".to_owned(), "a b".to_owned()]), "echo 'a b'");
    }
}
