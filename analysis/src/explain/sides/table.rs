//! The split over many samples.
use super::lines::Lines;
use super::pair::{Pair, Seen};
use crate::explain::model::{SideLine, SidesTable};

/// The split over many samples.
pub(super) struct Table {
    seen: Seen,
    n: u64,
    pub unmatched: u64,
    incomplete: u64,
    negative: u64,
    rtt_ns: i128,
    lines: Lines,
    split: u64,
    network_ns: i128,
    network: Lines,
}

impl Table {
    pub fn new(seen: Seen) -> Table {
        let (lines, network) = (Lines::default(), Lines::default());
        Table { seen, n: 0, unmatched: 0, incomplete: 0, negative: 0, rtt_ns: 0, lines, split: 0, network_ns: 0, network }
    }

    /// Adds a sample that has every line; false for one that has not.
    pub fn add(&mut self, pair: &Pair) -> bool {
        if !pair.is_complete(self.seen) {
            self.incomplete += 1;
            return false;
        }
        self.n += 1;
        self.rtt_ns += i128::from(pair.rtt_ns);
        self.negative += u64::from(pair.network_ns(self.seen) < 0);
        for (line, ns) in pair.lines(self.seen) {
            self.lines.add(line, ns);
        }
        if let Some(parts) = pair.network_lines(self.seen) {
            self.split += 1;
            self.network_ns += i128::from(pair.network_ns(self.seen));
            parts.into_iter().for_each(|(line, ns)| self.network.add(line, ns));
        }
        true
    }

    /// The network's own lines (means over the samples that have them), and the table; `None` when no sample came.
    pub fn finish(self) -> (Vec<SideLine>, Option<SidesTable>) {
        let network = self.network.finish(self.split, self.network_ns);
        let table = (self.n + self.unmatched + self.incomplete > 0).then(|| SidesTable {
            n: self.n,
            unmatched: self.unmatched,
            incomplete: self.incomplete,
            mean_rtt_ns: if self.n == 0 { 0.0 } else { self.rtt_ns as f64 / self.n as f64 },
            lines: self.lines.finish(self.n, self.rtt_ns),
            negative_network: self.negative,
        });
        (network, table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::model::Place;
    use crate::explain::sides::pair::tests::pair;

    #[test]
    fn a_negative_network_is_counted_and_stays_in_the_mean() {
        let mut table = Table::new(Seen { client: true, server: true });
        assert!(table.add(&pair()));
        assert!(table.add(&Pair { rtt_ns: 300, ..pair() }));
        assert!(!table.add(&Pair { client_notification_ns: None, ..pair() }) && !table.add(&Pair { lost: true, ..pair() }));
        let (_, table) = table.finish();
        let table = table.expect("samples");
        assert_eq!((table.n, table.incomplete, table.negative_network), (2, 2, 1));
        let network = table.lines.iter().find(|line| line.place == Place::Network).expect("there");
        assert_eq!((network.n, network.negative, network.mean_of_all_ns, network.max_ns), (2, 1, 290.0, 640));
        let sum: f64 = table.lines.iter().map(|line| line.mean_of_all_ns).sum();
        assert!((sum - table.mean_rtt_ns).abs() < 1e-6 && table.mean_rtt_ns == 650.0);
    }
}
