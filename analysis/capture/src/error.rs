//! What can go wrong with a capture; every variant names the file and what was being done.
use std::io;
use std::path::{Path, PathBuf};

/// An error of reading, writing or sealing a capture.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, such as `append to`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A new capture would overwrite an old one.
    #[error("{} holds a capture already; choose another folder", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// There is no capture at this place.
    #[error("{} holds no capture (no manifest.json, also not in the folders below; links to folders are not followed)", path.display())]
    NoCapture {
        /// The folder.
        path: PathBuf,
    },
    /// The server's side alone says nothing about latency.
    #[error("{} is the server's side of a run: it has no latency of its own. Open the folder above it", path.display())]
    ServerSide {
        /// The folder.
        path: PathBuf,
    },
    /// The manifest is not what this version can read.
    #[error("manifest {} is not readable: {why}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The capture was written by a newer version of the tool.
    #[error("{} has schema version {found}, this version reads up to {known}: use a newer rdmascope-report", path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that can be read.
        known: u32,
    },
    /// Bytes that were handed in or found are not whole records.
    #[error("{}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its position.
        why: String,
    },
    /// Reading or writing Parquet failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Parquet {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: parquet::errors::ParquetError,
    },
    /// The sealed files do not hold what the log held; the log was kept.
    #[error("sealing {} failed its check, the log was kept: {why}", path.display())]
    Verify {
        /// The folder.
        path: PathBuf,
        /// What differed.
        why: String,
    },
}

/// Result of capture operations.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// For `map_err`: an I/O error with its path and action.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Io { action, path, source }
    }

    /// For `map_err`: a Parquet error with its path and action.
    pub(crate) fn parquet(action: &'static str, path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Parquet { action, path, source }
    }

    /// A damaged file.
    pub(crate) fn damaged(path: &Path, why: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_path_buf(), why: why.into() }
    }
}
