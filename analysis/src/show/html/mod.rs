//! The report as one self-contained HTML page: tables, inline SVG and inline CSS, no script and nothing loaded from elsewhere.
//! Beside it lie the same charts as files (`charts/*.svg`, `charts/*.png`) and the numbers (`report.json`).
//!
//! The order of its sections is that of the table in `sections.rs`; the warnings stand before it.

mod bypass;
mod charts;
mod context;
mod costs;
mod groups;
mod markup;
mod operation;
mod sections;
mod sides;
mod summary;
mod traces;
mod warnings;

use crate::report::model::Report;
use crate::show::plots::PlotError;
use charts::Pictures;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A chart could not be made.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// A file or folder could not be written.
    #[error("cannot write {path}", path = path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The numbers could not be put into JSON.
    #[error("cannot put the report into JSON")]
    Json(#[from] serde_json::Error),
}

/// Writes `index.html`, `charts/` and `report.json` into `out_dir` (made if missing) and returns the path of the page.
///
/// # Errors
/// [`ReportError`]: a chart that cannot be drawn, a file that cannot be written.
pub fn write(report: &Report, out_dir: &Path) -> Result<PathBuf, ReportError> {
    let mut pictures = Pictures::new(out_dir)?;
    let page = page(report, &mut pictures)?;
    store(&out_dir.join("report.json"), serde_json::to_string_pretty(report)?.as_bytes())?;
    let index = out_dir.join("index.html");
    store(&index, page.as_bytes())?;
    Ok(index)
}

/// The whole page.
fn page(report: &Report, pictures: &mut Pictures) -> Result<String, ReportError> {
    let groups = groups::of(report);
    let mut out = String::new();
    let title = "rdmascope: where RDMA completion time goes";
    // The encoding first: everything after it may hold names from captures.
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n{}</header>\n<main>\n",
        include_str!("report.css"),
        summary::lead(report)
    );
    warnings::section(&mut out, report);
    sections::contents(&mut out, report, &groups);
    sections::all(&mut out, report, &groups, pictures)?;
    out.push_str("</main>\n</body>\n</html>\n");
    Ok(out)
}

fn store(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    std::fs::write(path, bytes).map_err(|source| ReportError::Write { path: path.to_owned(), source })
}
