//! One slow sample as a waterfall: each stage at its place in time, with its median beside it, under the verdict.
use super::Chart;
use super::axis::{Axis, Quantity};
use super::bands::WIDE;
use super::canvas::{Align, Canvas, DrawResult, fit, text_width};
use super::frame::{Frame, Heading, MARGIN, Plot, segment};
use super::style::{GRID, INK};
use crate::report::model::SlowSample;
use capture::text::units::ns;
use plotters::backend::DrawingBackend;

const ROW: f64 = 25.0;
const BAR: f64 = 16.0;
/// Marks that are drawn at most.
const MARKS_MAX: usize = 500;
/// Room for the label after a bar.
const LABEL: f64 = 230.0;

/// The chart.
#[derive(Clone, Debug)]
pub struct Waterfall<'a> {
    /// What stands above.
    pub heading: Heading,
    /// 1 for the slowest.
    pub rank: usize,
    /// The sample.
    pub sample: &'a SlowSample,
}

impl Chart for Waterfall<'_> {
    fn size(&self) -> (u32, u32) {
        let frame = self.frame();
        let rows = (self.sample.stages.len().max(2) + usize::from(self.has_overlay())) as f64;
        (WIDE, (frame.top() + frame.bottom() + 10.0 + rows * ROW + 44.0) as u32)
    }

    fn describe(&self) -> String {
        let emulated = if self.heading.emulated { " Emulated CPU: durations are the emulator's." } else { "" };
        format!("{}. {}{emulated}", self.title(), self.sample.verdict)
    }

    fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>) -> DrawResult<DB> {
        let frame = self.frame();
        let height = f64::from(self.size().1);
        frame.draw(canvas, height)?;
        let names = self.sample.stages.iter().map(|stage| text_width(stage.stage.name(), 13.0)).fold(60.0, f64::max).min(240.0);
        let left = MARGIN + names + 12.0;
        let plot = Plot { left, right: f64::from(WIDE) - LABEL - MARGIN, top: frame.top() + 10.0, bottom: height - frame.bottom() - 44.0 };
        if self.sample.stages.is_empty() {
            return Plot { right: f64::from(WIDE) - MARGIN, ..plot }.empty(canvas, "no stage of this sample was seen");
        }
        let end =
            self.sample.stages.iter().map(|stage| stage.start_ns.saturating_add(stage.duration_ns)).fold(self.sample.total_ns, u64::max);
        let x = Axis::linear(end as f64, Quantity::Time, plot.left, plot.right);
        plot.x_axis(canvas, &x, "time since the post began")?;
        for (row, stage) in self.sample.stages.iter().enumerate() {
            let y = plot.top + ROW * (row as f64 + 0.5);
            let (x0, x1) = (x.px(stage.start_ns as f64), x.px(stage.start_ns.saturating_add(stage.duration_ns) as f64));
            let x1 = x1.max(x0 + 1.5);
            canvas.text(&fit(stage.stage.name(), 13.0, 240.0), (left - 10.0, y), 13.0, INK, Align::Right)?;
            canvas.line((left, y), (x0, y), GRID, 0.5)?;
            segment(canvas, (x0, y - BAR / 2.0), (x1, y + BAR / 2.0), stage.stage.row().colour, stage.stage.is_unattributed(), "")?;
            canvas.outline((x0, y - BAR / 2.0), (x1, y + BAR / 2.0), INK, 0.5)?;
            let median = match stage.median_ns {
                Some(median_ns) => format!("{} (median {})", ns(stage.duration_ns as f64), ns(median_ns as f64)),
                None => format!("{} (no median)", ns(stage.duration_ns as f64)),
            };
            canvas.text(&median, (x1 + 8.0, y), 12.0, INK, Align::Left)?;
        }
        if self.has_overlay() {
            self.overlay(canvas, &x, left, plot.top + ROW * (self.sample.stages.len() as f64 + 0.5))?;
        }
        Ok(())
    }
}

impl Waterfall<'_> {
    fn has_overlay(&self) -> bool {
        !self.sample.stages.is_empty() && !self.sample.overlay.is_empty()
    }

    /// One row of marks where something took the thread's CPU: it lies over the stages and is none itself.
    fn overlay<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>, x: &Axis, left: f64, y: f64) -> DrawResult<DB> {
        canvas.text("CPU taken", (left - 10.0, y), 13.0, INK, Align::Right)?;
        let mut end = left;
        for item in self.sample.overlay.iter().take(MARKS_MAX) {
            let x0 = x.px(item.start_ns as f64);
            let x1 = x.px(item.start_ns.saturating_add(item.duration_ns.unwrap_or(0)) as f64).max(x0 + 1.5);
            canvas.fill((x0, y - BAR / 2.0), (x1, y + BAR / 2.0), INK, 0.75)?;
            end = end.max(x1);
        }
        let longest = self.sample.overlay.iter().max_by_key(|item| item.duration_ns);
        let most = longest.map_or(String::new(), |item| format!("; most by {}", item.name));
        let text = format!("{}{most}", ns(self.sample.taken_ns as f64));
        canvas.text(&fit(&text, 12.0, LABEL), (end + 8.0, y), 12.0, INK, Align::Left)
    }

    fn title(&self) -> String {
        format!(
            "Slow sample {}: {} in all, {} (round {}, wr_id {:#x})",
            self.rank,
            ns(self.sample.total_ns as f64),
            self.heading.subject,
            self.sample.round,
            self.sample.wr_id
        )
    }

    fn frame(&self) -> Frame<'_> {
        let mut lines = Vec::new();
        if !self.sample.verdict.is_empty() {
            lines.push(format!("Verdict: {}", self.sample.verdict));
        }
        if !self.sample.flags.is_empty() {
            lines.push(format!("Flags: {}", self.sample.flag_names().join(", ")));
        }
        Frame { title: self.title(), heading: &self.heading, lines, legend: Vec::new(), notes: Vec::new(), width: f64::from(WIDE) }
    }
}
