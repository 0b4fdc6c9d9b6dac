//! The files of a capture: their names, and opening one.
use crate::error::{Error, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The manifest's file name.
pub const MANIFEST_FILE: &str = "manifest.json";
/// The log's file name.
pub const LOG_FILE: &str = "capture.log";
/// The sealed samples' file name.
pub const SAMPLES_FILE: &str = "samples.parquet";
/// The sealed events' file name.
pub const EVENTS_FILE: &str = "events.parquet";

/// The folder of the server's side, within the client's capture.
pub const PEER_DIR: &str = "peer";

/// The server's side of the capture in `dir`, where there is one.
pub fn peer_of(dir: &Path) -> Option<PathBuf> {
    let peer = dir.join(PEER_DIR);
    peer.join(MANIFEST_FILE).is_file().then_some(peer)
}

/// Name of the folder of one run below the output folder: `host=NAME/run=NNN-op-mode`.
pub fn run_dir_name(host: &str, index: u32, op: &str, mode: &str) -> PathBuf {
    let safe: String = host.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') { c } else { '_' }).collect();
    PathBuf::from(format!("host={safe}")).join(format!("run={index:03}-{op}-{mode}"))
}

/// Opens a file of a capture; what is not a regular file (a pipe would block for ever) is refused.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    let kind = fs::metadata(path).map_err(Error::io("open", path))?;
    if !kind.is_file() {
        return Err(Error::damaged(path, "it is not a regular file"));
    }
    File::open(path).map_err(Error::io("open", path))
}
