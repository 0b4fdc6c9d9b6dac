//! The one choice of what heads a run, for every output.
use super::model::{Latency, RunReport};

/// The latency that stands for a run.
#[derive(Clone, Copy, Debug)]
pub struct Headline<'a> {
    /// The distribution; it holds samples.
    pub latency: &'a Latency,
    /// It is of rounds with probes, because there are no samples without.
    pub probed: bool,
}

/// The headline of a run: its rounds without probes where they hold samples, else those with; `None` where no round holds any.
pub fn headline(run: &RunReport) -> Option<Headline<'_>> {
    [(&run.untraced, false), (&run.traced, true)]
        .into_iter()
        .filter_map(|(latency, probed)| Some(Headline { latency: latency.as_ref()?, probed }))
        .find(|it| it.latency.n > 0)
}
