//! Complementary distribution on two logarithmic axes: the share of samples slower than each value. It shows the tail.
use super::axis::{Axis, Quantity};
use super::canvas::{Align, Canvas, DrawResult, Point};
use super::cdf::staircase;
use super::distribution::{Distribution, Series, WIDTH};
use super::style::{GREY, LineStyle, Marker};
use super::{Chart, frame::Frame};
use capture::text::units::ns;
use plotters::backend::DrawingBackend;

/// Fewer samples than this lie below the grey dashed line: single events, not a distribution.
const FEW: f64 = 10.0;

/// The chart.
#[derive(Clone, Debug)]
pub struct Ccdf<'a>(pub Distribution<'a>);

impl Chart for Ccdf<'_> {
    fn size(&self) -> (u32, u32) {
        (WIDTH, self.0.height(&self.frame()))
    }

    fn describe(&self) -> String {
        self.0.words("Tail of the distribution (CCDF)")
    }

    fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>) -> DrawResult<DB> {
        let frame = self.frame();
        let height = self.size().1;
        frame.draw(canvas, f64::from(height))?;
        let plot = self.0.plot(&frame, height);
        let drawn: Vec<_> = self.0.drawn().into_iter().filter(|series| !series.latency.steps.is_empty()).collect();
        let Some(most) = drawn.iter().map(|series| series.latency.n).max() else {
            return plot.empty(canvas, "no samples");
        };
        let fewest = drawn.iter().map(|series| series.latency.n).min().unwrap_or(most);
        let x = self.0.latency_axis(&plot);
        let y = Axis::log_exact(0.7 / most.max(2) as f64, 1.0, Quantity::Share, plot.bottom, plot.top);
        plot.x_axis(canvas, &x, "latency (log scale)")?;
        plot.y_axis(canvas, &y, "samples slower than this (log scale)")?;
        for (share, name) in [(0.5, "p50"), (0.1, "p90"), (0.01, "p99"), (0.001, "p99.9"), (0.0001, "p99.99")] {
            if share * most as f64 >= 1.0 {
                canvas.text(name, (plot.right + 3.0, y.px(share)), 10.5, GREY, Align::Left)?;
            }
        }
        if fewest as f64 > FEW {
            let level = y.px(FEW / fewest as f64);
            let dashed = LineStyle { color: GREY, dash: &[3.0, 4.0], marker: Marker::None, width: 1.0 };
            canvas.curve(&[(plot.left, level), (plot.right, level)], &dashed)?;
            canvas.text("fewer than 10 samples below this line", (plot.left + 6.0, level + 9.0), 11.0, GREY, Align::Left)?;
        }
        for series in drawn {
            let style = series.style();
            let tail = tail(series, &x, &y);
            canvas.curve(&tail, &style)?;
            if !series.probed
                && let Some(&(end_x, end_y)) = tail.last()
            {
                canvas.marker((end_x, end_y), style.marker, 3.8, style.color)?;
            }
        }
        Ok(())
    }
}

impl Ccdf<'_> {
    fn frame(&self) -> Frame<'_> {
        let slowest: Vec<String> = self
            .0
            .series
            .iter()
            .filter(|series| series.latency.n > 0 && !series.probed)
            .map(|series| {
                let detail = if series.detail.is_empty() { String::new() } else { format!(" ({})", series.detail) };
                format!("{}{detail} {}", series.mode, ns(series.latency.max_ns as f64))
            })
            .collect();
        let note =
            if slowest.is_empty() { Vec::new() } else { vec![format!("The last marker is the slowest sample: {}.", slowest.join(", "))] };
        self.0.frame("CCDF", note)
    }
}

/// The share above each step; the last step, with none above it, ends at the share of one sample.
fn tail(series: &Series<'_>, x: &Axis, y: &Axis) -> Vec<Point> {
    let n = series.latency.n.max(1) as f64;
    let one = 1.0 / n;
    staircase(series.latency.steps.iter().map(|&(value, below)| (x.px(value as f64), y.px((1.0 - below as f64 / n).max(one)))), y.px(1.0))
}
