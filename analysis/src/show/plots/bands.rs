//! Stacked stages by latency band: how the fast samples and the slow ones spend their time. Left in time, right as shares.
use super::Chart;
use super::axis::{Axis, Quantity};
use super::canvas::{Align, Canvas, DrawResult, text_width};
use super::frame::{Frame, Heading, LegendItem, MARGIN, Plot, Swatch, segment};
use super::style::{GREY, INK};
use crate::report::model::Breakdown;
use crate::stages::StageId;
use capture::text::units::{count, ns};
use plotters::backend::DrawingBackend;

/// Width of the charts that take the whole line.
pub(super) const WIDE: u32 = 1240;
const ROW: f64 = 46.0;
const BAR: f64 = 28.0;
/// Narrower segments are drawn without their number.
const GAP: f64 = 0.7;

/// The chart.
#[derive(Clone, Debug)]
pub struct Bands<'a> {
    /// What stands above.
    pub heading: Heading,
    /// Its stages and bands are drawn.
    pub breakdown: &'a Breakdown,
}

impl Chart for Bands<'_> {
    fn size(&self) -> (u32, u32) {
        let frame = self.frame();
        let rows = self.breakdown.bands.len().max(2) as f64;
        (WIDE, (frame.top() + frame.bottom() + 6.0 + rows * ROW + 44.0) as u32)
    }

    fn describe(&self) -> String {
        let bands: Vec<String> = self
            .breakdown
            .bands
            .iter()
            .map(|band| format!("{} mean {} of {} samples", band.name, ns(band.mean_ns), count(band.n)))
            .collect();
        let emulated = if self.heading.emulated { ". Emulated CPU: durations are the emulator's" } else { "" };
        format!("Mean time per stage by latency band, {}: {}{emulated}", self.heading.subject, bands.join("; "))
    }

    fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>) -> DrawResult<DB> {
        let frame = self.frame();
        let height = f64::from(self.size().1);
        frame.draw(canvas, height)?;
        let (top, bottom) = (frame.top() + 6.0, height - frame.bottom() - 44.0);
        let names = self.breakdown.bands.iter().map(|band| text_width(&band.name, 13.0)).fold(60.0, f64::max);
        let left = MARGIN + names.min(150.0) + 12.0;
        let middle = left + (f64::from(WIDE) - left) * 0.56;
        let time_plot = Plot { left, right: middle - 150.0, top, bottom };
        let share_plot = Plot { left: middle + 10.0, right: f64::from(WIDE) - 40.0, top, bottom };
        if self.breakdown.bands.iter().all(|band| band.n == 0) {
            return Plot { right: f64::from(WIDE) - MARGIN, ..time_plot }.empty(canvas, "no joined samples");
        }
        let longest = self.breakdown.bands.iter().map(|band| finite(band.mean_ns)).fold(0.0, f64::max);
        let time = Axis::linear(longest, Quantity::Time, time_plot.left, time_plot.right);
        let share = Axis::linear(1.0, Quantity::Share, share_plot.left, share_plot.right);
        time_plot.x_axis(canvas, &time, "mean time per sample")?;
        share_plot.x_axis(canvas, &share, "share of the band's time")?;
        for (row, band) in self.breakdown.bands.iter().enumerate() {
            let y = top + ROW * (row as f64 + 0.5);
            canvas.text(&band.name, (left - 10.0, y), 13.0, INK, Align::Right)?;
            if band.n == 0 {
                canvas.text("no samples in this band", (left + 6.0, y), 12.0, GREY, Align::Left)?;
                continue;
            }
            let total: f64 = band.stages.iter().map(|stage| finite(stage.1)).sum();
            let (mut at, mut part) = (0.0, 0.0);
            for (stage, mean_ns) in &band.stages {
                let mean_ns = finite(*mean_ns);
                self.stage_segment(canvas, &time, (at, at + mean_ns), y, *stage)?;
                at += mean_ns;
                if total > 0.0 {
                    self.stage_segment(canvas, &share, (part, part + mean_ns / total), y, *stage)?;
                    part += mean_ns / total;
                }
            }
            let end = time.px(at.max(finite(band.mean_ns))) + 8.0;
            canvas.text(&ns(band.mean_ns), (end, y - 8.0), 13.0, INK, Align::Left)?;
            canvas.text(&format!("n = {}", count(band.n)), (end, y + 8.0), 12.0, GREY, Align::Left)?;
        }
        Ok(())
    }
}

impl Bands<'_> {
    fn frame(&self) -> Frame<'_> {
        let legend = drawn_stages(self.breakdown)
            .into_iter()
            .enumerate()
            .map(|(at, stage)| LegendItem {
                label: stage.to_string(),
                swatch: Swatch::Box { color: stage.row().colour, hatched: stage.is_unattributed(), number: at + 1 },
            })
            .collect();
        Frame {
            title: format!("Stages by latency band: {}", self.heading.subject),
            heading: &self.heading,
            lines: Vec::new(),
            legend,
            notes: vec![
                "Each bar is the mean of the samples whose total lies in that band; its stages add up to it. Percentiles of stages would not."
                    .to_string(),
            ],
            width: f64::from(WIDE),
        }
    }

    fn stage_segment<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        axis: &Axis,
        (from, to): (f64, f64),
        y: f64,
        stage: StageId,
    ) -> DrawResult<DB> {
        let (x0, x1) = (axis.px(from), axis.px(to));
        if x1 - x0 < 0.4 {
            return Ok(());
        }
        let number = drawn_stages(self.breakdown).iter().position(|known| *known == stage).map_or(String::new(), |at| (at + 1).to_string());
        let gap = if x1 - x0 > 3.0 { GAP } else { 0.0 };
        segment(canvas, (x0, y - BAR / 2.0), (x1 - gap, y + BAR / 2.0), stage.row().colour, stage.is_unattributed(), &number)
    }
}

/// The stages that any band shows, in path order: the numbers in the segments count along this list, from 1.
pub fn drawn_stages(breakdown: &Breakdown) -> Vec<StageId> {
    let banded = || breakdown.bands.iter().flat_map(|band| &band.stages);
    let mut stages: Vec<StageId> = breakdown.stages.iter().map(|stat| stat.stage).collect();
    for (stage, _) in banded() {
        if !stages.contains(stage) {
            stages.push(*stage);
        }
    }
    stages.retain(|stage| banded().any(|(other, mean_ns)| other == stage && finite(*mean_ns) > 0.0));
    stages
}

/// A duration that can be drawn: negative and not-a-number count as none.
fn finite(ns: f64) -> f64 {
    if ns.is_finite() { ns.max(0.0) } else { 0.0 }
}
