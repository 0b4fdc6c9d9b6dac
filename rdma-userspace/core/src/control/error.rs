//! What can go wrong between client and server, each with what to do about it.
use super::protocol::MESSAGE_MAX_BYTES;
use std::time::Duration;

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
    #[error("the peer announced a message of {length_bytes} bytes; the limit is {} bytes. Is the other side rdmascope?", MESSAGE_MAX_BYTES)]
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
    /// A request that this end cannot fulfil; it is the reply to the peer.
    #[error("{0}")]
    Request(String),
    /// The server does not want us.
    #[error("the server refused: {0}")]
    Refused(String),
    /// This server did not admit a client.
    #[error("refused: {0}")]
    NotAdmitted(String),
    /// The capture of the server's side of a run came back wrong.
    #[error("the server's side of the run cannot be used: {0}")]
    PeerCapture(String),
    /// A token file that cannot be used.
    #[error("the token of {path} cannot be used: {why}")]
    Token {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}
