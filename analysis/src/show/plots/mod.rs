//! Charts, drawn by plotters: SVG and PNG from the same code, one chart per file. Everything here takes finished numbers.
//!
//! A chart implements [`Chart`]: it knows its size, a text alternative, and how to draw itself on a [`canvas::Canvas`] over any backend.
//! [`svg`] and [`png`] turn it into a picture. The text is set in the committed DejaVu Sans (`assets/`). A new chart is a file here, its
//! `mod` line and its row of [`CHARTS`]; the page draws every row.

mod axis;
pub mod bands;
pub mod canvas;
pub mod ccdf;
pub mod cdf;
mod distribution;
mod frame;
pub mod histogram;
mod picture;
pub mod stage_cdf;
pub mod style;
pub mod waterfall;

pub use distribution::{Distribution, Series};
pub use frame::Heading;
pub use picture::{Chart, Picture, PlotError, png, svg};

use crate::report::model::{Breakdown, SlowSample};
use bands::Bands;
use ccdf::Ccdf;
use cdf::Cdf;
use histogram::Histogram;
use stage_cdf::StageCdf;
use waterfall::Waterfall;

/// A chart of the page.
#[derive(Debug)]
pub struct Kind {
    /// Its name, in the names of its files.
    pub name: &'static str,
    /// Takes the whole line of the page.
    pub wide: bool,
    /// What one such picture is of.
    pub of: Subject,
}

/// What one picture is of, and how it is made.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// An operation: the latency distributions of its runs.
    Operation {
        /// With the rounds with probes beside those without.
        probed: bool,
        /// Makes it.
        make: for<'a> fn(Distribution<'a>) -> Box<dyn Picture + 'a>,
    },
    /// A run with stages.
    Run {
        /// Of one run of each operation, the one that explains the tail best, it stands beside the operation's charts.
        beside: bool,
        /// Makes it.
        make: for<'a> fn(Heading, &'a Breakdown) -> Box<dyn Picture + 'a>,
    },
    /// A slow sample with its rank, from 1.
    Sample {
        /// Makes it.
        make: for<'a> fn(Heading, usize, &'a SlowSample) -> Box<dyn Picture + 'a>,
    },
}

/// Every chart of the page; charts of the same subject stand there in this order.
pub static CHARTS: &[Kind] = &[
    Kind { name: "histogram", wide: false, of: Subject::Operation { probed: false, make: |of| Box::new(Histogram(of)) } },
    Kind { name: "cdf", wide: false, of: Subject::Operation { probed: true, make: |of| Box::new(Cdf(of)) } },
    Kind { name: "ccdf", wide: false, of: Subject::Operation { probed: true, make: |of| Box::new(Ccdf(of)) } },
    Kind {
        name: "bands",
        wide: true,
        of: Subject::Run { beside: false, make: |heading, breakdown| Box::new(Bands { heading, breakdown }) },
    },
    Kind {
        name: "stages",
        wide: false,
        of: Subject::Run { beside: true, make: |heading, breakdown| Box::new(StageCdf { heading, stages: &breakdown.stages }) },
    },
    Kind { name: "slow", wide: true, of: Subject::Sample { make: |heading, rank, sample| Box::new(Waterfall { heading, rank, sample }) } },
];

#[cfg(test)]
mod tests {
    use super::CHARTS;

    #[test]
    fn every_chart_has_a_name_of_its_own_that_can_be_a_file() {
        for (at, kind) in CHARTS.iter().enumerate() {
            assert!(!kind.name.is_empty() && kind.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", kind.name);
            assert!(CHARTS[at + 1..].iter().all(|other| other.name != kind.name), "{} twice", kind.name);
        }
    }
}
