//! Distribution of each stage's duration: which stage has the tail. One curve per stage, the largest by share of the time.
use super::Chart;
use super::axis::{Axis, Quantity};
use super::canvas::{Canvas, DrawResult};
use super::cdf::staircase;
use super::distribution::WIDTH;
use super::frame::{Frame, Heading, LegendItem, Plot, Swatch};
use super::style::{LineStyle, Marker, mix};
use crate::report::model::StageStat;
use crate::stages::StageId;
use capture::text::units::{count, percent};
use plotters::backend::DrawingBackend;

/// More curves than this cannot be told apart.
const CURVES: usize = 6;
const DASHES: [&[f64]; 3] = [&[], &[9.0, 4.0], &[2.0, 3.0]];
const MARKERS: [Marker; 4] = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond];

/// The chart.
#[derive(Clone, Debug)]
pub struct StageCdf<'a> {
    /// What stands above.
    pub heading: Heading,
    /// All stages; the largest are drawn.
    pub stages: &'a [StageStat],
}

impl Chart for StageCdf<'_> {
    fn size(&self) -> (u32, u32) {
        let frame = self.frame();
        (WIDTH, (frame.top() + frame.bottom()) as u32 + 340)
    }

    fn describe(&self) -> String {
        let drawn: Vec<String> =
            self.drawn().iter().map(|stage| format!("{} ({} of the time)", stage.stage, percent(stage.share))).collect();
        let emulated = if self.heading.emulated { ". Emulated CPU: durations are the emulator's" } else { "" };
        format!("Distribution of the stages' durations, {}: {}{emulated}", self.heading.subject, drawn.join(", "))
    }

    fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>) -> DrawResult<DB> {
        let frame = self.frame();
        let height = f64::from(self.size().1);
        frame.draw(canvas, height)?;
        let plot = Plot { left: 66.0, right: f64::from(WIDTH) - 34.0, top: frame.top() + 24.0, bottom: height - frame.bottom() - 44.0 };
        let drawn = self.drawn();
        if drawn.is_empty() {
            return plot.empty(canvas, "no stage was seen");
        }
        let values = drawn.iter().flat_map(|stage| &stage.steps).map(|step| step.0.max(1) as f64);
        let x = Axis::log(values, Quantity::Time, plot.left, plot.right);
        let y = Axis::linear(1.0, Quantity::Share, plot.bottom, plot.top);
        plot.x_axis(canvas, &x, "duration of the stage (log scale)")?;
        plot.y_axis(canvas, &y, "samples with the stage, at or below")?;
        for (at, stage) in drawn.iter().enumerate() {
            let n = stage.n.max(1) as f64;
            let style = style(at, stage.stage);
            let points =
                staircase(stage.steps.iter().map(|&(value, below)| (x.px(value.max(1) as f64), y.px(below as f64 / n))), y.px(0.0));
            canvas.curve(&points, &style)?;
            // Markers at different heights, so that curves that lie on each other can still be told apart.
            let level = 0.3 + 0.09 * at as f64;
            if let Some(step) = stage.steps.iter().find(|step| step.1 as f64 / n >= level) {
                canvas.marker((x.px(step.0.max(1) as f64), y.px(level)), style.marker, 3.8, style.color)?;
            }
        }
        Ok(())
    }
}

impl<'a> StageCdf<'a> {
    fn drawn(&self) -> Vec<&'a StageStat> {
        let mut stages: Vec<&StageStat> =
            self.stages.iter().filter(|stage| stage.n > 0 && !stage.steps.is_empty() && !stage.stage.is_unattributed()).collect();
        stages.sort_by(|a, b| b.share.total_cmp(&a.share));
        stages.truncate(CURVES);
        stages
    }

    fn frame(&self) -> Frame<'_> {
        let legend = self
            .drawn()
            .iter()
            .enumerate()
            .map(|(at, stage)| LegendItem {
                label: format!("{} (n = {})", stage.stage, count(stage.n)),
                swatch: Swatch::Line(style(at, stage.stage)),
            })
            .collect();
        Frame {
            title: format!("Stages, CDF: {}", self.heading.subject),
            heading: &self.heading,
            lines: Vec::new(),
            legend,
            notes: vec!["The stages with the largest shares of the time; the table has all of them.".to_string()],
            width: f64::from(WIDTH),
        }
    }
}

/// A curve needs more contrast against white than a box with an outline.
fn style(at: usize, stage: StageId) -> LineStyle {
    let mut color = stage.row().colour;
    while super::style::luminance(color) > 0.62 {
        color = mix(color, (0, 0, 0), 0.15);
    }
    LineStyle { color, dash: DASHES[at % DASHES.len()], marker: MARKERS[at % MARKERS.len()], width: 2.0 }
}
