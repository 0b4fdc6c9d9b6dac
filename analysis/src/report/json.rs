//! The report as JSON: the model as it is, pretty-printed, the same bytes for the same captures.
use super::{Error, write_file};
use crate::model::Report;
use std::path::Path;

/// The JSON text.
///
/// # Errors
/// [`Error::Json`] when a value cannot be written as JSON.
pub fn render(report: &Report) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    Ok(text)
}

/// Writes the JSON file.
///
/// # Errors
/// [`Error::Write`].
pub fn write(report: &Report, path: &Path) -> Result<(), Error> {
    write_file(path, render(report)?.as_bytes())
}
