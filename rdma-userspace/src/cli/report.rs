//! `rdmascope report`: the same as `rdmascope-report`.
use analysis::show::arguments::{Arguments, EXAMPLES};
use std::path::Path;
use std::process::ExitCode;

/// Flags of `rdmascope report`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    arguments: Arguments,
}

/// Reports.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    Ok(args.arguments.report()?)
}

/// Prints the summary of what a session has recorded.
pub fn print(out: &Path) -> anyhow::Result<ExitCode> {
    let code = Arguments::summary(out.to_path_buf()).report()?;
    super::print(&format!(
        "\ncaptures: {}   more: rdmascope report {} --text, or --html FOLDER (charts, to open in a browser)\n",
        out.display(),
        out.display()
    ))?;
    Ok(code)
}
