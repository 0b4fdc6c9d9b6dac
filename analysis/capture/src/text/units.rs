//! Durations, counts and shares as text: the one way in which terminal, page, charts and sentences print a number.

/// A unit of time with its length in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Its symbol.
    pub symbol: &'static str,
    /// Nanoseconds in one.
    pub ns: f64,
}

const UNITS: [Unit; 4] =
    [Unit { symbol: "ns", ns: 1.0 }, Unit { symbol: "µs", ns: 1e3 }, Unit { symbol: "ms", ns: 1e6 }, Unit { symbol: "s", ns: 1e9 }];

/// The largest unit that is not longer than `ns`; nanoseconds for what is shorter than one.
pub fn unit_for(ns: f64) -> Unit {
    UNITS.iter().rev().find(|unit| ns.abs() >= unit.ns).copied().unwrap_or(UNITS[0])
}

/// A duration with three significant digits and its unit: `812 ns`, `12.3 µs`, `4.56 ms`, `2.31 s`. Below a microsecond whole nanoseconds,
/// which is what the clock tells; `none` for what is not a number.
pub fn ns(value: f64) -> String {
    if !value.is_finite() {
        return "none".to_string();
    }
    // Rounding to three digits may reach the next unit: 999.7 ns is 1 µs.
    let unit = unit_for(round_significant(value, 3));
    if unit.ns == 1.0 {
        return format!("{value:.0} ns");
    }
    let scaled = value / unit.ns;
    let decimals = match scaled.abs() {
        s if s < 9.995 => 2,
        s if s < 99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.decimals$} {}", unit.symbol)
}

/// A value rounded to `significant` digits, without an exponent where it stays readable and without trailing zeros after an integer.
pub fn digits(value: f64, significant: u32) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let rounded = round_significant(value, significant);
    if rounded.abs() >= 1e7 {
        let scientific = format!("{rounded:.*e}", significant as usize - 1);
        return match scientific.split_once('e') {
            Some((mantissa, power)) if mantissa.contains('.') => {
                format!("{}e{power}", mantissa.trim_end_matches('0').trim_end_matches('.'))
            }
            _ => scientific,
        };
    }
    if rounded.abs() >= 1e4 {
        return grouped(rounded.abs() as u64, rounded < 0.0);
    }
    let decimals = (significant as i32 - 1 - rounded.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{rounded:.decimals$}")
}

/// A share of 1 in percent: `12.3 %`; what is not nought does not read as nought, what is not all does not read as all, and what is below
/// nought keeps its sign.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "none".to_string();
    }
    match share * 100.0 {
        0.0 => "0 %".into(),
        p if p < 0.0 => format!("-{}", percent(-share)),
        p if p < 0.05 => "<0.1 %".into(),
        p if p < 100.0 && p > 99.95 => ">99.9 %".into(),
        p => format!("{p:.1} %"),
    }
}

/// A share of lost records in percent. One decimal would print just above the limit of 0.1 % as the limit itself.
pub fn loss(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.005 => "<0.01 %".into(),
        p if p > 0.0 && p < 10.0 => format!("{p:.2} %"),
        _ => percent(share),
    }
}

/// How many times as much, with two decimals: `2.42`; what is not nought does not read as nought.
pub fn ratio(value: f64) -> String {
    match value {
        r if !r.is_finite() => "none".into(),
        r if r > 0.0 && r < 0.005 => "<0.01".into(),
        r => format!("{r:.2}"),
    }
}

/// A whole number in groups of three: `1,234,567`.
pub fn count(value: u64) -> String {
    grouped(value, false)
}

/// So many of a thing whose plural has an s: `1 CPU`, `2 CPUs`.
pub fn counted(value: u64, what: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {what}{plural}", count(value))
}

fn round_significant(value: f64, significant: u32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let factor = 10f64.powi(significant as i32 - 1 - value.abs().log10().floor() as i32);
    (value * factor).round() / factor
}

fn grouped(value: u64, negative: bool) -> String {
    let digits = value.to_string();
    let mut text = String::from(if negative { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2000].map(|value| counted(value, "CPU")), ["0 CPUs", "1 CPU", "2,000 CPUs"]);
    }

    #[test]
    fn texts() {
        assert_eq!(
            [ns(812.0), ns(999.7), ns(12_345.0), ns(-4_560_000.0), ns(2.31e9)],
            ["812 ns", "1.00 µs", "12.3 µs", "-4.56 ms", "2.31 s"]
        );
        assert_eq!(
            [percent(0.0), percent(0.0001), percent(0.5), percent(0.99999), percent(1.0)],
            ["0 %", "<0.1 %", "50.0 %", ">99.9 %", "100.0 %"]
        );
        assert_eq!([percent(-0.0001), percent(-0.5), percent(-0.0)], ["-<0.1 %", "-50.0 %", "0 %"]);
        assert_eq!([loss(0.0), loss(0.000_01), loss(0.001), loss(0.0013), loss(0.2)], ["0 %", "<0.01 %", "0.10 %", "0.13 %", "20.0 %"]);
        assert_eq!([ratio(0.0), ratio(0.001), ratio(0.371), ratio(12.345)], ["0.00", "<0.01", "0.37", "12.35"]);
        assert_eq!([count(7), count(1_234), count(1_234_567)], ["7", "1,234", "1,234,567"]);
    }

    #[test]
    fn durations_choose_their_unit() {
        let cases = [
            (0.0, "0 ns"),
            (7.0, "7 ns"),
            (999.0, "999 ns"),
            (999.7, "1.00 µs"),
            (4_067.0, "4.07 µs"),
            (23_400.0, "23.4 µs"),
            (999_700.0, "1.00 ms"),
            (1_234_567.0, "1.23 ms"),
            (-1_500.0, "-1.50 µs"),
            (2.5e12, "2500 s"),
            (f64::NAN, "none"),
        ];
        for (value, text) in cases {
            assert_eq!(ns(value), text);
        }
        assert_eq!(ns(u64::MAX as f64), "18446744074 s");
    }

    #[test]
    fn counts_and_shares() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(percent(0.1234), "12.3 %");
        assert_eq!(percent(0.00001), "<0.1 %");
        assert_eq!(percent(0.9999), ">99.9 %");
        assert_eq!(percent(f64::NAN), "none");
        assert_eq!([digits(2.417, 3), digits(0.0, 3), digits(12_345.0, 3)], ["2.42", "0", "12,300"]);
    }
}
