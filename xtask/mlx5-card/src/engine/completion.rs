//! Completions: what a CQE says, and how its bytes lie.

use crate::bits::{put, put32};

/// Why a work request failed, as a CQE says it (`MLX5_CQE_SYNDROME_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Syndrome {
    /// A message does not fit into the receive's buffers.
    LocalLength = 0x01,
    /// The operation is not one of this queue pair.
    LocalQpOperation = 0x02,
    /// A local key does not allow it.
    LocalProtection = 0x04,
    /// The queue pair was in the error state.
    Flushed = 0x05,
    /// The peer refused the request.
    RemoteInvalidRequest = 0x12,
    /// The peer's key does not allow it.
    RemoteAccess = 0x13,
    /// The peer could not do it.
    RemoteOperation = 0x14,
    /// No answer, retries used up.
    RetryExceeded = 0x15,
    /// The peer had no receive posted, retries used up.
    RnrRetryExceeded = 0x16,
}

/// What a CQE is of (the opcode in its last byte).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A request of the send queue.
    Requester = 0,
    /// A WRITE with immediate that came in.
    WriteImmediate = 1,
    /// A SEND that came in.
    Send = 2,
    /// A SEND with immediate that came in.
    SendImmediate = 3,
    /// A request that failed.
    RequesterError = 13,
    /// A receive that failed.
    ResponderError = 14,
}

/// A completion, before it has a place in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// What it is of.
    pub kind: Kind,
    /// The queue pair.
    pub qpn: u32,
    /// The number that the driver gave the queue pair.
    pub user_index: u32,
    /// Index of the work queue's element.
    pub wqe: u16,
    /// Opcode of the send WQE; 0 for receives.
    pub wqe_opcode: u8,
    /// Bytes that came in or were read.
    pub bytes: u32,
    /// Immediate data, as it was in the request; for datagrams on queue pair 1 the partition key.
    pub immediate: u32,
    /// Flags of the headers (GRH, kind) and number of the sending queue pair.
    pub source: u32,
    /// LID of the sender.
    pub source_lid: u16,
    /// Why it failed.
    pub syndrome: Option<Syndrome>,
    /// Whether it counts for an arm that waits for solicited completions.
    pub solicited: bool,
}

/// Bytes of a CQE.
pub const ENTRY: usize = 64;
/// Vendor's syndrome of a flushed request.
const VENDOR_FLUSHED: u8 = 0xf9;

impl Completion {
    /// The 64 bytes of `struct mlx5_cqe64` or `struct mlx5_err_cqe` (include/linux/mlx5/device.h).
    pub fn encode(&self, ticks: u64, owner: bool) -> [u8; ENTRY] {
        let mut entry = [0_u8; ENTRY];
        put32(&mut entry, 32, self.user_index);
        if let Some(syndrome) = self.syndrome {
            entry[54] = if syndrome == Syndrome::Flushed { VENDOR_FLUSHED } else { 0 };
            entry[55] = syndrome as u8;
        } else {
            put(&mut entry, 22, &self.source_lid.to_be_bytes());
            put32(&mut entry, 24, self.source);
            put32(&mut entry, 36, self.immediate);
            put32(&mut entry, 44, self.bytes);
            put(&mut entry, 48, &ticks.to_be_bytes());
        }
        put32(&mut entry, 56, u32::from(self.wqe_opcode) << 24 | self.qpn);
        put(&mut entry, 60, &self.wqe.to_be_bytes());
        entry[63] = (self.kind as u8) << 4 | u8::from(owner);
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_cqe_lies_as_the_driver_reads_it() {
        let failed = Completion {
            kind: Kind::RequesterError,
            qpn: 0x12_3456,
            user_index: 9,
            wqe: 0x0102,
            wqe_opcode: 0x10,
            bytes: 77,
            immediate: 0,
            source: 0,
            source_lid: 0,
            syndrome: Some(Syndrome::RemoteAccess),
            solicited: true,
        };
        let entry = failed.encode(5, true);
        assert_eq!(entry[55], 0x13);
        assert_eq!(entry[56..60], [0x10, 0x12, 0x34, 0x56]);
        assert_eq!(entry[60..62], [1, 2]);
        assert_eq!(entry[63], 0xd1);
        let good = Completion { kind: Kind::Send, syndrome: None, ..failed }.encode(0x0102_0304_0506_0708, false);
        assert_eq!(good[48..56], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(good[44..48], [0, 0, 0, 77]);
        assert_eq!(good[63], 0x20);
    }
}
