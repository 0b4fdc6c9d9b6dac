//! A capture: the folder of one run. `manifest.json`, and the samples and events: an append-only log while recording
//! (`capture.log`), Parquet once sealed (`samples.parquet`, `events.parquet`).

pub mod manifest;
pub mod sample;

pub use manifest::Manifest;
pub use sample::Sample;
