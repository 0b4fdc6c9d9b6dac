//! The lines of the split, and their sums.
use super::read::{Server, arrival};
use crate::correlate::chain::Chain;
use crate::model::{SideLine, SidesTable};
use crate::stages::{STAGES, UNATTRIBUTED};
use crate::stats::{is_shown, rank};

/// One joined sample. All in ns; what is absent is `None`. Only `rtt_ns` and differences within one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Round.
    pub round: u32,
    /// wr_id of the client's begin WR.
    pub wr_id: u64,
    /// Round trip.
    pub rtt_ns: i64,
    /// Client: around the call that posts.
    pub client_post_ns: i64,
    /// Server: from the CQE of its receive to the poll that found it.
    pub server_notification_ns: Option<i64>,
    /// Server: from that poll to before the post of the answer.
    pub server_residency_ns: i64,
    /// Server: around the call that posts the answer.
    pub server_post_ns: i64,
    /// Client: from the CQE of the answer (or the end of its post, if later) to the poll that found it.
    pub client_notification_ns: Option<i64>,
    /// Client: from the end of the post to the request's last packet; negative where it left before.
    pub client_send_ns: Option<i64>,
    /// Server: from the arrival of the packet to the CQE.
    pub server_receive_ns: Option<i64>,
    /// Server: from the end of the post to the answer's last packet; negative where it left before.
    pub server_send_ns: Option<i64>,
    /// Client: from the arrival of the answer's packet to its CQE.
    pub client_receive_ns: Option<i64>,
    /// Records of it are missing on some side.
    pub lost: bool,
}

/// Which sides' CQEs are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub client: bool,
    pub server: bool,
}

/// Name and meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub side: &'static str,
    pub name: &'static str,
    pub meaning: &'static str,
}

const fn line(side: &'static str, name: &'static str, meaning: &'static str) -> Line {
    Line { side, name, meaning }
}

const CLIENT_POST: Line = line("client", "post", "before → after ibv_post_send");
const SERVER_NOTIFICATION: Line = line("server", "notification", "CQE of the receive → the poll that found it (H1 or R6 → U4)");
const SERVER_RESIDENCY: Line = line("server", "residency", "the poll that found the message → before the post of the answer");
const SERVER_POST: Line = line("server", "post of the answer", "before → after ibv_post_send");
const CLIENT_NOTIFICATION: Line = line("client", "notification", "CQE of the answer → the poll that found it (H1 or R6 → U4)");
const CLIENT_SEND: Line = line("client", "send path", "end of the post → the last packet left; negative where it left within the post");
const SERVER_RECEIVE: Line = line("server", "receive path", "first sign of the packet → its CQE");
const SERVER_SEND: Line =
    line("server", "send path of the answer", "end of the post → the last packet left; negative where it left within the post");
const CLIENT_RECEIVE: Line = line("client", "receive path", "first sign of the answer's packet → its CQE");
const WIRE: Line =
    line("network", "wire and devices, both ways", "what is left of the network: from packet sent to packet seen, there and back");

impl Seen {
    fn network(self) -> Line {
        const MEANING: &str = "what is left of the round trip: both ways, both devices (or both kernels' soft-RoCE)";
        match (self.client, self.server) {
            (true, true) => line("network", "network", MEANING),
            (true, false) => line("network", "network and the server's notification", MEANING),
            (false, true) => line("network", "network and the client's notification", MEANING),
            (false, false) => line("network", "network and both notifications", MEANING),
        }
    }
}

impl Pair {
    /// What is left of the round trip: the network, and the notifications that are not told apart.
    pub(super) fn network_ns(&self, seen: Seen) -> i64 {
        let told = |is_seen: bool, ns: Option<i64>| if is_seen { ns.unwrap_or(0) } else { 0 };
        self.rtt_ns
            - self.client_post_ns
            - told(seen.server, self.server_notification_ns)
            - self.server_residency_ns
            - self.server_post_ns
            - told(seen.client, self.client_notification_ns)
    }

    /// The lines in path order; they add up to the round trip.
    pub(super) fn lines(&self, seen: Seen) -> Vec<(Line, i64)> {
        let mut lines = vec![(CLIENT_POST, self.client_post_ns), (seen.network(), self.network_ns(seen))];
        lines.extend(self.server_notification_ns.filter(|_| seen.server).map(|ns| (SERVER_NOTIFICATION, ns)));
        lines.extend([(SERVER_RESIDENCY, self.server_residency_ns), (SERVER_POST, self.server_post_ns)]);
        lines.extend(self.client_notification_ns.filter(|_| seen.client).map(|ns| (CLIENT_NOTIFICATION, ns)));
        lines
    }

    /// The network split further, where both kernels show their parts; adds up to it.
    fn network_lines(&self, seen: Seen) -> Option<Vec<(Line, i64)>> {
        if !(seen.client && seen.server) {
            return None;
        }
        let parts = [
            (CLIENT_SEND, self.client_send_ns?),
            (SERVER_RECEIVE, self.server_receive_ns?),
            (SERVER_SEND, self.server_send_ns?),
            (CLIENT_RECEIVE, self.client_receive_ns?),
        ];
        let wire = self.network_ns(seen) - parts.iter().map(|(_, ns)| ns).sum::<i64>();
        Some(std::iter::once((WIRE, wire)).chain(parts).collect())
    }

    fn is_complete(&self, seen: Seen) -> bool {
        let forward = self.rtt_ns >= 0 && self.client_post_ns >= 0 && self.server_residency_ns >= 0 && self.server_post_ns >= 0;
        let told = (!seen.client || self.client_notification_ns.is_some()) && (!seen.server || self.server_notification_ns.is_some());
        forward && told && !self.lost
    }
}

/// The values of a line; negative ones are values like any other.
#[derive(Default)]
struct Stat(Vec<i64>);

impl Stat {
    fn sum(&self) -> i128 {
        self.0.iter().map(|ns| i128::from(*ns)).sum()
    }

    fn quantile(sorted: &[i64], q: f64) -> Option<i64> {
        let n = sorted.len() as u64;
        sorted.get(rank(n, q).checked_sub(1)? as usize).copied().filter(|_| is_shown(n, q))
    }
}

/// Lines with their durations, in the order in which they were first met.
#[derive(Default)]
struct Lines(Vec<(Line, Stat)>);

impl Lines {
    fn add(&mut self, line: Line, ns: i64) {
        let at = self.0.iter().position(|(known, _)| known.name == line.name && known.side == line.side).unwrap_or_else(|| {
            self.0.push((line, Stat::default()));
            self.0.len() - 1
        });
        self.0[at].1.0.push(ns);
    }

    fn finish(self, n: u64, total_ns: i128) -> Vec<SideLine> {
        let ratio = |sum: i128, all: f64| if all == 0.0 { 0.0 } else { sum as f64 / all };
        let one = |(line, mut stat): (Line, Stat)| {
            stat.0.sort_unstable();
            SideLine {
                side: line.side.to_owned(),
                name: line.name.to_owned(),
                meaning: line.meaning.to_owned(),
                n: stat.0.len() as u64,
                mean_of_all_ns: ratio(stat.sum(), n as f64),
                p50_ns: Stat::quantile(&stat.0, 0.5),
                p99_ns: Stat::quantile(&stat.0, 0.99),
                max_ns: stat.0.last().copied().unwrap_or(0),
                share: ratio(stat.sum(), total_ns as f64),
                negative: stat.0.partition_point(|ns| *ns < 0) as u64,
            }
        };
        self.0.into_iter().map(one).collect()
    }
}

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

/// The server's own stages, from the arrival of a message to the return of the post of its answer.
#[derive(Default)]
pub(super) struct Stages {
    lines: Vec<(Line, usize, Stat)>,
    n: u64,
    pub lost: u64,
    total_ns: i128,
    named_ns: i128,
}

impl Stages {
    pub fn add(&mut self, server: &Server, chain: &Chain) {
        if server.lost {
            self.lost += 1;
            return;
        }
        let sample = &server.sample;
        let Some((first, arrived_ns)) = arrival(chain) else { return };
        let difference = |to: u64, from: u64| i64::try_from(i128::from(to) - i128::from(from)).unwrap_or(i64::MAX);
        self.n += 1;
        self.total_ns += i128::from(difference(sample.post_end_ns, arrived_ns));
        for gap in chain.gaps().filter(|gap| gap.from >= first) {
            match gap.stage {
                Some(stage) => self.line(line("server", STAGES[stage].name, STAGES[stage].meaning), stage, gap.duration_ns),
                None => self.line(line("server", UNATTRIBUTED, "what no stage covers"), usize::MAX, gap.duration_ns),
            }
        }
        let own = STAGES.len();
        self.line(SERVER_RESIDENCY, own, difference(sample.post_begin_ns, sample.done_ns));
        self.line(SERVER_POST, own + 1, difference(sample.post_end_ns, sample.post_begin_ns));
    }

    /// `order`: its place in the path.
    fn line(&mut self, line: Line, order: usize, ns: i64) {
        let at = self.lines.iter().position(|(known, _, _)| known.name == line.name).unwrap_or_else(|| {
            let at = self.lines.partition_point(|(_, other, _)| *other < order);
            self.lines.insert(at, (line, order, Stat::default()));
            at
        });
        self.lines[at].2.0.push(ns);
        if order != usize::MAX {
            self.named_ns += i128::from(ns);
        }
    }

    pub fn joined(&self) -> u64 {
        self.n
    }

    pub fn coverage(&self) -> Option<f64> {
        (self.n > 0 && self.total_ns > 0).then(|| self.named_ns as f64 / self.total_ns as f64)
    }

    pub fn lines(self) -> Vec<SideLine> {
        let (n, total_ns) = (self.n, self.total_ns);
        Lines(self.lines.into_iter().map(|(line, _, stat)| (line, stat)).collect()).finish(n, total_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> Pair {
        Pair {
            round: 0,
            wr_id: 1,
            rtt_ns: 1000,
            client_post_ns: 100,
            server_notification_ns: Some(50),
            server_residency_ns: 70,
            server_post_ns: 80,
            client_notification_ns: Some(60),
            client_send_ns: Some(-20),
            server_receive_ns: Some(90),
            server_send_ns: Some(10),
            client_receive_ns: Some(110),
            lost: false,
        }
    }

    #[test]
    fn the_lines_add_up_whatever_is_seen() {
        for client in [false, true] {
            for server in [false, true] {
                let seen = Seen { client, server };
                let lines = pair().lines(seen);
                assert_eq!(lines.iter().map(|(_, ns)| ns).sum::<i64>(), 1000);
                assert_eq!(lines.len(), 4 + usize::from(client) + usize::from(server));
            }
        }
        let both = Seen { client: true, server: true };
        assert_eq!(pair().network_ns(both), 640);
        assert_eq!(pair().network_ns(Seen { client: false, server: false }), 750);
        let parts = pair().network_lines(both).expect("all parts");
        assert_eq!((parts[0].1, parts.iter().map(|(_, ns)| ns).sum::<i64>()), (450, 640));
    }

    #[test]
    fn a_negative_network_is_counted_and_stays_in_the_mean() {
        let mut table = Table::new(Seen { client: true, server: true });
        assert!(table.add(&pair()));
        assert!(table.add(&Pair { rtt_ns: 300, ..pair() }));
        assert!(!table.add(&Pair { client_notification_ns: None, ..pair() }) && !table.add(&Pair { lost: true, ..pair() }));
        let (_, table) = table.finish();
        let table = table.expect("samples");
        assert_eq!((table.n, table.incomplete, table.negative_network), (2, 2, 1));
        let network = table.lines.iter().find(|line| line.side == "network").expect("there");
        assert_eq!((network.n, network.negative, network.mean_of_all_ns, network.max_ns), (2, 1, 290.0, 640));
        let sum: f64 = table.lines.iter().map(|line| line.mean_of_all_ns).sum();
        assert!((sum - table.mean_rtt_ns).abs() < 1e-6 && table.mean_rtt_ns == 650.0);
    }
}
