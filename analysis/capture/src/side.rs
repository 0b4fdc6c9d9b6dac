//! The two sides of a run.
use crate::named::named;

named! {
    /// Which side of a run a thread, an endpoint or a capture belongs to.
    pub enum Side: "side" {
        /// The client: it makes the samples, which have a latency.
        Client = "client",
        /// The server: it answers ping-pongs and owns the memory that one-sided operations reach. Its samples say when a message came and
        /// when the answer was posted; its capture lies in the folder `peer` of the client's.
        Server = "server",
    }
}

// Not derived: the macro of the words has no place for the attribute.
#[allow(clippy::derivable_impls)]
impl Default for Side {
    fn default() -> Self {
        Side::Client
    }
}
