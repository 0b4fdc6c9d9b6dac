//! Histogram of latency with logarithmic bins, the modes overlaid as outlines, their peaks named.
use super::axis::{Axis, Quantity};
use super::canvas::{Align, Canvas, DrawResult, Point, text_width};
use super::distribution::{Distribution, Series, WIDTH};
use super::style::{Marker, WHITE};
use super::{Chart, frame::Frame};
use capture::text::units::ns;
use plotters::backend::DrawingBackend;

/// Share of the highest bin that a second peak must reach to be named.
const PEAK_SHARE: f64 = 0.15;
/// A peak is its own when the curve falls below this share of the lower of two peaks between them.
const VALLEY_SHARE: f64 = 0.6;
/// A peak of fewer samples is chance.
const PEAK_SAMPLES: f64 = 10.0;
/// Peaks named per curve.
const PEAKS: usize = 3;

/// The chart.
#[derive(Clone, Debug)]
pub struct Histogram<'a>(pub Distribution<'a>);

impl Chart for Histogram<'_> {
    fn size(&self) -> (u32, u32) {
        (WIDTH, self.0.height(&self.frame()))
    }

    fn describe(&self) -> String {
        self.0.words("Latency histogram")
    }

    fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>) -> DrawResult<DB> {
        let frame = self.frame();
        let height = self.size().1;
        frame.draw(canvas, f64::from(height))?;
        let plot = self.0.plot(&frame, height);
        let drawn: Vec<_> = self.0.drawn().into_iter().filter(|series| !series.latency.bins.is_empty()).collect();
        if drawn.is_empty() {
            return plot.empty(canvas, "no samples");
        }
        let edges = drawn.iter().flat_map(|series| series.latency.bins.iter()).flat_map(|bin| [bin.0.max(1) as f64, bin.1.max(1) as f64]);
        let x = Axis::log(edges, Quantity::Time, plot.left, plot.right);
        let highest = drawn.iter().flat_map(|series| shares(series)).map(|(_, _, share)| share).fold(0.0, f64::max);
        // Room above the highest bin for the names of the peaks.
        let y = Axis::linear(highest * 1.18, Quantity::Share, plot.bottom, plot.top);
        plot.x_axis(canvas, &x, "latency (log scale)")?;
        plot.y_axis(canvas, &y, "share of samples per bin")?;
        for series in &drawn {
            let outline = outline(series, &x, &y);
            let style = series.style();
            if !series.probed {
                canvas.polygon(&outline, style.color, if style.dash.is_empty() { 0.22 } else { 0.10 })?;
            }
            canvas.curve(&outline, &style)?;
        }
        let mut taken: Vec<(f64, f64, f64)> = Vec::new();
        for series in drawn.iter().filter(|series| !series.probed) {
            for (at_ns, share) in peaks(series) {
                let style = series.style();
                let (px, py) = (x.px(at_ns), y.px(share));
                canvas.marker((px, py), style.marker, 3.8, style.color)?;
                let text = format!("peak {}", ns(at_ns));
                let half = text_width(&text, 12.0) / 2.0 + 2.0;
                let tx = px.clamp(plot.left + half, plot.right - half);
                let mut ty = py - 14.0;
                // A name that would lie on another one is left out: the legend and the table still have the numbers.
                while ty > plot.top && taken.iter().any(|other| (other.0 - tx).abs() < other.2 + half && (other.1 - ty).abs() < 15.0) {
                    ty -= 15.0;
                }
                if ty > plot.top - 4.0 {
                    taken.push((tx, ty, half));
                    canvas.fill((tx - half, ty - 7.5), (tx + half, ty + 7.5), WHITE, 0.6)?;
                    canvas.text(&text, (tx, ty), 12.0, style.color, Align::Center)?;
                }
            }
        }
        Ok(())
    }
}

impl Histogram<'_> {
    fn frame(&self) -> Frame<'_> {
        let mut frame = self.0.frame("Histogram", Vec::new());
        for (item, series) in frame.legend.iter_mut().zip(&self.0.series) {
            if series.probed {
                // No peaks are marked on them, so no marker either.
                item.swatch = super::frame::Swatch::Line(super::style::LineStyle { marker: Marker::None, ..series.style() });
            }
        }
        frame
    }
}

/// (lower, upper, share of all samples) of each bin.
fn shares<'a>(series: &'a Series<'_>) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
    let n = series.latency.n.max(1) as f64;
    series.latency.bins.iter().map(move |&(lower, upper, samples)| (lower as f64, upper.max(lower) as f64, samples as f64 / n))
}

/// The steps of the histogram as a line that starts and ends on the axis; empty bins between others reach down to it.
fn outline(series: &Series<'_>, x: &Axis, y: &Axis) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut end = f64::NEG_INFINITY;
    for (lower, upper, share) in shares(series) {
        let (left, right, top) = (x.px(lower.max(1.0)), x.px(upper.max(1.0)).max(x.px(lower.max(1.0)) + 1.0), y.px(share));
        if left > end + 0.5 {
            if end.is_finite() {
                points.push((end, y.px(0.0)));
            }
            points.push((left, y.px(0.0)));
        }
        points.extend([(left.max(end), top), (right, top)]);
        end = right;
    }
    if end.is_finite() {
        points.push((end, y.px(0.0)));
    }
    points
}

/// The highest bins that a valley separates, highest first: (middle of the bin on the logarithmic axis, share).
fn peaks(series: &Series<'_>) -> Vec<(f64, f64)> {
    let mut bins: Vec<(f64, f64, f64)> = Vec::new();
    for bin in shares(series) {
        // An absent bin is an empty one: a valley.
        if let Some(last) = bins.last()
            && bin.0 > last.1 * 1.001 + 1.0
        {
            bins.push((last.1, bin.0, 0.0));
        }
        bins.push(bin);
    }
    let n = series.latency.n as f64 * 1.000_001;
    let highest = bins.iter().map(|bin| bin.2).fold(0.0, f64::max);
    let mut order: Vec<usize> =
        (0..bins.len()).filter(|&at| bins[at].2 >= highest * PEAK_SHARE && bins[at].2 * n >= PEAK_SAMPLES).collect();
    order.sort_by(|&a, &b| bins[b].2.total_cmp(&bins[a].2).then(a.cmp(&b)));
    let mut found: Vec<usize> = Vec::new();
    for at in order {
        let own = found.iter().all(|&other| {
            let between = &bins[at.min(other)..=at.max(other)];
            between.iter().map(|bin| bin.2).fold(f64::INFINITY, f64::min) < VALLEY_SHARE * bins[at].2
        });
        if own && found.len() < PEAKS {
            found.push(at);
        }
    }
    found.into_iter().map(|at| ((bins[at].0.max(1.0) * bins[at].1.max(1.0)).sqrt(), bins[at].2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::Latency;
    use capture::{Metric, Mode};

    fn latency(bins: Vec<(u64, u64, u64)>) -> Latency {
        let n = bins.iter().map(|bin| bin.2).sum();
        let (min_ns, max_ns) = (bins.first().map_or(0, |bin| bin.0), bins.last().map_or(0, |bin| bin.1));
        Latency {
            metric: Metric::Rtt,
            n,
            failed: 0,
            min_ns,
            mean_ns: 0.0,
            stddev_ns: 0.0,
            quantiles: Vec::new(),
            max_ns,
            steps: Vec::new(),
            bins,
        }
    }

    fn series(latency: &Latency) -> Series<'_> {
        Series { mode: Mode::Poll, repeat: 0, detail: String::new(), probed: false, latency }
    }

    #[test]
    fn two_humps_are_two_peaks_and_ripples_are_none() {
        let latency =
            latency(vec![(100, 120, 10), (120, 144, 90), (144, 173, 80), (173, 207, 85), (207, 249, 5), (249, 299, 40), (299, 358, 12)]);
        let found: Vec<f64> = peaks(&series(&latency)).iter().map(|peak| peak.0.round()).collect();
        assert_eq!(found, [131.0, 273.0]);
    }

    #[test]
    fn a_gap_is_a_valley() {
        let latency = latency(vec![(100, 120, 50), (5000, 6000, 40)]);
        assert_eq!(peaks(&series(&latency)).len(), 2);
    }
}
