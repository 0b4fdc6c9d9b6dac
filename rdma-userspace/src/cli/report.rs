//! `rdmascope report`
use std::process::ExitCode;

/// Flags of `rdmascope report`.
#[derive(clap::Args)]
pub struct Args {
    /// Capture or folder of captures.
    dir: std::path::PathBuf,
}

/// Reports.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not yet {}", args.dir.display())
}

/// Prints the report over a folder.
pub fn print(dir: &std::path::Path) -> anyhow::Result<ExitCode> {
    println!("captures: {}", dir.display());
    Ok(ExitCode::SUCCESS)
}
