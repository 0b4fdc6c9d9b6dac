//! Counting results from what Rust's test harness prints.

use std::fmt;

/// How many tests passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed, and binaries that ended without a result.
    pub failed: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

impl Counts {
    /// Adds a `test result: …` line; other lines count nothing. Returns whether it was one.
    pub fn add_line(&mut self, line: &str) -> bool {
        let Some(counts) = result_line(line) else { return false };
        self.add(counts);
        true
    }

    /// Adds other counts.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// The counts of one binary's whole output; none when it ended without saying its result.
pub fn of_output(text: &str) -> Option<Counts> {
    let mut counts = Counts::default();
    let mut is_complete = false;
    for line in text.lines() {
        is_complete |= counts.add_line(line);
    }
    is_complete.then_some(counts)
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; …`
fn result_line(line: &str) -> Option<Counts> {
    let line = line.trim_end_matches('\r').strip_prefix("test result: ")?;
    let number = |what: &str| {
        let part = line.split([';', '.']).find(|part| part.trim_end().ends_with(what))?;
        part.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(Counts { passed: number("passed")?, failed: number("failed")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.02s";
    const BAD: &str = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s";

    #[test]
    fn result_lines_are_summed() {
        let counts = of_output(&format!("running 3 tests\n{GOOD}\nrunning\n{BAD}\r\n")).unwrap();
        assert_eq!(counts, Counts { passed: 4, failed: 2 });
        assert_eq!(counts.to_string(), "4 passed, 2 failed");
    }

    #[test]
    fn output_without_a_result_is_no_result() {
        assert_eq!(of_output("running 3 tests\ntest a ... ok\n"), None);
        assert_eq!(of_output("printed: test result: ok. 3 passed; 0 failed;"), None);
    }
}
