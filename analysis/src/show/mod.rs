//! The report shown: as text in the terminal, as a page with its charts, and as the files of the exports.
//! `rdmascope report` and `rdmascope-report` are both [`run`].
pub mod arguments;
pub mod html;
pub mod plots;
pub mod text;
mod words;

use crate::export::{self, Format};
use crate::report::model::Report;
use crate::report::of_folder;
use capture::limits::LOSS_LIMIT;
use capture::manifest::Outcome;
use capture::text::printable;
use std::io;
use std::path::PathBuf;

/// What to do.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A capture, or a folder with captures below it.
    pub dir: PathBuf,
    /// Files for other tools: the format, and where to write it.
    pub exports: Vec<(&'static Format, PathBuf)>,
    /// Folder of the HTML report.
    pub html: Option<PathBuf>,
    /// Print every run in full, not only the summary.
    pub full_text: bool,
    /// Colour the text.
    pub color: bool,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A capture cannot be read.
    #[error(transparent)]
    Capture(#[from] capture::Error),
    /// An export failed.
    #[error(transparent)]
    Export(#[from] export::Error),
    /// The terminal (or pipe) went away.
    #[error("cannot print the report: {0}")]
    Print(#[source] io::Error),
    /// The page or a chart cannot be written.
    #[error(transparent)]
    Html(#[from] html::ReportError),
}

/// Exit code of a report that lacks captures which could not be read.
pub const EXIT_UNREADABLE: u8 = 1;
/// Exit code of a report that is complete but rests on too lossy records.
pub const EXIT_LOSS: u8 = 3;
/// Exit code of a report over a run that never settled.
pub const EXIT_UNSTABLE: u8 = 5;

/// Analyses, prints to `out`, writes what was asked for. Returns the report and the exit code (0, 1 where a capture beside others
/// could not be read, 3 for loss over the limit, or 5 for a run that never settled).
///
/// # Errors
/// [`Error`]; nothing is written before the analysis is done.
pub fn run(options: &Options, out: &mut dyn io::Write) -> Result<(Report, u8), Error> {
    let report = of_folder(&options.dir)?;
    for (format, path) in &options.exports {
        format.write(&report, path)?;
    }
    let page = options.html.as_ref().map(|dir| html::write(&report, dir)).transpose()?;
    let text = text::render(&report, options.full_text, options.color);
    match out.write_all(text.as_bytes()) {
        // A reader that has seen enough (`| head`) is not a failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        other => other.map_err(Error::Print)?,
    }
    if let Some(page) = page {
        let _ = writeln!(out, "\nThe page: {}", printable(&page.display().to_string()));
    }
    let shares = report.runs.iter().map(|run| run.loss_share).chain(report.traces.iter().map(|it| it.loss_share));
    let lossy = shares.into_iter().any(|share| share > LOSS_LIMIT);
    let unstable = report.runs.iter().any(|run| matches!(run.manifest.outcome, Outcome::Unstable(_)));
    let code = match (report.unreadable.is_empty(), lossy, unstable) {
        (false, ..) => EXIT_UNREADABLE,
        (true, true, _) => EXIT_LOSS,
        (true, false, true) => EXIT_UNSTABLE,
        (true, false, false) => 0,
    };
    Ok((report, code))
}
