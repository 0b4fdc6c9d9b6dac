//! Send work queue elements, decoded: segments of 16 bytes as `include/linux/mlx5/qp.h` has them.

use super::message::Transport;
use crate::bits::{be32, be64, low24};

/// Opcodes of the first segment (`MLX5_OPCODE_*`).
pub mod opcode {
    /// Does nothing.
    pub const NOP: u8 = 0x00;
    /// WRITE.
    pub const WRITE: u8 = 0x08;
    /// WRITE with immediate.
    pub const WRITE_IMMEDIATE: u8 = 0x09;
    /// SEND.
    pub const SEND: u8 = 0x0a;
    /// SEND with immediate.
    pub const SEND_IMMEDIATE: u8 = 0x0b;
    /// READ.
    pub const READ: u8 = 0x10;
    /// Compare and swap.
    pub const COMPARE_SWAP: u8 = 0x11;
    /// Fetch and add.
    pub const FETCH_ADD: u8 = 0x12;
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// In the element itself.
    Inline(Vec<u8>),
    /// In the guest's memory.
    Buffer {
        /// Key.
        lkey: u32,
        /// Address.
        address: u64,
        /// Bytes.
        length: usize,
    },
}

/// Where a datagram goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressVector {
    /// Queue key; with the top bit set the queue pair's own is meant.
    pub q_key: u32,
    /// Queue pair of the receiver.
    pub qpn: u32,
    /// LID of the receiver (InfiniBand).
    pub lid: u16,
    /// MAC address of the receiver (RoCE).
    pub mac: [u8; 6],
    /// Hop limit.
    pub hop_limit: u8,
    /// Index of the sender's GID.
    pub source_gid: u8,
    /// GID of the receiver; none in a short vector.
    pub gid: Option<[u8; 16]>,
}

/// A send work request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkRequest {
    /// Index of its first block of 64 bytes in the queue.
    pub index: u16,
    /// Blocks that it takes.
    pub blocks: u16,
    /// What to do.
    pub opcode: u8,
    /// Whether success has a CQE.
    pub signalled: bool,
    /// Whether the receiver's CQE is solicited.
    pub solicited: bool,
    /// Whether it waits for everything before it.
    pub fenced: bool,
    /// Immediate data.
    pub immediate: u32,
    /// Receiver, for datagrams.
    pub datagram: Option<AddressVector>,
    /// Address and key at the peer.
    pub remote: Option<(u64, u32)>,
    /// Operands of an atomic: swap or add, compare.
    pub operands: Option<(u64, u64)>,
    /// The data.
    pub segments: Vec<Segment>,
}

const SEGMENT: usize = 16;
const INLINE: u32 = 1 << 31;
const EXTENDED_VECTOR: u32 = 1 << 31;

/// Blocks of 64 bytes that an element of `segments` segments takes.
pub fn blocks(segments: usize) -> u16 {
    segments.div_ceil(4).max(1) as u16
}

/// Segments of the element whose first segment this is.
pub fn segment_count(control: &[u8]) -> usize {
    (be32(control, 4) & 0x3f) as usize
}

impl WorkRequest {
    /// Decodes an element.
    pub fn decode(bytes: &[u8], index: u16, transport: Transport) -> Self {
        let flags = bytes.get(11).copied().unwrap_or(0);
        let opcode = be32(bytes, 0) as u8;
        let mut request = Self {
            index,
            blocks: blocks(segment_count(bytes)),
            opcode,
            signalled: flags & 0x0c == 0x08,
            solicited: flags & 0x02 != 0,
            fenced: flags >> 5 != 0,
            immediate: be32(bytes, 12),
            datagram: None,
            remote: None,
            operands: None,
            segments: Vec::new(),
        };
        let mut at = SEGMENT;
        if transport == Transport::Datagram {
            let is_extended = be32(bytes, at + 8) & EXTENDED_VECTOR != 0;
            request.datagram = Some(address_vector(&bytes[at.min(bytes.len())..], is_extended));
            at += if is_extended { 3 * SEGMENT } else { SEGMENT };
        }
        if matches!(opcode, opcode::WRITE | opcode::WRITE_IMMEDIATE | opcode::READ | opcode::COMPARE_SWAP | opcode::FETCH_ADD) {
            request.remote = Some((be64(bytes, at), be32(bytes, at + 8)));
            at += SEGMENT;
        }
        if matches!(opcode, opcode::COMPARE_SWAP | opcode::FETCH_ADD) {
            request.operands = Some((be64(bytes, at), be64(bytes, at + 8)));
            at += SEGMENT;
        }
        if opcode != opcode::NOP {
            request.segments = data_segments(bytes, at);
        }
        request
    }

    /// Bytes that the segments hold.
    pub fn length(&self) -> usize {
        let bytes = |segment: &Segment| match segment {
            Segment::Inline(data) => data.len(),
            Segment::Buffer { length, .. } => *length,
        };
        self.segments.iter().map(bytes).sum()
    }
}

fn address_vector(bytes: &[u8], is_extended: bool) -> AddressVector {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let gid = is_extended.then(|| std::array::from_fn(|at| byte(32 + at)));
    AddressVector {
        q_key: be32(bytes, 0),
        qpn: low24(be32(bytes, 8)),
        lid: be32(bytes, 12) as u16,
        mac: if is_extended { std::array::from_fn(|at| byte(20 + at)) } else { [0; 6] },
        hop_limit: if is_extended { byte(27) } else { 0 },
        source_gid: if is_extended { (be32(bytes, 28) >> 20) as u8 } else { 0 },
        gid,
    }
}

fn data_segments(bytes: &[u8], mut at: usize) -> Vec<Segment> {
    let mut segments = Vec::new();
    while at + SEGMENT <= bytes.len() {
        let word = be32(bytes, at);
        if word & INLINE != 0 {
            let length = (word & 0x3ff) as usize;
            let end = (at + 4 + length).min(bytes.len());
            segments.push(Segment::Inline(bytes[at + 4..end].to_vec()));
            at += (4 + length).next_multiple_of(SEGMENT);
        } else {
            segments.push(Segment::Buffer {
                lkey: be32(bytes, at + 4),
                address: be64(bytes, at + 8),
                length: (word & 0x7fff_ffff) as usize,
            });
            at += SEGMENT;
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{put, put32};

    fn element(opcode: u32, segments: u32, flags: u8) -> Vec<u8> {
        let mut bytes = vec![0; segments as usize * SEGMENT];
        put32(&mut bytes, 0, 0x0102_0300 | opcode);
        put32(&mut bytes, 4, 0x1234 << 8 | segments);
        bytes[11] = flags;
        bytes
    }

    #[test]
    fn a_write_has_its_remote_address_before_the_data() {
        let mut bytes = element(8, 3, 0x08);
        put(&mut bytes, 16, &0x7f00_1000_u64.to_be_bytes());
        put32(&mut bytes, 24, 0x4142);
        put32(&mut bytes, 32, 64);
        put32(&mut bytes, 36, 0x99);
        put(&mut bytes, 40, &0x5000_u64.to_be_bytes());
        let request = WorkRequest::decode(&bytes, 7, Transport::Reliable);
        assert_eq!(request.remote, Some((0x7f00_1000, 0x4142)));
        assert_eq!(request.segments, [Segment::Buffer { lkey: 0x99, address: 0x5000, length: 64 }]);
        assert!(request.signalled && !request.solicited && !request.fenced);
        assert_eq!((request.index, request.blocks, request.length()), (7, 1, 64));
    }

    #[test]
    fn an_atomic_has_its_operands_before_the_buffer() {
        let mut bytes = element(0x11, 4, 0x28);
        put(&mut bytes, 32, &5_u64.to_be_bytes());
        put(&mut bytes, 40, &6_u64.to_be_bytes());
        put32(&mut bytes, 48, 8);
        let request = WorkRequest::decode(&bytes, 0, Transport::Reliable);
        assert_eq!(request.operands, Some((5, 6)));
        assert_eq!(request.length(), 8);
        assert!(request.fenced);
    }

    #[test]
    fn a_datagram_has_an_address_vector() {
        let mut bytes = element(0x0a, 5, 0);
        put32(&mut bytes, 16, 0x1111_1111);
        put32(&mut bytes, 24, EXTENDED_VECTOR | 0x77);
        put32(&mut bytes, 28, 0x0000_0003);
        put(&mut bytes, 36, &[1, 2, 3, 4, 5, 6]);
        bytes[43] = 64;
        put32(&mut bytes, 44, 1 << 30 | 5 << 20);
        put32(&mut bytes, 64, INLINE | 3);
        put(&mut bytes, 68, b"abc");
        let request = WorkRequest::decode(&bytes, 0, Transport::Datagram);
        let to = request.datagram.unwrap();
        assert_eq!((to.q_key, to.qpn, to.lid, to.mac), (0x1111_1111, 0x77, 3, [1, 2, 3, 4, 5, 6]));
        assert_eq!((to.hop_limit, to.source_gid), (64, 5));
        assert_eq!(request.segments, [Segment::Inline(b"abc".to_vec())]);
        assert_eq!(request.blocks, 2);
    }

    #[test]
    fn inline_data_longer_than_a_segment_is_followed_by_the_next() {
        let mut bytes = element(0x0a, 4, 0);
        put32(&mut bytes, 16, INLINE | 20);
        put32(&mut bytes, 48, 4);
        let request = WorkRequest::decode(&bytes, 0, Transport::Reliable);
        assert_eq!(request.segments.len(), 2);
        assert_eq!(request.length(), 24);
    }
}
