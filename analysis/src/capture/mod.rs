//! A capture: the folder of one run. `manifest.json`, and the samples and events: an append-only log while recording
//! (`capture.log`), Parquet once sealed (`samples.parquet`, `events.parquet`). docs/capture-format.md describes it.

pub mod costs;
mod error;
pub mod log;
pub mod manifest;
pub mod order;
pub mod read;
pub mod record;
pub mod sample;
pub mod seal;
pub mod trace;

pub use error::{Error, Result};
pub use log::LogWriter;
pub use manifest::Manifest;
pub use read::{Capture, find};
pub use record::Record;
pub use sample::Sample;
pub use seal::seal;

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
pub fn peer_of(dir: &std::path::Path) -> Option<std::path::PathBuf> {
    let peer = dir.join(PEER_DIR);
    peer.join(MANIFEST_FILE).is_file().then_some(peer)
}

/// Name of the folder of one run below the output folder: `host=NAME/run=NNN-op-mode`.
pub fn run_dir_name(host: &str, index: u32, op: &str, mode: &str) -> std::path::PathBuf {
    let safe: String = host.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') { c } else { '_' }).collect();
    std::path::PathBuf::from(format!("host={safe}")).join(format!("run={index:03}-{op}-{mode}"))
}
