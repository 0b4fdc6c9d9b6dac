//! How the demo ends, by the exit codes of its two programs: the measurement in the guest and the report on the host.

use crate::exit;
use anyhow::Result;

/// The exit code of the demo, and what it says at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    /// Exit code of the demo.
    pub(super) code: u8,
    /// What is said at the end; empty after a report without reservations.
    pub(super) says: &'static str,
}

const LOSS: &str = "the report is complete, but a run lost more records than the limit (named at its top; its verdict is withheld). \
    A busy machine does that under emulation: run it again with nothing else running";
const UNSTABLE: &str = "UNSTABLE: this machine was too noisy for the figures (see the report); run it again with nothing else running";

/// Whether a measurement or a report that ended with `code` did its work: what it has to say beyond that stands in the report.
pub(super) fn has_done_its_work(code: u8) -> bool {
    matches!(code, exit::DONE | exit::LOSS | exit::UNSTABLE)
}

impl Ending {
    /// The ending for the code of the measurement and, where it came to a report, that of the report.
    pub(super) fn of(measured: u8, reported: Option<u8>) -> Self {
        if !has_done_its_work(measured) {
            return Self { code: measured, says: "the measurement failed (its words above)" };
        }
        let Some(reported) = reported.filter(|code| has_done_its_work(*code)) else {
            return Self { code: exit::FAILED, says: "the report failed (its words above)" };
        };
        // Loss is counted anew by the report, which sees all of a capture; what the measurement noticed itself counts first.
        let code = if measured == exit::DONE { reported } else { measured };
        let says = match code {
            exit::DONE => "",
            exit::LOSS => LOSS,
            _ => UNSTABLE,
        };
        Self { code, says }
    }

    /// The outcome of the demo.
    pub(super) fn outcome(self) -> Result<()> {
        if self.code == exit::DONE { Ok(()) } else { Err(exit::coded(self.code, self.says)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_codes_has_its_ending() {
        let failed = "failed";
        for (measured, reported, code, says) in [
            (0, Some(0), 0, ""),
            (0, Some(3), 3, "lost more records"),
            (0, Some(5), 5, "UNSTABLE"),
            (3, Some(0), 3, "lost more records"),
            (3, Some(3), 3, "lost more records"),
            (3, Some(5), 3, "lost more records"),
            (5, Some(0), 5, "UNSTABLE"),
            (5, Some(3), 5, "UNSTABLE"),
            (5, Some(5), 5, "UNSTABLE"),
            (0, Some(1), 1, failed),
            (0, Some(2), 1, failed),
            (5, Some(101), 1, failed),
            (3, Some(69), 1, failed),
            (0, None, 1, failed),
            (1, None, 1, failed),
            (2, None, 2, failed),
            (4, None, 4, failed),
            (69, None, 69, failed),
            (137, None, 137, failed),
        ] {
            let ending = Ending::of(measured, reported);
            assert_eq!(ending.code, code, "measurement {measured}, report {reported:?}");
            assert!(ending.says.contains(says) && ending.says.is_empty() == says.is_empty(), "{measured}, {reported:?}: {ending:?}");
        }
    }
}
