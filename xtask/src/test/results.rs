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

/// What one run of a test binary came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Its tests.
    pub counts: Counts,
    /// How long they took; none when it ended without saying so.
    pub seconds: Option<f64>,
}

/// The outcome that a whole output tells; none when it ended without saying its result.
pub fn of_output(text: &str) -> Option<Outcome> {
    let mut outcome = Outcome { counts: Counts::default(), seconds: None };
    let mut is_complete = false;
    for line in text.lines().filter(|line| result_line(line).is_some()) {
        is_complete |= outcome.counts.add_line(line);
        if let Some(seconds) = seconds_of(line) {
            *outcome.seconds.get_or_insert(0.0) += seconds;
        }
    }
    is_complete.then_some(outcome)
}

/// One module of the guest tests on one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name of the module.
    pub module: String,
    /// Name of the kernel.
    pub kernel: String,
    /// What it came to there.
    pub outcome: Outcome,
}

/// The rows as a table, with a line of sums; times are those that the modules themselves took, without the guest's start.
pub fn table(rows: &[Row]) -> String {
    let mut text = format!("{:<18} {:<8} {:>6} {:>6} {:>8}\n", "module", "kernel", "passed", "failed", "seconds");
    let (mut counts, mut sum) = (Counts::default(), 0.0);
    for Row { module, kernel, outcome } in rows {
        let Counts { passed, failed } = outcome.counts;
        let seconds = outcome.seconds.map_or("-".to_owned(), |seconds| format!("{seconds:.1}"));
        text += &format!("{module:<18} {kernel:<8} {passed:>6} {failed:>6} {seconds:>8}\n");
        counts.add(outcome.counts);
        sum += outcome.seconds.unwrap_or_default();
    }
    text + &format!("{:<18} {:<8} {:>6} {:>6} {sum:>8.1}\n", "all", "", counts.passed, counts.failed)
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

/// The seconds at the end of such a line: `…; finished in 0.02s`
fn seconds_of(line: &str) -> Option<f64> {
    let (_, seconds) = line.trim_end().rsplit_once("finished in ")?;
    seconds.strip_suffix('s')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.02s";
    const BAD: &str = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s";

    #[test]
    fn result_lines_are_summed() {
        let Outcome { counts, seconds } = of_output(&format!("running 3 tests\n{GOOD}\nrunning\n{BAD}\r\n")).unwrap();
        assert_eq!(counts, Counts { passed: 4, failed: 2 });
        assert_eq!(counts.to_string(), "4 passed, 2 failed");
        assert!(seconds.is_some_and(|seconds| (seconds - 0.04).abs() < 1e-9), "{seconds:?}");
    }

    #[test]
    fn output_without_a_result_is_no_result() {
        assert_eq!(of_output("running 3 tests\ntest a ... ok\n"), None);
        assert_eq!(of_output("printed: test result: ok. 3 passed; 0 failed;"), None);
        let without_time = of_output("test result: ok. 3 passed; 0 failed;").unwrap();
        assert_eq!((without_time.counts.passed, without_time.seconds), (3, None));
    }

    #[test]
    fn the_table_has_a_row_per_module_and_kernel_and_the_sums() {
        let row = |kernel: &str, passed, failed, seconds| Row {
            module: "vm_verbs".to_owned(),
            kernel: kernel.to_owned(),
            outcome: Outcome { counts: Counts { passed, failed }, seconds },
        };
        let text = table(&[row("6.1", 23, 0, Some(31.26)), row("7", 0, 1, None)]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["vm_verbs", "6.1", "23", "0", "31.3"]);
        assert_eq!(lines[2], ["vm_verbs", "7", "0", "1", "-"]);
        assert_eq!(lines[3], ["all", "23", "1", "31.3"]);
        assert_eq!(lines.len(), 4);
    }
}
