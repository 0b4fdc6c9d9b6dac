//! What an operation is besides its measured loop: all that the making of an endpoint and the check after a run need to know of it.
use crate::runner::error::RunnerError;
use crate::runner::memory::Memory;
use crate::runner::queues::Queues;
use crate::verbs::{Access, Device, RemoteMemory, SendOp, VerbsError};
use capture::Side;

/// Rights on a receive area that no request of the peer reaches: receives and results of READ and atomics arrive there.
pub(super) const NOT_REACHED: Access = Access { local_write: true, remote_write: false, remote_read: false, remote_atomic: false };

/// An operation. What ends its samples, and whether the server answers, is in the contract ([`capture::Operation`]).
#[derive(Clone, Copy)]
pub(crate) struct Description {
    /// What its work request does with the peer's memory.
    pub send_op: fn(RemoteMemory) -> SendOp,
    /// The area of this side that its work request reads from or writes to.
    pub local: LocalArea,
    /// What the server may do in the client's receive area: only what the operation needs.
    pub client_lends: Access,
    /// What the client may do in the server's receive area: only what the operation needs.
    pub server_lends: Access,
    /// The address of the memory that is reached is a multiple of this.
    pub alignment: u64,
    /// The only size that a message can have; `None`: any.
    pub size: Option<FixedSize>,
    /// Slots of the send area.
    pub send_slots: Slots,
    /// Slots of the receive area.
    pub recv_slots: Slots,
    /// Its requests take receives: the receive queue is kept full, with as many as the receive area has slots.
    pub takes_receives: bool,
    /// Puts into the memory of a side what must lie there before the first operation. The send area holds the side's pattern already.
    pub put_before: fn(&Memory, Side) -> Result<(), VerbsError>,
    /// Checks what lies in the memory of a side after so many operations.
    pub verify: fn(&Queues, Side, u64) -> Result<(), RunnerError>,
    /// Why this device cannot do it; `None`: it can.
    pub fault: fn(&Device) -> Option<String>,
}

/// An area of this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalArea {
    /// Data leaves from there.
    Send,
    /// Data of the peer lands there.
    Receive,
}

/// The only size of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FixedSize {
    /// So many bytes.
    pub bytes: u32,
    /// Of what, such as "an atomic".
    pub of: &'static str,
}

/// How many slots an area has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slots {
    /// One, used again and again.
    One,
    /// One for each work request that its queue holds.
    PerWorkRequest,
}

impl Slots {
    /// With a queue of this depth.
    pub fn count(self, depth: u32) -> u32 {
        match self {
            Self::One => 1,
            Self::PerWorkRequest => depth,
        }
    }
}

impl Description {
    /// Rights of the peer on the receive area of a side.
    pub fn lends(&self, side: Side) -> Access {
        match side {
            Side::Client => self.client_lends,
            Side::Server => self.server_lends,
        }
    }

    /// Whether the requests of a side reach the peer's memory.
    pub fn reaches_peer(&self, side: Side) -> bool {
        self.lends(other(side)).is_remote()
    }
}

/// The side that a side talks to.
pub(super) fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

/// For operations that need nothing in memory beforehand.
pub(super) fn nothing_before(_: &Memory, _: Side) -> Result<(), VerbsError> {
    Ok(())
}

/// For operations that every device can do.
pub(super) fn on_every_device(_: &Device) -> Option<String> {
    None
}
