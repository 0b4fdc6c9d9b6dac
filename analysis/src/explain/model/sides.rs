//! Finished numbers of both sides of a run.
use serde::Serialize;
use std::fmt;

/// Where the time of a line passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the client.
    Client,
    /// Neither side's clock saw it: what is left of the round trip, or a part of that.
    Network,
    /// On the server.
    Server,
}

impl Place {
    /// Its name, as in the JSON report.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Client => "client",
            Place::Network => "network",
            Place::Server => "server",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Place {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// A round trip split between both sides: the client's samples joined with the server's, each by differences within its own clock.
#[derive(Clone, Debug, Serialize)]
pub struct TwoSides {
    /// Rounds without probes: nothing disturbs them, and no notification is told apart.
    pub untraced: Option<SidesTable>,
    /// Rounds with probes.
    pub traced: Option<SidesTable>,
    /// What the time at the network is made of, rounds with probes; empty where the kernel does not show it.
    pub network: Vec<SideLine>,
    /// The server's own stages from the arrival of a message to the return of the post of its answer, rounds with probes.
    pub server_stages: Vec<SideLine>,
    /// Share of that time that named stages cover, 0 to 1; `None`: the server's kernel shows nothing.
    pub server_coverage: Option<f64>,
    /// Traced messages of the server that were joined with its kernel events.
    pub server_joined: u64,
    /// Those of them with missing records.
    pub server_lost: u64,
    /// The slowest joined samples.
    pub slow: Vec<SlowPair>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// What the server's capture lacks of what was recorded.
    pub damage: Vec<String>,
}

/// The lines of a split; they add up to the round trip.
#[derive(Clone, Debug, Serialize)]
pub struct SidesTable {
    /// Samples that were joined and have every line.
    pub n: u64,
    /// Samples of the client that found no sample of the server.
    pub unmatched: u64,
    /// Joined samples that lack a line (records missing, a clock that went backwards): left out.
    pub incomplete: u64,
    /// Mean round trip of the `n` samples.
    pub mean_rtt_ns: f64,
    /// In path order.
    pub lines: Vec<SideLine>,
    /// Samples whose network came out negative: kept raw in every figure.
    pub negative_network: u64,
}

/// One line of a split.
#[derive(Clone, Debug, Serialize)]
pub struct SideLine {
    /// Where its time passed.
    #[serde(rename = "side")]
    pub place: Place,
    /// Name.
    pub name: String,
    /// From what to what.
    pub meaning: String,
    /// Samples in which it was seen.
    pub n: u64,
    /// Sum over those samples divided by all of the table, so that means add up.
    pub mean_of_all_ns: f64,
    /// Median, negative values included; `None`: withheld.
    pub p50_ns: Option<i64>,
    /// 99th percentile; `None`: withheld.
    pub p99_ns: Option<i64>,
    /// Largest.
    pub max_ns: i64,
    /// Share of the whole; below 0 where the sum is.
    pub share: f64,
    /// Negative values among the `n`: kept raw in every figure.
    pub negative: u64,
}

/// A slow sample of which both sides are known.
#[derive(Clone, Debug, Serialize)]
pub struct SlowPair {
    /// wr_id of its begin WR on the client.
    pub wr_id: u64,
    /// Round.
    pub round: u32,
    /// Round trip.
    pub rtt_ns: u64,
    /// (place, line, time) in path order; adds up to the round trip.
    pub lines: Vec<(Place, String, i64)>,
}
