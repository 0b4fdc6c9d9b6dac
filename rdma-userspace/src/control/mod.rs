//! The control plane: how client and server agree over TCP. It carries no data while a round is measured.
//!
//! [`frame`] moves messages, [`message`] says what they are, [`token`] and [`door`] keep strangers out, [`limits`] keeps a client within bounds,
//! [`side`] keeps what a server records of its own.

pub mod connection;
pub mod door;
pub mod frame;
pub mod limits;
pub mod message;
pub mod server;
pub mod side;
pub mod token;

use std::time::Duration;

/// Version of the control protocol; both sides must speak the same one.
pub const PROTOCOL_VERSION: u32 = 2;

/// Where a server listens when nobody says otherwise.
pub const DEFAULT_PORT: u16 = 18_600;

/// How long one side waits for the other's answer to a control message.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(20);

/// How long the client waits while the server loads its probes, attaches or drops them: a slow machine takes its time.
pub const PROBES_DEADLINE: Duration = Duration::from_secs(60);

/// How long a server waits for a newcomer to show its token.
pub const HELLO_DEADLINE: Duration = Duration::from_secs(5);

/// What went wrong between client and server.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody listens there, or the network is in the way.
    #[error(
        "cannot connect to {address}: {source}. Is `rdmascope serve` running there, bound to an address that this host can reach (--bind)?"
    )]
    Connect {
        /// What was asked for.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}. Choose an address of this host and a free port with --bind ADDRESS:PORT")]
    Listen {
        /// What was asked for.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The connection ended.
    #[error("the peer closed the control connection (it ended, was killed, or its host went away)")]
    Closed,
    /// The connection failed.
    #[error("the control connection failed: {0}")]
    Io(#[from] std::io::Error),
    /// No answer in time.
    #[error("no answer from the peer within {} s while waiting for {what}", deadline.as_secs())]
    Deadline {
        /// What was waited for.
        what: &'static str,
        /// How long.
        deadline: Duration,
    },
    /// A message longer than any that we send.
    #[error(
        "the peer announced a message of {length_bytes} bytes; the limit is {} bytes. Is the other side rdmascope?",
        frame::MESSAGE_MAX_BYTES
    )]
    TooLong {
        /// The length that was announced.
        length_bytes: u32,
    },
    /// Bytes that are no message.
    #[error("the peer sent something that is not a message of this protocol: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A message that does not fit here.
    #[error("the peer sent `{got}` where {expected} was expected")]
    Unexpected {
        /// What came.
        got: String,
        /// What should have come.
        expected: &'static str,
    },
    /// The peer reports an error of its own.
    #[error("the peer reports: {0}")]
    Peer(String),
    /// A request that this side cannot fulfil; told to the peer.
    #[error("{0}")]
    Request(String),
    /// The server does not want us.
    #[error("the server refused: {0}")]
    Refused(String),
    /// A newcomer was refused by this server.
    #[error("refused: {0}")]
    Stranger(String),
    /// The server's side of a run came back wrong.
    #[error("the server's side of the run cannot be used: {0}")]
    Side(String),
    /// A token file that cannot be used.
    #[error("the token of {path} cannot be used: {why}")]
    Token {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}
