//! The levels: which probes a run carries.

use std::fmt;
use std::str::FromStr;

/// Which probes. Each level holds those below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// No probe.
    None,
    /// Handler, waking, run: K5, K6, K8.
    Min,
    /// The whole completion path as the driver has it, and what takes the CPU from the measured thread.
    #[default]
    Std,
    /// Also the event read's return, the ends of all interrupts and softirqs, NAPI polls, packets at the device.
    Full,
    /// Also the life of CQs: what `trace` chooses from. No run has it, and the command line does not take it.
    Trace,
}

impl Level {
    /// Every level that a run can have, lowest first.
    pub const ALL: [Level; 4] = [Level::None, Level::Min, Level::Std, Level::Full];

    /// Its name on the command line and in captures.
    pub const fn name(self) -> &'static str {
        match self {
            Level::None => "none",
            Level::Min => "min",
            Level::Std => "std",
            Level::Full => "full",
            Level::Trace => "trace",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is no level.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no probe level; the levels are none, min, std, full")]
pub struct UnknownLevel(String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Level::ALL.into_iter().find(|level| level.name() == word).ok_or_else(|| UnknownLevel(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for level in Level::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        assert!("all".parse::<Level>().is_err() && Level::Min < Level::Std);
    }
}
