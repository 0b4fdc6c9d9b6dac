//! What every part of the text is made of: emphasis, aligned tables, a quantile as a cell.
use crate::report::model::Latency;
use capture::text::units::ns;

/// Emphasis where the terminal can, nothing where not.
#[derive(Clone, Copy)]
pub(super) struct Style(pub bool);

impl Style {
    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(super) fn warn(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(super) fn bar(self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// A table with aligned columns: the first `left` to the left, the others to the right.
pub(super) fn table(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(
                |(column, cell)| {
                    if column < left { format!("{cell:<w$}", w = widths[column]) } else { format!("{cell:>w$}", w = widths[column]) }
                },
            )
            .collect();
        text.push_str("  ");
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// The metric, as the captures call it.
pub(super) fn metric(latency: &Latency) -> &'static str {
    match latency.metric {
        capture::manifest::Metric::PostToCqe => "post_to_cqe",
        capture::manifest::Metric::Rtt => "rtt",
    }
}

/// A quantile, or a dash where it is withheld.
pub(super) fn quantile(latency: &Latency, q: f64) -> String {
    let found = latency.quantiles.iter().find(|it| it.q == q).and_then(|it| it.value_ns);
    found.map_or("-".into(), |value| ns(value as f64))
}
