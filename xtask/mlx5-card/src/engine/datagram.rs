//! What stands before a datagram's data in the receiver's buffer, and how the CQE names it.

use super::wqe::AddressVector;
use crate::bits::put;

/// Bytes before the data.
pub const HEADER: usize = 40;
/// CQE: a header is there.
const HAS_HEADER: u32 = 1 << 28;
/// CQE: kind of the header, from bit 24: 0 GRH, 1 IPv6, 2 IPv4.
const KIND_SHIFT: u32 = 24;
/// UDP.
const PROTOCOL_UDP: u8 = 17;
/// InfiniBand's own next header.
const PROTOCOL_IBA: u8 = 0x1b;
/// Bytes between the network header and the data: UDP 8, base header 12, datagram header 8; and 4 of the check sum after it.
const OVERHEAD_V2: usize = 8 + 12 + 8 + 4;
const OVERHEAD_V1: usize = 12 + 8 + 4;

/// The version of a GID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GidKind {
    /// RoCE v1.
    V1,
    /// RoCE v2 over IPv4.
    V2Ip4,
    /// RoCE v2 over IPv6.
    V2Ip6,
}

/// A GID of the function's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gid {
    /// The address.
    pub bytes: [u8; 16],
    /// Its version.
    pub kind: GidKind,
}

/// The header of a datagram of `length` bytes and the flags of the receiver's CQE. `source` is the sender's GID; without one
/// (InfiniBand in a subnet) there is no header and the 40 bytes are not defined.
pub fn header(source: Option<Gid>, to: &AddressVector, length: usize) -> ([u8; HEADER], u32) {
    let mut header = [0; HEADER];
    let (Some(source), Some(target)) = (source, to.gid) else { return (header, 0) };
    let flags = match source.kind {
        GidKind::V2Ip4 => {
            header[20] = 0x45;
            put(&mut header, 22, &((20 + OVERHEAD_V2 + length) as u16).to_be_bytes());
            header[28] = to.hop_limit;
            header[29] = PROTOCOL_UDP;
            put(&mut header, 32, &source.bytes[12..]);
            put(&mut header, 36, &target[12..]);
            let sum = internet_checksum(&header[20..]);
            put(&mut header, 30, &sum.to_be_bytes());
            2 << KIND_SHIFT
        }
        GidKind::V1 | GidKind::V2Ip6 => {
            let is_v1 = source.kind == GidKind::V1;
            header[0] = 0x60;
            let overhead = if is_v1 { OVERHEAD_V1 } else { OVERHEAD_V2 };
            put(&mut header, 4, &((overhead + length) as u16).to_be_bytes());
            header[6] = if is_v1 { PROTOCOL_IBA } else { PROTOCOL_UDP };
            header[7] = to.hop_limit;
            put(&mut header, 8, &source.bytes);
            put(&mut header, 24, &target);
            u32::from(!is_v1) << KIND_SHIFT
        }
    };
    (header, HAS_HEADER | flags)
}

fn internet_checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: AddressVector = AddressVector {
        q_key: 0,
        qpn: 1,
        lid: 0,
        mac: [0; 6],
        hop_limit: 64,
        source_gid: 0,
        gid: Some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 1, 2]),
    };

    #[test]
    fn an_ip4_header_checks() {
        let source = Gid { bytes: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 1, 1], kind: GidKind::V2Ip4 };
        let (header, flags) = header(Some(source), &TO, 256);
        assert_eq!(internet_checksum(&header[20..]), 0);
        assert_eq!(flags, 1 << 28 | 2 << 24);
        assert_eq!(header[32..], [10, 1, 1, 1, 10, 1, 1, 2]);
    }

    #[test]
    fn without_a_source_gid_there_is_no_header() {
        assert_eq!(header(None, &TO, 8), ([0; HEADER], 0));
    }
}
