//! What both ends agree on: the version, sizes of messages, and how long each waits for the other.
use std::time::Duration;

/// Version of the control protocol; both ends must speak the same one.
pub const PROTOCOL_VERSION: u32 = 2;

/// Where a server listens by default.
pub const DEFAULT_PORT: u16 = 18_600;

/// The longest message in bytes; a longer one is refused before anything is allocated.
pub const MESSAGE_MAX_BYTES: u32 = 1 << 20;

/// Bytes of a round in one message; in base64 they stay below [`MESSAGE_MAX_BYTES`].
pub const PART_MAX_BYTES: usize = 512 << 10;

/// How long one end waits for the other's answer to a control message.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(20);

/// How long the client waits while the server loads its probes, attaches or drops them: a slow machine takes its time.
pub const PROBES_DEADLINE: Duration = Duration::from_secs(60);

/// How long a server waits for a new connection to show its token.
pub const HELLO_DEADLINE: Duration = Duration::from_secs(5);
