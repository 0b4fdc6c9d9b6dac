//! `mlx5-card`: an emulated ConnectX card, driven by the unmodified mlx5 driver of a guest under QEMU 11 or newer.
//!
//! It is a PCI function behind a vfio-user socket. `front` is what the driver sees, `engine` is what verbs do, `card` joins
//! functions by a wire and keeps time, `server` is QEMU's end of it, `oracle` writes down what happened.

mod bits;
mod card;
mod engine;
mod front;
mod knobs;
mod oracle;
mod server;

use anyhow::{Context, Result, bail};
use card::{Card, Settings};
use clap::{Parser, ValueEnum};
use knobs::Knobs;
use oracle::Oracle;
use server::FunctionServer;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// An emulated ConnectX card (PCI 15b3:1017) for a guest of QEMU 11 or newer, whose own mlx5 driver drives it.
///
/// Start it first; it prints `listening` when its sockets are there, and ends when QEMU has closed all of them.
/// The board calls itself RDMASCOPE_EMU. Its times are those of an emulator: order, identity and counts are right,
/// durations are not those of a real card.
#[derive(Debug, Parser)]
#[command(name = "mlx5-card", version, after_help = EXAMPLES)]
struct Cli {
    /// Where QEMU connects to. Twice: two functions on one fabric, for two guests (or one).
    #[arg(long, required = true, num_args = 1)]
    socket: Vec<PathBuf>,
    /// InfiniBand (LIDs; function n has LID n+1), or Ethernet (RoCE v1 and v2, with mlx5e's network device).
    #[arg(long, value_enum, default_value_t = Link::Infiniband)]
    link: Link,
    /// Write every CQE, EQE, interrupt, arm and command to this file, one JSON object a line.
    #[arg(long)]
    log: Option<PathBuf>,
    /// Completion vectors of a function. With one, all completion queues share an event queue.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=31))]
    vectors: u32,
    /// Hold the interrupt of a completion back, µs after its EQE.
    #[arg(long, value_name = "US", default_value_t = 0, help_heading = KNOBS)]
    hold_interrupt_us: u32,
    /// Write the EQE only so many µs after the CQE that asks for it.
    #[arg(long, value_name = "US", default_value_t = 0, help_heading = KNOBS)]
    late_eqe_us: u32,
    /// Raise an interrupt for N EQEs, or 200 µs after the first of them. 0 and 1: for each.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = KNOBS)]
    coalesce: u32,
    /// Put N EQEs of completion queues that are not there before each real one.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=64), help_heading = KNOBS)]
    foreign_eqes: u32,
    /// Every message takes so many µs; an answer is a message too.
    #[arg(long, value_name = "US", default_value_t = 0, help_heading = KNOBS)]
    delay_us: u32,
    /// And up to so many more, evenly distributed; the order stays.
    #[arg(long, value_name = "US", default_value_t = 0, help_heading = KNOBS)]
    jitter_us: u32,
    /// Lose so many messages of a hundred.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, help_heading = KNOBS)]
    loss: f64,
    /// Let so many messages of a hundred be overtaken.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, help_heading = KNOBS)]
    reorder: f64,
    /// Where the chances of the wire begin; the same seed gives the same losses for the same messages.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const KNOBS: &str = "Knobs (also at run time: 32-bit little-endian words from 0x5004 of BAR 0, in this order)";
const EXAMPLES: &str = "\
Examples:
  mlx5-card --socket /tmp/card --log card.jsonl
  mlx5-card --socket /tmp/a --socket /tmp/b --link ethernet --delay-us 20 --loss 1
  qemu-system-x86_64 -machine q35,memory-backend=ram \\
    -object memory-backend-memfd,id=ram,size=1G,share=on -m 1G … \\
    -device '{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"/tmp/card\"}}'

From inside the guest: word 0 of page 0x5000 of resource0 reads \"RDME\"; words 1 to 8 are the knobs (loss and reordering in
millionths), word 9 takes the port down (0) and up (1), word 10 puts the queue pair of the number written into the error state.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Link {
    Infiniband,
    Ethernet,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let mut paths: Vec<_> = cli.socket.iter().chain(&cli.log).map(std::path::absolute).collect::<Result<_, _>>()?;
    paths.sort();
    if let Some(twice) = paths.windows(2).find(|pair| pair[0] == pair[1]) {
        bail!("{} is named twice", twice[0].display());
    }
    let oracle = Arc::new(
        Oracle::new(cli.log.as_deref()).with_context(|| format!("creating {}", cli.log.as_deref().unwrap_or("".as_ref()).display()))?,
    );
    let settings = Settings {
        functions: cli.socket.len(),
        is_ethernet: cli.link == Link::Ethernet,
        vectors: cli.vectors,
        seed: cli.seed,
        knobs: knobs(&cli)?,
    };
    let card = Card::start(&settings, Arc::clone(&oracle));
    let mut servers = Vec::new();
    for (function, socket) in cli.socket.iter().enumerate() {
        let server = FunctionServer::listen(socket, function, Arc::clone(&card));
        servers.push(server.with_context(|| format!("listening at {}", socket.display()))?);
    }
    println!("listening");
    std::io::stdout().flush()?;
    let threads: Vec<_> = servers.into_iter().map(|server| std::thread::spawn(move || server.run())).collect();
    let mut broken = Vec::new();
    for (function, thread) in threads.into_iter().enumerate() {
        match thread.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => broken.push(format!("function {function}: {error}")),
            Err(_) => broken.push(format!("function {function}: its thread has panicked")),
        }
    }
    oracle.flush();
    if !oracle.is_whole() {
        broken.push("the log is not whole".to_owned());
    }
    if !broken.is_empty() {
        bail!("{}", broken.join("; "));
    }
    Ok(())
}

fn knobs(cli: &Cli) -> Result<Knobs> {
    let ppm = |name: &str, percent: f64| {
        if !(0.0..=100.0).contains(&percent) {
            bail!("--{name} is {percent}: it wants 0 to 100");
        }
        Ok((percent * 10_000.0).round() as u32)
    };
    Ok(Knobs::new([
        cli.hold_interrupt_us,
        cli.late_eqe_us,
        cli.coalesce,
        cli.foreign_eqes,
        cli.delay_us,
        cli.jitter_us,
        ppm("loss", cli.loss)?,
        ppm("reorder", cli.reorder)?,
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_loss_is_a_percentage() {
        let cli = Cli::parse_from(["mlx5-card", "--socket", "x", "--loss", "1.5"]);
        assert_eq!(knobs(&cli).unwrap().loss_ppm(), 15_000);
        assert!(knobs(&Cli::parse_from(["mlx5-card", "--socket", "x", "--loss", "101"])).is_err());
    }
}
