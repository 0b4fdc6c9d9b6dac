//! Completion modes: how a thread learns that a completion has come.
use crate::named::named;

named! {
    /// A completion mode.
    pub enum Mode: "completion mode" {
        /// Spin on `ibv_poll_cq`.
        Poll = "poll",
        /// Arm, and block in a read of the completion channel.
        Event = "event",
    }
}

impl Mode {
    /// Its thread may sleep in the kernel until a completion event wakes it: the wake-up stages exist.
    pub const fn may_sleep(self) -> bool {
        match self {
            Self::Poll => false,
            Self::Event => true,
        }
    }

    /// Its thread keeps a CPU busy while it waits.
    pub const fn spins(self) -> bool {
        match self {
            Self::Poll => true,
            Self::Event => false,
        }
    }
}
