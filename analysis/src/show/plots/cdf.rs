//! Cumulative distribution of latency: the share of samples at or below each value, on a logarithmic time axis.
use super::axis::{Axis, Quantity};
use super::canvas::{Align, Canvas, DrawResult, Point};
use super::distribution::{Distribution, Series, WIDTH};
use super::style::{GREY, GRID};
use super::{Chart, frame::Frame};
use plotters::backend::DrawingBackend;

/// The chart.
#[derive(Clone, Debug)]
pub struct Cdf<'a>(pub Distribution<'a>);

impl Chart for Cdf<'_> {
    fn size(&self) -> (u32, u32) {
        (WIDTH, self.0.height(&self.frame()))
    }

    fn describe(&self) -> String {
        self.0.words("Cumulative distribution (CDF)")
    }

    fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>) -> DrawResult<DB> {
        let frame = self.frame();
        let height = self.size().1;
        frame.draw(canvas, f64::from(height))?;
        let plot = self.0.plot(&frame, height);
        let drawn: Vec<_> = self.0.drawn().into_iter().filter(|series| !series.latency.steps.is_empty()).collect();
        if drawn.is_empty() {
            return plot.empty(canvas, "no samples");
        }
        let x = self.0.latency_axis(&plot);
        let y = Axis::linear(1.0, Quantity::Share, plot.bottom, plot.top);
        plot.x_axis(canvas, &x, "latency (log scale)")?;
        plot.y_axis(canvas, &y, "samples at or below")?;
        for (share, name) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99")] {
            canvas.line((plot.left, y.px(share)), (plot.right, y.px(share)), GRID, 1.6)?;
            // p99 would lie on the frame's edge line; its name stands just under it.
            let below = if share > 0.95 { 9.0 } else { 0.0 };
            canvas.text(name, (plot.right + 4.0, y.px(share) + below), 12.0, GREY, Align::Left)?;
        }
        for series in drawn {
            let style = series.style();
            canvas.curve(&curve(series, &x, &y), &style)?;
            for quantile in &series.latency.quantiles {
                if let (true, Some(value)) = (quantile.q <= 0.99, quantile.value_ns) {
                    canvas.marker((x.px(value as f64), y.px(quantile.q)), style.marker, 3.6, style.color)?;
                }
            }
        }
        Ok(())
    }
}

impl Cdf<'_> {
    fn frame(&self) -> Frame<'_> {
        self.0.frame("CDF", Vec::new())
    }
}

/// The steps, thinned to what the pixels can show.
fn curve(series: &Series<'_>, x: &Axis, y: &Axis) -> Vec<Point> {
    let n = series.latency.n.max(1) as f64;
    staircase(series.latency.steps.iter().map(|&(value, below)| (x.px(value as f64), y.px(below as f64 / n))), y.px(0.0))
}

/// A staircase through `points` that starts at the level `from`; points closer than a pixel in both directions are drawn once.
pub(super) fn staircase(points: impl Iterator<Item = Point>, from: f64) -> Vec<Point> {
    let mut out: Vec<Point> = Vec::new();
    let mut level = from;
    let mut points = points.peekable();
    while let Some((px, py)) = points.next() {
        if let Some(&(last_x, _)) = out.last()
            && px - last_x < 1.0
            && (py - level).abs() < 1.0
            && points.peek().is_some()
        {
            continue;
        }
        out.extend([(px, level), (px, py)]);
        level = py;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staircase_is_thinned_and_keeps_its_end() {
        let fine = (0..100_000).map(|k| (f64::from(k) / 500.0, 300.0 - f64::from(k) / 400.0));
        let steps = staircase(fine, 300.0);
        assert!(steps.len() < 1000, "{}", steps.len());
        assert_eq!(steps[0], (0.0, 300.0));
        assert!((steps[steps.len() - 1].1 - 50.0).abs() < 0.01);
    }
}
