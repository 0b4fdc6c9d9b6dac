//! Limits that whoever records and whoever reports must agree on.

/// Share of lost records or samples above which a run is LOSS: its verdicts are withheld and the program exits with 3.
pub const LOSS_LIMIT: f64 = 0.001;
