//! Every chart on empty, single, ordinary and extreme numbers: it draws, in both formats, and says what a reader needs.
use crate::made_up;
use analysis::report::model::{Breakdown, Cause, Interference, Latency, OverlayItem, SlowSample, SlowStage};
use analysis::show::plots::bands::Bands;
use analysis::show::plots::ccdf::Ccdf;
use analysis::show::plots::cdf::Cdf;
use analysis::show::plots::histogram::Histogram;
use analysis::show::plots::stage_cdf::StageCdf;
use analysis::show::plots::waterfall::Waterfall;
use analysis::show::plots::{Chart, Distribution, Heading, Series, png, svg};
use analysis::stages::StageId;
use capture::{Metric, Mode, Operation};

fn heading(emulated: bool) -> Heading {
    Heading { subject: "send, 64 B, RC, rtt".into(), context: "kernel 6.1, rxe0 (rdma_rxe); probes off".into(), emulated }
}

fn distribution<'a>(poll: &'a Latency, event: &'a Latency) -> Distribution<'a> {
    let series = |mode, latency: &'a Latency| Series { mode, repeat: 0, detail: String::new(), probed: false, latency };
    Distribution { heading: heading(false), series: vec![series(Mode::Poll, poll), series(Mode::Event, event)] }
}

/// Draws in both formats. The SVG must hold these texts and no coordinate outside of the picture; the PNG must be one.
fn draws(chart: &impl Chart, texts: &[&str]) -> String {
    let picture = svg(chart).expect("an SVG");
    for text in texts {
        assert!(picture.contains(text), "{text:?} is missing in the picture of: {}", chart.describe());
    }
    let (width, height) = chart.size();
    for (attribute, limit) in
        [("x", width), ("x1", width), ("x2", width), ("cx", width), ("y", height), ("y1", height), ("y2", height), ("cy", height)]
    {
        for value in picture.split(&format!(" {attribute}=\"")).skip(1).map(|rest| rest.split('"').next().unwrap_or("")) {
            let value: f64 = value.parse().expect("a number");
            assert!((0.0..=f64::from(limit * 2)).contains(&value), "{attribute} = {value} lies outside of {width} × {height}");
        }
    }
    assert!(!picture.contains("NaN") && !picture.contains("inf "), "not a number in the picture of: {}", chart.describe());
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("chart.png");
    png(chart, &path).expect("a PNG");
    let bytes = std::fs::read(&path).expect("the PNG");
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(bytes[16..24], [(width * 2).to_be_bytes(), (height * 2).to_be_bytes()].concat());
    picture
}

fn all_distributions(poll: &Latency, event: &Latency, texts: &[&str]) {
    draws(&Histogram(distribution(poll, event)), &[&["share of samples per bin", "Histogram: send, 64 B, RC, rtt"], texts].concat());
    draws(&Cdf(distribution(poll, event)), &[&["samples at or below"], texts].concat());
    draws(&Ccdf(distribution(poll, event)), &[&["samples slower than this (log scale)"], texts].concat());
}

#[test]
fn ordinary_distributions_carry_units_legend_and_counts() {
    let poll = made_up::latency(Metric::Rtt, made_up::samples(1, 20_000, 18_000.0), 0);
    let event = made_up::latency(Metric::Rtt, made_up::samples(2, 15_000, 30_000.0), 0);
    all_distributions(
        &poll,
        &event,
        &["20 µs", "50 µs", "100 µs", "latency (log scale)", "poll (n = 20,000)", "event (n = 15,000)", "kernel 6.1"],
    );
    let histogram = svg(&Histogram(distribution(&poll, &event))).expect("an SVG");
    assert!(histogram.contains("peak 17.8 µs"));
}

#[test]
fn empty_distributions_say_so() {
    let none = made_up::latency(Metric::Rtt, Vec::new(), 3);
    for picture in [
        svg(&Histogram(distribution(&none, &none))).expect("an SVG"),
        svg(&Cdf(distribution(&none, &none))).expect("an SVG"),
        svg(&Ccdf(distribution(&none, &none))).expect("an SVG"),
    ] {
        assert!(picture.contains("no samples") && picture.contains("poll (n = 0)"), "{picture}");
    }
    let nothing = Distribution { heading: heading(false), series: Vec::new() };
    draws(&Cdf(nothing), &["no samples"]);
}

#[test]
fn one_sample_and_extreme_values_draw() {
    let one = made_up::latency(Metric::Rtt, vec![23_400], 0);
    all_distributions(&one, &one, &["20 µs", "n = 1)"]);
    let zeros = made_up::latency(Metric::Rtt, vec![0; 50], 0);
    let wild = made_up::latency(Metric::Rtt, vec![0, 1, 17, u64::MAX / 2, u64::MAX], 0);
    all_distributions(&zeros, &wild, &["n = 50)", "n = 5)"]);
}

#[test]
fn emulation_is_said_in_every_picture() {
    let latency = made_up::latency(Metric::Rtt, made_up::samples(1, 100, 18_000.0), 0);
    let mut emulated = distribution(&latency, &latency);
    emulated.heading = heading(true);
    let run = made_up::run(1, Operation::Send, Mode::Event, 100, 18_000.0);
    let breakdown = run.breakdown.as_ref().expect("a breakdown");
    let note = analysis_note();
    draws(&Histogram(emulated.clone()), &[note]);
    draws(&Cdf(emulated.clone()), &[note]);
    draws(&Ccdf(emulated), &[note]);
    draws(&Bands { heading: heading(true), breakdown }, &[note]);
    draws(&StageCdf { heading: heading(true), stages: &breakdown.stages }, &[note]);
    draws(&Waterfall { heading: heading(true), rank: 1, sample: &breakdown.slow[0] }, &[note]);
}

fn analysis_note() -> &'static str {
    "EMULATED CPU: order, counts and shares hold, durations do not."
}

#[test]
fn many_runs_of_one_mode_stay_apart() {
    let latencies: Vec<Latency> =
        (0..12).map(|k| made_up::latency(Metric::Rtt, made_up::samples(k, 2_000, 15_000.0 + 2_000.0 * k as f64), 0)).collect();
    let series = latencies
        .iter()
        .enumerate()
        .map(|(at, latency)| Series {
            mode: if at % 2 == 0 { Mode::Poll } else { Mode::Event },
            repeat: at / 2,
            detail: format!("run {at}"),
            probed: false,
            latency,
        })
        .collect();
    let chart = Cdf(Distribution { heading: heading(false), series });
    draws(&chart, &["poll, run 0 (n = 2,000)", "event, run 11 (n = 2,000)"]);
}

fn empty_breakdown() -> Breakdown {
    Breakdown {
        joined: 0,
        samples: 0,
        lost: 0,
        coverage: 0.0,
        covered_samples: 0.0,
        stages: Vec::new(),
        bands: Vec::new(),
        flags: Vec::new(),
        agreement: None,
        slow: Vec::new(),
        interference: Interference::default(),
    }
}

#[test]
fn bands_show_their_stages_and_empty_ones_say_so() {
    let run = made_up::run(1, Operation::Send, Mode::Event, 20_000, 30_000.0);
    let breakdown = run.breakdown.as_ref().expect("a breakdown");
    draws(
        &Bands { heading: heading(false), breakdown },
        &["p99-p99.9", "above p99.9", "run queue", "unattributed", "mean time per sample", "share of the band&apos;s time", "n = 10,000"],
    );
    draws(
        &StageCdf { heading: heading(false), stages: &breakdown.stages },
        &["run queue (n = 20,000)", "duration of the stage (log scale)"],
    );
    let empty = empty_breakdown();
    draws(&Bands { heading: heading(false), breakdown: &empty }, &["no joined samples"]);
    draws(&StageCdf { heading: heading(false), stages: &[] }, &["no stage was seen"]);
}

#[test]
fn bands_survive_numbers_that_are_none() {
    let run = made_up::run(1, Operation::Send, Mode::Event, 100, 30_000.0);
    let mut breakdown = run.breakdown.expect("a breakdown");
    breakdown.bands[0].stages[0].1 = f64::NAN;
    breakdown.bands[1].stages[1].1 = -5.0;
    breakdown.bands[2].mean_ns = f64::INFINITY;
    breakdown.bands[3].n = 0;
    breakdown.bands[4].stages.iter_mut().for_each(|stage| stage.1 = 0.0);
    draws(&Bands { heading: heading(false), breakdown: &breakdown }, &["no samples in this band"]);
}

#[test]
fn waterfalls_name_stage_duration_and_median() {
    let run = made_up::run(1, Operation::Send, Mode::Event, 20_000, 30_000.0);
    let breakdown = run.breakdown.as_ref().expect("a breakdown");
    let texts = [
        "run queue",
        "(median",
        "time since the post began",
        "Verdict: the run queue took",
        "READER_PREEMPTED",
        "Slow sample 2",
        "CPU taken",
    ];
    draws(&Waterfall { heading: heading(false), rank: 2, sample: &breakdown.slow[1] }, &texts);
    let stage = |start_ns, duration_ns| SlowStage { stage: StageId::DeviceNetwork, start_ns, duration_ns, median_ns: None };
    let mark = |start_ns, duration_ns| OverlayItem { kind: Cause::Tick, name: "timer tick".into(), pid: None, start_ns, duration_ns };
    let mut wild = SlowSample {
        wr_id: u64::MAX,
        round: u32::MAX,
        total_ns: 0,
        stages: vec![stage(0, 0), stage(u64::MAX, u64::MAX)],
        flags: Vec::new(),
        verdict: "a word of a later kernel <&> without any space ".repeat(3) + &"x".repeat(3_000),
        overlay: vec![mark(0, None), mark(u64::MAX, Some(u64::MAX))],
        ..SlowSample::default()
    };
    draws(&Waterfall { heading: heading(false), rank: 1, sample: &wild }, &["of a later kernel &lt;&amp;&gt;", "no median"]);
    wild.stages.clear();
    draws(&Waterfall { heading: heading(false), rank: 1, sample: &wild }, &["no stage of this sample was seen"]);
}

#[test]
fn pictures_stay_small_and_escape_names() {
    let many = made_up::latency(Metric::Rtt, made_up::samples(1, 400_000, 18_000.0), 0);
    assert!(many.steps.len() > 2_000);
    let mut distribution = distribution(&many, &many);
    distribution.heading.subject = "<script>alert('x')</script>\u{1}".into();
    for picture in [
        svg(&Histogram(distribution.clone())).expect("an SVG"),
        svg(&Cdf(distribution.clone())).expect("an SVG"),
        svg(&Ccdf(distribution)).expect("an SVG"),
    ] {
        assert!(picture.len() < 60_000, "{} bytes", picture.len());
        assert!(!picture.contains("<script") && !picture.contains('\u{1}'));
    }
}

#[test]
fn a_folder_that_is_missing_is_told() {
    let one = made_up::latency(Metric::Rtt, vec![23_400], 0);
    let missing = std::path::Path::new("no-such-folder/chart.png");
    let error = png(&Cdf(distribution(&one, &one)), missing).expect_err("no file can be made there");
    assert!(error.to_string().contains("no-such-folder/chart.png"), "{error}");
}
