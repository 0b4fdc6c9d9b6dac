//! The interference overlay in words and rows, for the text and the page.
use crate::report::model::{Interference, Source};
use capture::text::units::{count, ns, percent};

/// What it says in one sentence.
pub(in crate::show) fn summary(it: &Interference) -> String {
    if it.samples == 0 {
        return "no samples".into();
    }
    format!(
        "seen in {} of {} samples, {} of their time; {} in the median sample",
        count(it.touched),
        count(it.samples),
        percent(it.share),
        ns(it.usual_ns as f64)
    )
}

/// Source, times, samples, in all, longest.
pub(in crate::show) fn rows(it: &Interference) -> Vec<[String; 5]> {
    let known = |source: &Source, value: u64| if source.times == source.unknown { "not recorded".into() } else { ns(value as f64) };
    let row = |source: &Source| {
        let lost = if source.unknown > 0 && source.unknown < source.times {
            format!(" ({} without an end)", count(source.unknown))
        } else {
            String::new()
        };
        [
            source.name.clone(),
            format!("{}{lost}", count(source.times)),
            count(source.samples),
            known(source, source.total_ns),
            known(source, source.max_ns),
        ]
    };
    let mut rows: Vec<[String; 5]> = it.sources.iter().map(row).collect();
    if it.more_sources > 0 {
        let name = format!("{} more sources", count(it.more_sources));
        rows.push([name, String::new(), String::new(), ns(it.more_ns as f64), String::new()]);
    }
    rows
}

/// What must be said beside the rows: how many slow samples they explain, and what could not be seen.
pub(in crate::show) fn sentences(it: &Interference) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(slow) = &it.slow {
        sentences.push(format!(
            "Of the {} samples above p99 ({}), this explains {} (at least half of their excess over the median) and {} in part; no kernel cause was seen in {}.",
            count(slow.n),
            ns(slow.above_ns as f64),
            count(slow.explained),
            count(slow.partly),
            count(slow.none_seen)
        ));
    }
    if !it.not_seen.is_empty() {
        sentences.push(format!("Not recorded in this run, so that nothing is said of them: {}.", it.not_seen.join(", ")));
    }
    sentences
}
