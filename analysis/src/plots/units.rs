//! Durations and counts as people read them: the unit is chosen by the size of the value, the digits by what they are worth.

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

/// A duration with its unit and three significant digits, such as `4.07 µs`; `none` for what is not a number.
pub fn duration(ns: f64) -> String {
    if !ns.is_finite() {
        return "none".to_string();
    }
    // Rounding to three digits may reach the next unit: 999.7 ns is 1 µs.
    let unit = unit_for(round_significant(ns, 3));
    format!("{} {}", digits(ns / unit.ns, 3), unit.symbol)
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

/// A count with thousands separated by commas, such as `10,000`.
pub fn count(n: u64) -> String {
    grouped(n, false)
}

/// A share as a percentage, such as `12.3 %`; small shares keep their digits and only an exact zero prints as `0 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "none".to_string();
    }
    let value = share * 100.0;
    match value.abs() {
        0.0 => "0 %".to_string(),
        small if small < 0.01 => "< 0.01 %".to_string(),
        small if small < 1.0 => format!("{value:.2} %"),
        // What is not all of it must not print as all of it.
        large if (99.0..100.0).contains(&large) => format!("{:.2} %", (value * 100.0).floor() / 100.0),
        _ => format!("{value:.1} %"),
    }
}

fn round_significant(value: f64, significant: u32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let factor = 10f64.powi(significant as i32 - 1 - value.abs().log10().floor() as i32);
    (value * factor).round() / factor
}

fn grouped(n: u64, negative: bool) -> String {
    let plain = n.to_string();
    let mut out = String::with_capacity(plain.len() + plain.len() / 3 + 1);
    if negative {
        out.push('-');
    }
    for (at, digit) in plain.chars().enumerate() {
        if at > 0 && (plain.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_choose_their_unit() {
        let cases = [
            (0.0, "0 ns"),
            (7.0, "7.00 ns"),
            (999.0, "999 ns"),
            (999.7, "1.00 µs"),
            (4_067.0, "4.07 µs"),
            (23_400.0, "23.4 µs"),
            (1_234_567.0, "1.23 ms"),
            (-1_500.0, "-1.50 µs"),
            (2.5e12, "2500 s"),
            (f64::NAN, "none"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(duration(u64::MAX as f64), "1.84e10 s");
    }

    #[test]
    fn counts_and_shares() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(percent(0.1234), "12.3 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.00001), "< 0.01 %");
        assert_eq!(percent(0.99999), "99.99 %");
        assert_eq!(percent(1.0), "100.0 %");
    }
}
