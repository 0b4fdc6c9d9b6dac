//! The latency distributions that the histogram, the CDF and the CCDF draw: one operation, its modes overlaid.
use super::axis::{Axis, Quantity};
use super::frame::{Frame, Heading, LegendItem, Plot, Swatch};
use super::style::{LineStyle, mode_style, probed_style};
use crate::report::model::Latency;
use capture::Mode;
use capture::text::units::count;

/// Width of the charts that stand side by side.
pub(super) const WIDTH: u32 = 720;
/// Their height.
pub(super) const HEIGHT: u32 = 440;

/// The curves of one chart.
#[derive(Clone, Debug)]
pub struct Distribution<'a> {
    /// What stands above.
    pub heading: Heading,
    /// The curves.
    pub series: Vec<Series<'a>>,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    /// Completion mode, which chooses colour, dash and marker.
    pub mode: Mode,
    /// Which of several curves of that mode in this chart, from 0.
    pub repeat: usize,
    /// What tells it from others of its mode, such as `run 3`; empty where nothing has to.
    pub detail: String,
    /// From rounds with probes: grey, and under the others.
    pub probed: bool,
    /// The numbers.
    pub latency: &'a Latency,
}

impl Series<'_> {
    pub(super) fn style(&self) -> LineStyle {
        if self.probed { probed_style(self.mode) } else { mode_style(self.mode, self.repeat) }
    }

    pub(super) fn label(&self) -> String {
        let mut label = self.mode.to_string();
        if !self.detail.is_empty() {
            label.push_str(&format!(", {}", self.detail));
        }
        if self.probed {
            label.push_str(", probes on");
        }
        format!("{label} (n = {})", count(self.latency.n))
    }
}

impl<'a> Distribution<'a> {
    /// The curves to draw: those with samples, the ones with probes first, so that they lie under the others.
    pub(super) fn drawn(&self) -> Vec<&Series<'a>> {
        let (probed, plain): (Vec<_>, Vec<_>) = self.series.iter().filter(|series| series.latency.n > 0).partition(|series| series.probed);
        probed.into_iter().chain(plain).collect()
    }

    /// Title, context and legend for a chart of this kind.
    pub(super) fn frame(&self, kind: &str, notes: Vec<String>) -> Frame<'_> {
        let legend = self.series.iter().map(|series| LegendItem { label: series.label(), swatch: Swatch::Line(series.style()) }).collect();
        Frame {
            title: format!("{kind}: {}", self.heading.subject),
            heading: &self.heading,
            lines: Vec::new(),
            legend,
            notes,
            width: f64::from(WIDTH),
        }
    }

    /// Height that keeps the picture's own area however many rows the legend takes.
    pub(super) fn height(&self, frame: &Frame<'_>) -> u32 {
        HEIGHT.max((frame.top() + frame.bottom()) as u32 + 330)
    }

    /// The area for the data within a frame.
    pub(super) fn plot(&self, frame: &Frame<'_>, height: u32) -> Plot {
        Plot { left: 66.0, right: f64::from(WIDTH) - 52.0, top: frame.top() + 24.0, bottom: f64::from(height) - frame.bottom() - 44.0 }
    }

    /// The latency axis over everything that the curves reach.
    pub(super) fn latency_axis(&self, plot: &Plot) -> Axis {
        let ends = self.drawn().into_iter().flat_map(|series| [series.latency.min_ns.max(1) as f64, series.latency.max_ns.max(1) as f64]);
        Axis::log(ends, Quantity::Time, plot.left, plot.right)
    }

    /// The curves in words, for the text alternative.
    pub(super) fn words(&self, kind: &str) -> String {
        let series: Vec<String> = self
            .series
            .iter()
            .map(|series| match series.latency.quantiles.iter().find(|quantile| quantile.q == 0.5).and_then(|quantile| quantile.value_ns) {
                Some(p50) => format!("{}, p50 {}", series.label(), capture::text::units::ns(p50 as f64)),
                None => series.label(),
            })
            .collect();
        let emulated = if self.heading.emulated { ". Emulated CPU: durations are the emulator's" } else { "" };
        format!(
            "{kind} of {}: {}{emulated}",
            self.heading.subject,
            if series.is_empty() { "no samples".to_string() } else { series.join("; ") }
        )
    }
}
