//! The HTML report: its order, what it says about what is missing, escaping, size, and that it loads nothing.
use crate::made_up;
use analysis::report::headline;
use analysis::report::model::{Report, Verdict};
use analysis::show::{html, text};
use capture::manifest::Outcome;
use capture::{Level, Metric, Operation};

/// Writes the report; returns the folder and the page.
fn page(report: &Report) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().expect("a folder");
    let index = html::write(report, &dir.path().join("deep/out")).expect("a report");
    let text = std::fs::read_to_string(index).expect("the page");
    (dir, text)
}

fn at(page: &str, text: &str) -> usize {
    page.find(text).unwrap_or_else(|| panic!("{text:?} is not on the page"))
}

#[test]
fn sections_come_in_order_and_warnings_first() {
    let (dir, page) = page(&made_up::emulated(made_up::report(&[Operation::Send, Operation::Read], 10_000)));
    let order = [
        "Warnings: read these first",
        "durations are the emulator",
        "verdict withheld for read 64 B",
        ">Summary</h2>",
        ">Poll against event</h2>",
        "<h2>send, 64 B, RC</h2>",
        "<h2>read, 64 B, RC</h2>",
        "<h2>What a poll and a post cost</h2>",
        "<h2>Cost of the probes</h2>",
        "<h2>Silent hooks and their controls</h2>",
        "<h2>Probe plan</h2>",
        "<h2>Losses</h2>",
        "<h2>Placement</h2>",
        "<h2>Environment</h2>",
        "<h2>How to read it</h2>",
    ];
    for pair in order.windows(2) {
        assert!(at(&page, pair[0]) < at(&page, pair[1]), "{pair:?}");
    }
    for text in [
        "no control possible here",
        "1.55 × [1.51, 1.60]",
        "RoCE v2 with an IPv4 address",
        "rxe of this kernel has tasklets",
        "no difference shown",
        "The cost of post is not the latency of the hardware",
        "There are no TSC cycles",
        "3 came back empty",
        "240 ns to 260 ns",
        "Under emulation these durations are the emulator",
        "Absent, which is not 0: hit poll: made up: send poll has none",
    ] {
        at(&page, text);
    }
    let out = dir.path().join("deep/out");
    for name in
        ["send-64B-RC-histogram", "send-64B-RC-cdf", "send-64B-RC-ccdf", "run001-send-64-event-1-bands", "run001-send-64-event-1-slow1"]
    {
        for format in ["svg", "png"] {
            let size = std::fs::metadata(out.join(format!("charts/{name}.{format}"))).expect("the chart").len();
            assert!((1_000..400_000).contains(&size), "{name}.{format}: {size} bytes");
        }
    }
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("report.json")).expect("the JSON")).expect("JSON");
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(4));
}

#[test]
fn the_page_is_self_contained_and_well_formed() {
    let (_dir, page) = page(&made_up::report(&[Operation::Send], 2_000));
    for forbidden in ["<script", "<link", "<img", "<iframe", "@import", "url(", "src="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    // The name of the SVG namespace is no address to load from.
    assert_eq!(page.matches("http").count(), page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
    for tag in ["section", "table", "tr", "td", "th", "figure", "svg", "details", "ul", "li", "span", "div", "p", "text"] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    let ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for (at, id) in ids.iter().enumerate() {
        assert!(!ids[at + 1..].contains(id), "{id} twice");
    }
    for target in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(&target), "{target} leads nowhere");
    }
}

#[test]
fn names_from_captures_are_escaped() {
    let evil = "<b onclick=\"x\">&'";
    let mut report = made_up::report(&[Operation::Send], 200);
    report.warnings.push(evil.into());
    for run in &mut report.runs {
        (run.path, run.has_twin) = (evil.into(), true);
        run.manifest.host.kernel = evil.into();
        run.manifest.host.cpu_model = evil.into();
        run.manifest.device.name = evil.into();
        run.manifest.device.gid_reason = evil.into();
        run.manifest.placement.text = evil.into();
        run.manifest.notes = vec![evil.into()];
        run.manifest.outcome = Outcome::Failed(evil.into());
        run.manifest.plan[0].symbol = Some(evil.into());
        run.warnings = vec![evil.into()];
        let breakdown = run.breakdown.as_mut().expect("a breakdown");
        breakdown.slow[0].verdict = evil.into();
    }
    report.comparisons[0].verdict = Verdict::Given(evil.into());
    let (dir, page) = page(&report);
    assert!(!page.contains("<b onclick") && page.contains("&lt;b onclick=&quot;x&quot;&gt;&amp;"));
    let charts: Vec<String> = std::fs::read_dir(dir.path().join("deep/out/charts"))
        .expect("the charts")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(charts.iter().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))), "{charts:?}");
}

/// Values that two formatters rounded in two ways: the page, its charts and the terminal say one text for each.
#[test]
fn one_number_has_one_text_on_the_page_and_in_the_terminal() {
    let mut report = made_up::report(&[Operation::Send], 2_000);
    report.comparisons[0].cpu_ratio = Some(0.3714);
    let run = &mut report.runs[1];
    run.loss_share = 0.000_96;
    let latency = run.untraced.as_mut().expect("untraced rounds");
    (latency.failed, latency.min_ns) = (1_234, 7);
    let breakdown = run.breakdown.as_mut().expect("a breakdown");
    (breakdown.coverage, breakdown.covered_samples) = (0.9999, 0.004);
    let stage = &mut breakdown.stages[0];
    (stage.share, stage.mean_of_all_ns, stage.max_ns) = (-0.0123, 7.4, 42);
    let (_dir, page) = page(&report);
    let terminal = text::render(&report, true, false);
    let texts = [
        // What is not all of it: was "99.99 %" on the page and ">99.9 %" in the terminal.
        ("cover >99.9 %", ["99.99 %"]),
        ("0.4 %", ["0.40 %"]),
        ("-1.2 %", ["-1.23 %"]),
        ("7 ns", ["7.40 ns"]),
        ("42 ns", ["42.0 ns"]),
        ("0.10 %", [" 0.1 %"]),
        ("1,234", ["=1234"]),
    ];
    for (said, others) in texts {
        let said_on_page = said.replace('>', "&gt;");
        assert!(page.contains(&said_on_page), "{said} is not on the page");
        assert!(terminal.contains(said), "{said} is not in the terminal");
        for other in others {
            assert!(!page.contains(other) && !terminal.contains(other), "{other} beside {said}");
        }
    }
    at(&page, "0.37 ×");
}

/// A distribution without samples heads no run, on the page and in the terminal.
#[test]
fn page_and_terminal_choose_one_headline() {
    let mut report = made_up::report(&[Operation::Send], 2_000);
    let run = &mut report.runs[1];
    run.untraced = Some(made_up::latency(Metric::Rtt, Vec::new(), 3));
    let headline = headline(run).expect("traced rounds hold samples");
    assert!(headline.probed && headline.latency.n == 2_000);
    let (_dir, page) = page(&report);
    at(&page, "on (no untraced rounds)");
    let terminal = text::render(&report, false, false);
    let row = terminal.lines().find(|line| line.contains("send") && line.contains("event") && line.contains(" B ")).expect("the row");
    assert!(row.ends_with(" traced"), "{row}");
}

#[test]
fn few_samples_are_withheld_and_missing_parts_are_said() {
    let mut report = made_up::report(&[Operation::Send], 12);
    report.runs[0].breakdown = None;
    report.runs[0].manifest.run.level = Level::None;
    report.runs[0].observer = None;
    report.runs[1].untraced = None;
    report.runs[1].loss_share = 0.2;
    report.runs[1].warnings.push("20.0 % of the records or samples were lost (limit 0.1 %)".into());
    report.runs[1].manifest.outcome = Outcome::Unstable("the warm-up never settled".into());
    let (_dir, page) = page(&report);
    for text in [
        "withheld (n too small)",
        "no probes ran (level none)",
        "on (no untraced rounds)",
        "20.0 % of the records or samples were lost",
        "UNSTABLE",
        "unknown",
        "event, probes on (n = 12)",
    ] {
        at(&page, text);
    }
    assert!(!page.contains("NaN"));
}

#[test]
fn stages_that_other_runs_have_are_called_absent() {
    let (_dir, page) = page(&made_up::report(&[Operation::Send], 200));
    at(&page, "Absent in this run, which is not the same as 0: notify delay; handler; activation; run queue; return to user.");
}

#[test]
fn different_metrics_do_not_share_a_table() {
    let (_dir, page) = page(&made_up::report(&[Operation::Send, Operation::Read], 200));
    let (rtt, own) = (at(&page, "Latency, rtt (round trip"), at(&page, "Latency, post→CQE (from before"));
    let table_between = page[rtt..own].contains("</table>");
    assert!(rtt < own && table_between);
    assert!(!page[rtt..own].contains("read 64 B"));
}

#[test]
fn nothing_and_a_dozen_runs_make_a_page_of_bounded_size() {
    let (_dir, none) = page(&made_up::report(&[], 0));
    at(&none, "No capture was found");
    let (_dir, dozen) = page(&made_up::report(Operation::MEASURED, 10_000));
    assert!(dozen.len() < 4_000_000, "{} bytes", dozen.len());
    assert_eq!(dozen.matches("<figure").count(), 6 * 3 + 12 * 5);
}
