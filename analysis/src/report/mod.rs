//! The report as finished numbers: one capture, or a tree of them, with what sets runs beside each other and what a reader must know.
mod analysed;
mod build;
mod compare;
mod headline;
pub mod model;
pub(crate) mod names;
mod overhead;
mod warnings;

pub use build::{REPORT_SCHEMA_VERSION, of_capture, of_folder};
pub use headline::{Headline, headline};
