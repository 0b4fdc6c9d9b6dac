//! Axes: where a value lies, and ticks that people read. Logarithmic axes carry 1, 2, 5 × 10^k where there is room.
use super::canvas::text_width;
use capture::text::units::{digits, unit_for};

/// Font size of tick labels, in pixels.
pub(super) const TICK_SIZE: f64 = 13.0;
/// Room between two tick labels, in pixels.
const TICK_GAP: f64 = 14.0;

/// What the values are, so how a tick is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Nanoseconds; each tick with its own unit.
    Time,
    /// A share from 0 to 1, written in percent.
    Share,
}

/// A tick.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Its value.
    pub value: f64,
    /// Its label.
    pub label: String,
}

/// A mapping from values to pixels.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    lo: f64,
    hi: f64,
    log: bool,
    from_px: f64,
    to_px: f64,
    quantity: Quantity,
}

impl Axis {
    /// A linear axis from 0 to a little above `max`.
    pub(super) fn linear(max: f64, quantity: Quantity, from_px: f64, to_px: f64) -> Self {
        let hi = if max.is_finite() && max > 0.0 { max } else { 1.0 };
        Self { lo: 0.0, hi, log: false, from_px, to_px, quantity }
    }

    /// A logarithmic axis around the positive, finite ones of `values`, with a little room on both sides.
    pub(super) fn log(values: impl IntoIterator<Item = f64>, quantity: Quantity, from_px: f64, to_px: f64) -> Self {
        let (mut lo, mut hi) = (f64::INFINITY, 0.0f64);
        for value in values.into_iter().filter(|value| value.is_finite() && *value > 0.0) {
            lo = lo.min(value);
            hi = hi.max(value);
        }
        if lo > hi {
            (lo, hi) = (1.0, 1000.0);
        }
        let room = (hi / lo).ln().max(0.7) * 0.04;
        // Less than a factor of two is widened: one value must not look like a distribution.
        let widen = ((2.0f64.ln() - (hi / lo).ln()) / 2.0).max(0.0) + room;
        Self { lo: lo / widen.exp(), hi: hi * widen.exp(), log: true, from_px, to_px, quantity }
    }

    /// A logarithmic axis with exactly these ends.
    pub(super) fn log_exact(lo: f64, hi: f64, quantity: Quantity, from_px: f64, to_px: f64) -> Self {
        Self { lo, hi, log: true, from_px, to_px, quantity }
    }

    /// The pixel of a value; values beyond the ends lie on the ends.
    pub(super) fn px(&self, value: f64) -> f64 {
        let part =
            if self.log { (value.max(self.lo) / self.lo).ln() / (self.hi / self.lo).ln() } else { (value - self.lo) / (self.hi - self.lo) };
        let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
        self.from_px + part * (self.to_px - self.from_px)
    }

    /// Labelled ticks along a horizontal axis: as many as keep apart.
    pub(super) fn ticks_across(&self) -> Vec<Tick> {
        self.ticks(|ticks, axis| {
            ticks.windows(2).all(|pair| {
                let room = (text_width(&pair[0].label, TICK_SIZE) + text_width(&pair[1].label, TICK_SIZE)) / 2.0 + TICK_GAP;
                (axis.px(pair[1].value) - axis.px(pair[0].value)).abs() >= room
            })
        })
    }

    /// Labelled ticks along a vertical axis.
    pub(super) fn ticks_up(&self) -> Vec<Tick> {
        self.ticks(|ticks, axis| {
            ticks.windows(2).all(|pair| (axis.px(pair[1].value) - axis.px(pair[0].value)).abs() >= TICK_SIZE + TICK_GAP)
        })
    }

    /// Unlabelled grid positions of a logarithmic axis: the whole multiples of each decade, as long as they are not too dense.
    pub(super) fn minor(&self) -> Vec<f64> {
        let per_decade = (self.px(self.lo * 10.0) - self.px(self.lo)).abs();
        let decades = (self.hi / self.lo).log10();
        if !self.log || decades > 9.0 || (decades > 1.0 && per_decade < 60.0) {
            return Vec::new();
        }
        self.log_values(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 1)
    }

    fn ticks(&self, fits: impl Fn(&[Tick], &Axis) -> bool) -> Vec<Tick> {
        let mut last = Vec::new();
        for values in self.candidates() {
            let ticks: Vec<Tick> = values.into_iter().map(|value| Tick { value, label: self.label(value) }).collect();
            if fits(&ticks, self) {
                return ticks;
            }
            last = ticks;
        }
        last.truncate(1);
        last
    }

    /// Sets of tick positions, densest first.
    fn candidates(&self) -> Vec<Vec<f64>> {
        if !self.log {
            let steps = [0.05, 0.1, 0.2, 0.25, 0.5, 1.0].map(|part| nice_step(self.hi, part));
            return steps.iter().map(|step| (0..=(self.hi / step * 1.000_001) as u32).map(|k| f64::from(k) * step).collect()).collect();
        }
        let decades = (self.hi / self.lo).log10();
        let mut sets = Vec::new();
        // Half steps only where a decade is not even covered: otherwise 1, 2, 5 read best.
        if decades < 0.8 {
            sets.push(self.log_values(&[1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0], 1));
            sets.push(self.log_values(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 1));
        }
        sets.push(self.log_values(&[1.0, 2.0, 5.0], 1));
        sets.push(self.log_values(&[1.0, 3.0], 1));
        sets.extend([1, 2, 3, 4, 6].map(|every| self.log_values(&[1.0], every)));
        sets
    }

    /// Values of the form mantissa × 10^k within the axis, k a multiple of `every`.
    fn log_values(&self, mantissas: &[f64], every: i32) -> Vec<f64> {
        let (from, to) = (self.lo.log10().floor() as i32, self.hi.log10().ceil() as i32);
        (from..=to)
            .filter(|k| k.rem_euclid(every) == 0)
            .flat_map(|k| mantissas.iter().map(move |mantissa| mantissa * 10f64.powi(k)))
            .filter(|value| *value >= self.lo * 0.999_999 && *value <= self.hi * 1.000_001)
            .collect()
    }

    fn label(&self, value: f64) -> String {
        match self.quantity {
            Quantity::Share => {
                let percent = value * 100.0;
                let decimals = if percent == 0.0 { 0 } else { (-(percent * 1.000_001).abs().log10().floor()).clamp(0.0, 9.0) as usize };
                let fine = if (percent * 10f64.powi(decimals as i32) - (percent * 10f64.powi(decimals as i32)).round()).abs() > 1e-6 {
                    1
                } else {
                    0
                };
                format!("{percent:.*} %", decimals + fine)
            }
            Quantity::Time if value == 0.0 => "0".to_string(),
            Quantity::Time => {
                // One unit for a whole linear axis, each tick its own on a logarithmic one.
                let unit = unit_for(if self.log { value * 1.000_001 } else { self.hi });
                let text = digits(value / unit.ns, 4);
                let short =
                    if text.contains('.') && !text.contains('e') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
                format!("{short} {}", unit.symbol)
            }
        }
    }
}

/// The 1, 2, 2.5, 5 × 10^k next to `part` of `max`.
fn nice_step(max: f64, part: f64) -> f64 {
    let rough = max * part;
    let power = 10f64.powf(rough.log10().floor());
    let mantissa = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|mantissa| mantissa * power >= rough * 0.999).unwrap_or(10.0);
    mantissa * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks_up().into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn log_ticks_are_one_two_five() {
        let axis = Axis::log_exact(900.0, 60_000.0, Quantity::Time, 0.0, 600.0);
        assert_eq!(labels(&axis), ["1 µs", "2 µs", "5 µs", "10 µs", "20 µs", "50 µs"]);
    }

    #[test]
    fn many_decades_keep_few_ticks() {
        let axis = Axis::log([1.0, 1.8e19], Quantity::Time, 0.0, 600.0);
        let ticks = labels(&axis);
        assert!((4..=22).contains(&ticks.len()), "{ticks:?}");
        assert!(ticks.iter().all(|label| label.chars().count() <= 11), "{ticks:?}");
    }

    #[test]
    fn one_value_and_none_still_make_an_axis() {
        let one = Axis::log([23_000.0], Quantity::Time, 0.0, 600.0);
        assert!(!labels(&one).is_empty());
        assert!((one.px(23_000.0) - 300.0).abs() < 1.0);
        assert!(!labels(&Axis::log([], Quantity::Time, 0.0, 600.0)).is_empty());
        assert!(!labels(&Axis::linear(0.0, Quantity::Share, 0.0, 600.0)).is_empty());
    }

    #[test]
    fn linear_ticks_share_a_unit() {
        let axis = Axis::linear(43_000.0, Quantity::Time, 0.0, 300.0);
        assert_eq!(labels(&axis), ["0", "5 µs", "10 µs", "15 µs", "20 µs", "25 µs", "30 µs", "35 µs", "40 µs"]);
        let shares = Axis::linear(0.25, Quantity::Share, 0.0, 150.0);
        assert_eq!(labels(&shares), ["0 %", "5 %", "10 %", "15 %", "20 %", "25 %"]);
        let tail = Axis::log_exact(0.0001, 1.0, Quantity::Share, 0.0, 200.0);
        assert_eq!(labels(&tail), ["0.01 %", "0.1 %", "1 %", "10 %", "100 %"]);
    }
}
