//! The contract between what records and what analyses: the words (operation, mode, transport, level, shape), the numbers that both
//! must agree on, and the capture on disk.
//!
//! A capture is the folder of one run: `manifest.json`, and the samples and events: an append-only log while recording
//! (`capture.log`), Parquet once sealed (`samples.parquet`, `events.parquet`). docs/capture-format.md describes it.
//!
//! No charts, no command line and no verbs here: whoever records needs nothing else of the analysis.

mod error;
pub mod files;
pub mod kind_order;
pub mod level;
pub mod limits;
pub mod log;
pub mod manifest;
pub mod metric;
pub mod mode;
pub mod named;
pub mod operation;
pub mod order;
mod parquet_file;
pub mod quantile;
pub mod read;
pub mod record;
pub mod sample;
pub mod seal;
pub mod shape;
pub mod side;
pub mod text;
pub mod transport;
pub mod wr_id;

pub use error::{Error, Result};
pub use files::{EVENTS_FILE, LOG_FILE, MANIFEST_FILE, PEER_DIR, SAMPLES_FILE, peer_of, run_dir_name};
pub use level::Level;
pub use log::LogWriter;
pub use manifest::Manifest;
pub use metric::Metric;
pub use mode::Mode;
pub use operation::Operation;
pub use read::{Capture, find};
pub use record::Record;
pub use sample::Sample;
pub use seal::seal;
pub use shape::CompletionShape;
pub use side::Side;
pub use transport::Transport;
