//! One round trip of which both sides are known, and the lines that add up to it.
use crate::explain::model::Place;

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

/// Place, name and meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub place: Place,
    pub name: &'static str,
    pub meaning: &'static str,
}

/// A line by its place and texts.
pub(super) const fn line(place: Place, name: &'static str, meaning: &'static str) -> Line {
    Line { place, name, meaning }
}

const CLIENT_POST: Line = line(Place::Client, "post", "before → after ibv_post_send");
const SERVER_NOTIFICATION: Line = line(Place::Server, "notification", "CQE of the receive → the poll that found it (H1 or R6 → U4)");
pub(super) const SERVER_RESIDENCY: Line =
    line(Place::Server, "residency", "the poll that found the message → before the post of the answer");
pub(super) const SERVER_POST: Line = line(Place::Server, "post of the answer", "before → after ibv_post_send");
const CLIENT_NOTIFICATION: Line = line(Place::Client, "notification", "CQE of the answer → the poll that found it (H1 or R6 → U4)");
const CLIENT_SEND: Line =
    line(Place::Client, "send path", "end of the post → the last packet left; negative where it left within the post");
const SERVER_RECEIVE: Line = line(Place::Server, "receive path", "first sign of the packet → its CQE");
const SERVER_SEND: Line =
    line(Place::Server, "send path of the answer", "end of the post → the last packet left; negative where it left within the post");
const CLIENT_RECEIVE: Line = line(Place::Client, "receive path", "first sign of the answer's packet → its CQE");
const WIRE: Line =
    line(Place::Network, "wire and devices, both ways", "what is left of the network: from packet sent to packet seen, there and back");

impl Seen {
    fn network(self) -> Line {
        const MEANING: &str = "what is left of the round trip: both ways, both devices (or both kernels' soft-RoCE)";
        match (self.client, self.server) {
            (true, true) => line(Place::Network, "network", MEANING),
            (true, false) => line(Place::Network, "network and the server's notification", MEANING),
            (false, true) => line(Place::Network, "network and the client's notification", MEANING),
            (false, false) => line(Place::Network, "network and both notifications", MEANING),
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
    pub(super) fn network_lines(&self, seen: Seen) -> Option<Vec<(Line, i64)>> {
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

    pub(super) fn is_complete(&self, seen: Seen) -> bool {
        let forward = self.rtt_ns >= 0 && self.client_post_ns >= 0 && self.server_residency_ns >= 0 && self.server_post_ns >= 0;
        let told = (!seen.client || self.client_notification_ns.is_some()) && (!seen.server || self.server_notification_ns.is_some());
        forward && told && !self.lost
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A round trip of 1000 ns of which everything is known.
    pub(in crate::explain::sides) fn pair() -> Pair {
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
}
