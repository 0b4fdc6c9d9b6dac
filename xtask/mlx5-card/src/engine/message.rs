//! What queue pairs send each other. One message is one work request or one answer: it is never cut into packets, and its
//! sequence number counts messages where a real card's counts packets.

use std::time::Duration;

/// The service of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// RC.
    Reliable,
    /// UC.
    Unreliable,
    /// UD and the management queue pairs.
    Datagram,
    /// A send queue of the network device: its frames are completed and go nowhere.
    Ethernet,
    /// Anything else: it can be made, and does nothing.
    Other,
}

/// A queue pair of a function of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The function, from 0.
    pub function: usize,
    /// The queue pair.
    pub qpn: u32,
}

/// A message on the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who sent it.
    pub from: Address,
    /// Whom it is for.
    pub to: Address,
    /// What it says.
    pub body: Body,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A work request.
    Request(Request),
    /// It and everything before it was done. READs and atomics bring data.
    Done {
        /// Sequence of the request.
        sequence: u32,
        /// What was read.
        data: Vec<u8>,
    },
    /// It was not done.
    Refused {
        /// Sequence of the request.
        sequence: u32,
        /// Why.
        reason: Refusal,
    },
}

/// Why a request was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No receive was posted: again after this time.
    ReceiverNotReady(Duration),
    /// Requests before it are missing.
    OutOfSequence,
    /// It does not fit the receive, or the queue pair does not serve it.
    InvalidRequest,
    /// The key or the queue pair does not allow it.
    Access,
    /// The receiver's own buffers failed.
    Operation,
}

/// A work request on the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Its place in the order of the sender, 24 bits.
    pub sequence: u32,
    /// What to do.
    pub action: Action,
    /// Whether the receiver's CQE is solicited.
    pub solicited: bool,
    /// LID of the sender.
    pub source_lid: u16,
    /// Header of a datagram.
    pub datagram: Option<Datagram>,
}

/// What a datagram carries beside its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Queue key.
    pub q_key: u32,
    /// The 40 bytes before the data in the receiver's buffer.
    pub header: [u8; 40],
    /// Flags of the receiver's CQE that tell what the header is.
    pub flags: u32,
}

/// What a request does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// SEND.
    Send {
        /// The data.
        data: Vec<u8>,
        /// Immediate data.
        immediate: Option<u32>,
    },
    /// WRITE.
    Write {
        /// Address at the peer.
        address: u64,
        /// Key at the peer.
        rkey: u32,
        /// The data.
        data: Vec<u8>,
        /// Immediate data; it takes a receive.
        immediate: Option<u32>,
    },
    /// READ.
    Read {
        /// Address at the peer.
        address: u64,
        /// Key at the peer.
        rkey: u32,
        /// Bytes.
        length: usize,
    },
    /// An atomic on 8 bytes.
    Atomic {
        /// Address at the peer.
        address: u64,
        /// Key at the peer.
        rkey: u32,
        /// What is stored or added.
        operand: u64,
        /// What must be there for a swap; none for an addition.
        compare: Option<u64>,
    },
}

impl Action {
    /// Whether its answer brings data, so that the answer to a later request is no answer to it.
    pub const fn brings_data(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Atomic { .. })
    }

    /// Whether it takes a receive of the peer.
    pub const fn takes_receive(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Write { immediate: Some(_), .. })
    }
}

/// The base of LIDs: function `n` has LID `n + 1`.
const FIRST_LID: u16 = 1;
/// The first five bytes of every function's MAC address; the last one is the function.
pub const MAC_PREFIX: [u8; 5] = [0x0c, 0x42, 0xa1, 0x77, 0x77];

/// The LID of a function.
pub const fn lid_of(function: usize) -> u16 {
    FIRST_LID + function as u16
}

/// The function of a LID.
pub fn function_of_lid(lid: u16) -> Option<usize> {
    lid.checked_sub(FIRST_LID).map(usize::from)
}

/// The function of a MAC address.
pub fn function_of_mac(mac: [u8; 6]) -> Option<usize> {
    (mac[..5] == MAC_PREFIX).then_some(usize::from(mac[5]))
}

/// How far `sequence` is after `other`, in a space of 24 bits: negative where it is before.
pub const fn distance(sequence: u32, other: u32) -> i32 {
    ((sequence.wrapping_sub(other) << 8) as i32) >> 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_at_24_bits() {
        assert_eq!(distance(5, 3), 2);
        assert_eq!(distance(3, 5), -2);
        assert_eq!(distance(1, 0xff_ffff), 2);
        assert_eq!(distance(0xff_ffff, 1), -2);
    }

    #[test]
    fn addresses_name_functions() {
        assert_eq!(function_of_lid(lid_of(1)), Some(1));
        assert_eq!(function_of_lid(0), None);
        assert_eq!(function_of_mac([0x0c, 0x42, 0xa1, 0x77, 0x77, 1]), Some(1));
        assert_eq!(function_of_mac([0; 6]), None);
    }
}
