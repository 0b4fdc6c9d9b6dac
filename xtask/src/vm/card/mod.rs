//! An emulated ConnectX card for guests: which program plays it, how it is started, and the QEMU that can hold it.
//! docs/emulated-card.md tells how it is used.

mod args;
mod emulator;
mod process;

pub use args::{CardArgs, Device};
pub use emulator::find as find_emulator;
pub use process::Running;

use crate::{artifacts, exit, process as programs};
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

/// The package that builds the card's program, which is called so too.
const PACKAGE: &str = "mlx5-card";
/// From nothing, on two slow cores.
const BUILD_DEADLINE: Duration = Duration::from_secs(900);

/// What the card's port is connected to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Link {
    /// InfiniBand, with LIDs.
    #[default]
    Infiniband,
    /// Ethernet: RoCE, with GIDs, and a network device.
    Ethernet,
}

impl Link {
    /// Its name for the card and for the guest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Infiniband => "infiniband",
            Self::Ethernet => "ethernet",
        }
    }
}

/// A card: one process, with a function for each guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// The program that plays it.
    pub program: PathBuf,
    /// What its ports are connected to.
    pub link: Link,
    /// Where it writes what it did.
    pub log: Option<PathBuf>,
    /// More arguments for it.
    pub arguments: Vec<String>,
}

impl Card {
    /// A card played by `program`.
    pub fn new(program: PathBuf, link: Link) -> Self {
        Self { program, link, log: None, arguments: Vec::new() }
    }

    /// A card played by this workspace's program, which is built.
    pub fn built(link: Link) -> Result<Self> {
        let mut cargo = programs::cargo();
        cargo.args(["build", "--locked", "--release", "--package", PACKAGE]);
        let built = artifacts::built(&mut cargo, BUILD_DEADLINE)
            .map_err(|error| exit::infrastructure(format!("the emulated card cannot be had: {error:#}")))?;
        Ok(Self::new(artifacts::path_of(&built, "bin", PACKAGE)?.to_owned(), link))
    }
}

/// The socket of the function that the guest with this letter gets, in the folder that the card runs in.
pub fn socket_of(letter: char) -> String {
    format!("card-{letter}.sock")
}
