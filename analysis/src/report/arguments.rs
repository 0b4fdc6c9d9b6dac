//! The command line of a report, shared by `rdmascope report` and `rdmascope-report`.
use super::{Error, Options, run};
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
    /// Write the whole report as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
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
        Arguments { dir, json: None, html: None, text: false }
    }

    /// Analyses, prints to standard output, writes what was asked for.
    ///
    /// # Errors
    /// [`Error`].
    pub fn report(&self) -> Result<ExitCode, Error> {
        let mut out = io::stdout();
        let color = out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let options = Options { dir: self.dir.clone(), json: self.json.clone(), html: self.html.clone(), full_text: self.text, color };
        run(&options, &mut out).map(|(_, code)| ExitCode::from(code))
    }
}
