//! Both sides of a round trip: what is said of the tables.
use crate::report::model::SidesTable;
use capture::text::units::{count, ns};
use std::fmt::Write;

/// What stands under the tables, once.
pub(in crate::show) const SENTENCE: &str = "Every line but the network is a difference within one machine's clock; the two clocks are never compared. The network \
     is what is left of the round trip. Where a kernel does not show when the CQE was written, that side's notification stays in that line.";

/// How many samples a table is of.
pub(in crate::show) fn words(it: &SidesTable) -> String {
    let mut words = format!("{} samples of both sides, mean rtt {}", count(it.n), ns(it.mean_rtt_ns));
    for (n, what) in [
        (it.unmatched, "without a sample of the server"),
        (it.incomplete, "incomplete, left out"),
        (it.negative_network, "with a negative network (kept raw)"),
    ] {
        if n > 0 {
            let _ = write!(words, "; {} {what}", count(n));
        }
    }
    words
}
