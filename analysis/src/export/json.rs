//! The report as JSON: the model as it is, pretty-printed.
use super::{Error, Format};
use crate::report::model::Report;

/// The format's row.
pub(super) const FORMAT: Format = Format { name: "json", about: "Write the whole report as JSON to this file", render };

fn render(report: &Report) -> Result<Vec<u8>, Error> {
    let mut text = serde_json::to_vec_pretty(report)?;
    text.push(b'\n');
    Ok(text)
}
