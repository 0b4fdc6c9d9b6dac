//! The finished numbers as files for other tools: one file here per format.
//!
//! A format is a row of [`FORMATS`]. The report command gives each a flag of its name (`--json FILE`), so that a new format is a new file
//! beside `json.rs` and its row here, and nothing else.
mod json;

use crate::report::model::Report;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A format.
#[derive(Debug)]
pub struct Format {
    /// Its name; the flag of the report command is called so.
    pub name: &'static str,
    /// What the flag does, for its help.
    pub about: &'static str,
    /// The whole file. The same report gives the same bytes.
    pub render: fn(&Report) -> Result<Vec<u8>, Error>,
}

/// Every format.
pub static FORMATS: &[Format] = &[json::FORMAT];

/// Why a report was not exported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The numbers cannot be put into JSON.
    #[error("cannot put the report into JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Format {
    /// The format of this name.
    pub fn of(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Writes the report to a file; makes the folders above it.
    ///
    /// # Errors
    /// [`Error`]; an error of the format leaves the file alone.
    pub fn write(&self, report: &Report, path: &Path) -> Result<(), Error> {
        let bytes = (self.render)(report)?;
        let failed = |source| Error::Write { path: path.to_path_buf(), source };
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        fs::write(path, bytes).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_name_of_its_own_that_can_be_a_flag() {
        for (at, format) in FORMATS.iter().enumerate() {
            assert!(format.name.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !format.about.is_empty(), "{}", format.name);
            assert!(FORMATS[at + 1..].iter().all(|other| other.name != format.name), "{} twice", format.name);
            assert_eq!(Format::of(format.name).map(|it| it.name), Some(format.name));
        }
        assert!(Format::of("no such format").is_none());
    }
}
