//! The levels: which probes a run carries.
use crate::named::named;

named! {
    /// Which probes. Each level holds those below it.
    pub enum Level: "probe level" {
        /// No probe.
        None = "none",
        /// Handler, waking, run: K5, K6, K8.
        Min = "min",
        /// The whole completion path as the driver has it, and what takes the CPU from the measured thread.
        Std = "std",
        /// Also the event read's return, the ends of all interrupts and softirqs, NAPI polls, packets at the device.
        Full = "full",
        /// Also the life of CQs: what `trace` chooses from. No run has it, and the command line does not take it.
        Trace = "trace",
    }
}

// Not derived: the macro of the words has no place for the attribute.
#[allow(clippy::derivable_impls)]
impl Default for Level {
    fn default() -> Self {
        Level::Std
    }
}

impl Level {
    /// Every level that a run can have, lowest first.
    pub const OF_RUNS: &'static [Level] = &[Level::None, Level::Min, Level::Std, Level::Full];
}

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn names_are_read_back() {
        for level in Level::OF_RUNS {
            assert_eq!(level.to_string().parse(), Ok(*level));
        }
        assert!("all".parse::<Level>().is_err() && Level::Min < Level::Std && !Level::OF_RUNS.contains(&Level::Trace));
    }
}
