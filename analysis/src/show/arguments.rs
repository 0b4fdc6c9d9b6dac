//! The command line of a report, shared by `rdmascope report` and `rdmascope-report`.
use super::{Error, Options, run};
use crate::export::{FORMATS, Format};
use clap::{Arg, ArgMatches, Command, FromArgMatches};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

/// What both programs say at the end of their help.
pub const EXAMPLES: &str = "Examples (`results` is a folder with captures; `rdmascope report` does the same):
  rdmascope-report results                     summary of all captures in it
  rdmascope-report results --text              every run in full: bands, flags, slow samples
  rdmascope-report results --json report.json  for scripts
  rdmascope-report results --html site         site/index.html for a browser, with its charts

Exit codes: 0 done, 1 failed (a capture could not be read; the others are
reported), 2 usage, 3 done, but more than 0.1 % of the records or samples were
lost, 5 done, but a run never settled (UNSTABLE).";

/// Flags of a report.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// A capture (a folder with manifest.json), or a folder with captures somewhere below it
    pub dir: PathBuf,
    #[command(flatten)]
    exports: Exports,
    /// Write the HTML report with its charts into this folder
    #[arg(long, value_name = "DIR")]
    pub html: Option<PathBuf>,
    /// Print every run in full, not only the summary
    #[arg(long)]
    pub text: bool,
}

impl Arguments {
    /// A summary of what is below `dir`, printed only.
    pub fn summary(dir: PathBuf) -> Arguments {
        Arguments { dir, exports: Exports::default(), html: None, text: false }
    }

    /// Analyses, prints to standard output, writes what was asked for.
    ///
    /// # Errors
    /// [`Error`].
    pub fn report(&self) -> Result<ExitCode, Error> {
        let mut out = io::stdout();
        let color = out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let options =
            Options { dir: self.dir.clone(), exports: self.exports.0.clone(), html: self.html.clone(), full_text: self.text, color };
        run(&options, &mut out).map(|(_, code)| ExitCode::from(code))
    }
}

/// A flag for every format of [`FORMATS`], with the file that it is written to.
#[derive(Clone, Debug, Default)]
struct Exports(Vec<(&'static Format, PathBuf)>);

impl clap::Args for Exports {
    fn augment_args(command: Command) -> Command {
        let flag = |format: &'static Format| {
            Arg::new(format.name).long(format.name).value_name("FILE").help(format.about).value_parser(clap::value_parser!(PathBuf))
        };
        command.args(FORMATS.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Exports::augment_args(command)
    }
}

impl FromArgMatches for Exports {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Exports, clap::Error> {
        let asked = |format: &'static Format| Some((format, matches.get_one::<PathBuf>(format.name)?.clone()));
        Ok(Exports(FORMATS.iter().filter_map(asked).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Exports::from_arg_matches(matches)?;
        Ok(())
    }
}
