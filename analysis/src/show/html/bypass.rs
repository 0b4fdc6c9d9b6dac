//! The proof of bypass, per run.
use super::groups::run_words;
use super::markup::{esc, paragraph};
use crate::report::model::Report;
use crate::show::words::bypass::lines;
use std::fmt::Write as _;

/// What stands under the title.
pub(super) fn body(out: &mut String, report: &Report) {
    paragraph(
        out,
        "Read before and after each measured round, never within: the thread's own I/O counters and the bytes of the control connection. The \
         system calls were counted in a round of its own, because counting slows each of them.",
    );
    for run in &report.runs {
        let lines = lines(run);
        if lines.is_empty() {
            paragraph(out, &format!("{}: the capture holds nothing of it.", run_words(run)));
            continue;
        }
        let _ = writeln!(out, "<h3>{}</h3>\n<ul>", esc(&run_words(run)));
        for line in lines {
            let _ = writeln!(out, "<li>{}</li>", esc(&line));
        }
        out.push_str("</ul>\n");
    }
}
