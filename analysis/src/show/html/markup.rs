//! Escaping and tables.
use crate::show::plots::canvas::escape;
use capture::text::units::ns;
use std::fmt::Write as _;

/// Printed for a value that is not there because too few samples lie beyond it.
pub(super) const WITHHELD: &str = "withheld (n too small)";

/// Text made safe for HTML.
pub(super) fn esc(text: &str) -> String {
    escape(text).replace('\'', "&#39;")
}

/// A cell.
pub(super) enum Cell {
    /// Words.
    Text(String),
    /// A number, set to the right.
    Num(String),
    /// A number that is missing, with the words for it.
    Missing(&'static str),
    /// The name of the row.
    Head(String),
    /// Markup made by us.
    Html(String),
}

/// A duration, or the words for a missing one.
pub(super) fn time_or(value: Option<f64>, missing: &'static str) -> Cell {
    value.map_or(Cell::Missing(missing), |value| Cell::Num(ns(value)))
}

/// A table that scrolls by itself when the page is narrow.
pub(super) fn table(out: &mut String, caption: &str, head: &[&str], rows: &[Vec<Cell>]) {
    let _ = write!(out, "<div class=\"scroll\"><table>\n<caption>{}</caption>\n<thead><tr>", esc(caption));
    for (at, name) in head.iter().enumerate() {
        let number = rows.first().and_then(|row| row.get(at)).is_some_and(|cell| matches!(cell, Cell::Num(_) | Cell::Missing(_)));
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", if number { " class=\"num\"" } else { "" }, esc(name));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = match cell {
                Cell::Text(text) => write!(out, "<td>{}</td>", esc(text)),
                Cell::Num(text) => write!(out, "<td class=\"num\">{}</td>", esc(text)),
                Cell::Missing(text) => write!(out, "<td class=\"num missing\">{}</td>", esc(text)),
                Cell::Head(text) => write!(out, "<th scope=\"row\">{}</th>", esc(text)),
                Cell::Html(markup) => write!(out, "<td>{markup}</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

/// A paragraph.
pub(super) fn paragraph(out: &mut String, text: &str) {
    let _ = writeln!(out, "<p>{}</p>", esc(text));
}

/// The date and time (UTC) of seconds since 1970.
pub(super) fn utc(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    // Civil date from days, in years that begin in March: the leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_735_689_600), "2025-01-01 00:00:00 UTC");
    }

    #[test]
    fn markup_is_escaped_in_every_kind_of_text() {
        let mut out = String::new();
        table(&mut out, "<c>", &["<h>"], &[vec![Cell::Text("<t>".into())], vec![Cell::Num("<n>".into())], vec![Cell::Head("<r>'".into())]]);
        for raw in ["<c>", "<h>", "<t>", "<n>", "<r>", "'"] {
            assert!(!out.contains(raw), "{raw} in {out}");
        }
    }
}
