//! Durations and shares as text, for sentences and tables.

/// A duration with three to four digits and its unit: `812 ns`, `12.3 us`, `4.56 ms`, `2.31 s`.
pub fn ns(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = match size {
        s if s < 999.5 => return format!("{value:.0} ns"),
        s if s < 999.5e3 => (value / 1e3, "µs"),
        s if s < 999.5e6 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    let decimals = match scaled.abs() {
        s if s < 9.995 => 2,
        s if s < 99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.decimals$} {unit}")
}

/// A share of 1 in percent: `12.3 %`; what is not nought does not read as nought, what is not all does not read as all.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p <= 0.0 => "0 %".into(),
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

/// A whole number with thin groups of three: `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
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
    fn texts() {
        assert_eq!(
            [ns(812.0), ns(999.7), ns(12_345.0), ns(-4_560_000.0), ns(2.31e9)],
            ["812 ns", "1.00 µs", "12.3 µs", "-4.56 ms", "2.31 s"]
        );
        assert_eq!(
            [percent(0.0), percent(0.0001), percent(0.5), percent(0.99999), percent(1.0)],
            ["0 %", "<0.1 %", "50.0 %", ">99.9 %", "100.0 %"]
        );
        assert_eq!([loss(0.0), loss(0.000_01), loss(0.001), loss(0.0013), loss(0.2)], ["0 %", "<0.01 %", "0.10 %", "0.13 %", "20.0 %"]);
        assert_eq!([count(7), count(1_234), count(1_234_567)], ["7", "1,234", "1,234,567"]);
    }
}
