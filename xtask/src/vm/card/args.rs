//! What a command line can say about the RDMA device of its guests.

use super::{Card, Link};
use anyhow::Result;
use std::path::PathBuf;

/// An RDMA device of guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Device {
    /// Soft-RoCE, made by the kernel.
    Rxe,
    /// An emulated ConnectX card under the kernel's own mlx5 drivers.
    Mlx5,
}

impl Device {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rxe => "rxe",
            Self::Mlx5 => "mlx5",
        }
    }
}

/// Options of commands whose guests may have an emulated card.
#[derive(Debug, Default, clap::Args)]
pub struct CardArgs {
    /// What the card's port is connected to. Default: infiniband; the tests take both in turn, kernel by kernel.
    #[arg(long)]
    link: Option<Link>,
    /// The program that plays the card. Default: the one of this workspace, which is built.
    #[arg(long)]
    card: Option<PathBuf>,
    /// Where the card writes what it did.
    #[arg(long)]
    card_log: Option<PathBuf>,
    /// More arguments for the card, separated by spaces.
    #[arg(long, allow_hyphen_values = true)]
    card_args: Option<String>,
}

impl CardArgs {
    /// The link, where one was named.
    pub fn link(&self) -> Option<Link> {
        self.link
    }

    /// Whether any of them was given.
    pub fn is_any_given(&self) -> bool {
        self.link.is_some() || self.card.is_some() || self.card_log.is_some() || self.card_args.is_some()
    }

    /// The card that they ask for; it is built where no program is named.
    pub fn card(&self) -> Result<Card> {
        let link = self.link.unwrap_or_default();
        let mut card = match &self.card {
            Some(program) => Card::new(program.clone(), link),
            None => Card::built(link)?,
        };
        card.log = self.card_log.clone();
        card.arguments = self.card_args.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect();
        Ok(card)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: CardArgs,
    }

    #[test]
    fn a_card_is_what_its_options_say() {
        assert!(!Cli::parse_from(["x"]).args.is_any_given());
        let args = Cli::parse_from(["x", "--card", "/x/card", "--card-args", "--vectors 2"]).args;
        assert!(args.is_any_given());
        let card = args.card().unwrap();
        assert_eq!((card.link, card.program, card.log), (Link::Infiniband, PathBuf::from("/x/card"), None));
        assert_eq!(card.arguments, ["--vectors", "2"]);
        let args = Cli::parse_from(["x", "--card", "y", "--link", "ethernet", "--card-log", "l"]).args;
        assert_eq!(args.card().unwrap().link.name(), "ethernet");
    }
}
