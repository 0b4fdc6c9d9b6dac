//! Commands about the port: state, addresses, counters, registers.

use super::super::layout::{hca_vport, nic_vport, pmtu, ptys, pvlc, vport_gid, vport_state};
use super::{Answer, Function, Status, put_context};
use crate::bits::{be16, be32, put, put32, set_all};
use crate::engine::datagram::{Gid, GidKind};
use crate::engine::message::{MAC_PREFIX, lid_of};

/// GUID of function 0; each further function's is 16 more.
const FIRST_GUID: u64 = 0x0c42_a103_0077_7700;
/// Port states of InfiniBand: physical link up, active; down.
const PHYSICAL_UP: u64 = 5;
const PHYSICAL_POLLING: u64 = 2;
const ACTIVE: u64 = 4;
const DOWN: u64 = 1;
/// Capabilities of the port as the subnet manager of a switchless fabric would see them.
const PORT_CAPABILITIES: u64 = 0x2651_e848;
/// Asks for a whole table instead of one entry.
const ALL: u32 = 0xffff;
/// Every partition key: the default one, full member.
const PARTITION: u32 = 0xffff;
/// The set of counters that every queue pair counts into.
const COUNTER_SET: u32 = 1;
const ETHERNET_MTU: u64 = 1522;
const LARGEST_ETHERNET_MTU: u64 = 9978;
const INFINIBAND_MTU: u64 = 4096;

fn guid(function: usize) -> u64 {
    FIRST_GUID + function as u64 * 16
}

fn mac(function: usize) -> u64 {
    MAC_PREFIX.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)) << 8 | function as u64
}

pub fn query_hca_vport(function: &mut Function, _: &[u8], output: &mut [u8]) -> Answer {
    let (index, is_up) = (function.index(), function.engine.is_up);
    set_all(
        &mut output[16..],
        &[
            (hca_vport::PORT_PHYSICAL_STATE, if is_up { PHYSICAL_UP } else { PHYSICAL_POLLING }),
            (hca_vport::PORT_STATE, if is_up { ACTIVE } else { DOWN }),
            (hca_vport::VPORT_STATE, if is_up { ACTIVE } else { DOWN }),
            (hca_vport::SYSTEM_IMAGE_GUID, guid(index)),
            (hca_vport::PORT_GUID, guid(index) + 1),
            (hca_vport::NODE_GUID, guid(index)),
            (hca_vport::CAP_MASK1, PORT_CAPABILITIES),
            (hca_vport::LID, lid_of(index).into()),
            (hca_vport::SM_LID, 1),
            (hca_vport::SUBNET_TIMEOUT, 18),
        ],
    );
    Ok(String::new())
}

/// The link-local GID, the only one of an InfiniBand port.
pub fn query_gid(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    const LINK_LOCAL: u64 = 0xfe80 << 48;
    vport_gid::GIDS_NUM.set(output, 1);
    if matches!(be32(input, 12) & 0xffff, 0 | ALL) {
        put(output, 16, &LINK_LOCAL.to_be_bytes());
        put(output, 24, &(guid(function.index()) + 1).to_be_bytes());
    }
    Ok(String::new())
}

pub fn query_pkey(_: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    if matches!(be32(input, 12) & 0xffff, 0 | ALL) {
        put32(output, 16, PARTITION);
    }
    Ok(String::new())
}

pub fn query_vport_state(function: &mut Function, _: &[u8], output: &mut [u8]) -> Answer {
    vport_state::STATE.set(output, function.engine.is_up.into());
    vport_state::ADMIN_STATE.set(output, 1);
    Ok(String::new())
}

pub fn query_nic_vport(function: &mut Function, _: &[u8], output: &mut [u8]) -> Answer {
    let index = function.index();
    set_all(
        &mut output[16..],
        &[
            (nic_vport::ROCE_EN, 1),
            (nic_vport::MTU, ETHERNET_MTU),
            (nic_vport::SYSTEM_IMAGE_GUID, guid(index)),
            (nic_vport::PORT_GUID, guid(index) + 1),
            (nic_vport::NODE_GUID, guid(index)),
            (nic_vport::PERMANENT_ADDRESS, mac(index)),
        ],
    );
    Ok(String::new())
}

/// A GID of the table (`roce_addr_layout` of 32 bytes); all zeros take it away.
pub fn set_roce_address(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    let index = u32::from(be16(input, 8));
    let address = input.get(16..48).ok_or(Status::BadParameter)?;
    let bytes: [u8; 16] = address[..16].try_into().map_err(|_| Status::BadParameter)?;
    let (network, version) = (address[26] & 0xf, address[27]);
    if bytes == [0; 16] {
        function.engine.gids.remove(&index);
        return Ok(format!("gid {index}: none"));
    }
    let kind = match (version, network) {
        (2, 0) => GidKind::V2Ip4,
        (2, _) => GidKind::V2Ip6,
        _ => GidKind::V1,
    };
    function.engine.gids.insert(index, Gid { bytes, kind });
    Ok(format!("gid {index}: {kind:?}"))
}

pub fn alloc_q_counter(_: &mut Function, _: &[u8], output: &mut [u8]) -> Answer {
    put32(output, 8, COUNTER_SET);
    Ok(String::new())
}

/// One set of counters for all queue pairs. Bytes as in `query_q_counter_out`.
pub fn query_q_counter(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    const CLEAR: u32 = 1 << 31;
    let counters = function.engine.counters;
    for (at, value) in [
        (16, counters.write_requests),
        (24, counters.read_requests),
        (32, counters.atomic_requests),
        (48, counters.out_of_buffer),
        (56, counters.out_of_sequence),
        (64, counters.duplicate_request),
        (72, counters.rnr_nak_retry),
        (80, counters.packet_sequence_error),
        (88, counters.implied_nak),
        (96, counters.ack_timeout),
    ] {
        put32(output, at, value);
    }
    if be32(input, 24) & CLEAR != 0 {
        function.engine.counters = crate::engine::Counters::default();
    }
    Ok(String::new())
}

/// A management datagram of the driver to its own port: the node's description is known, everything else is "not supported".
pub fn management_datagram(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    const DATAGRAM: usize = 256;
    const NODE_DESCRIPTION: u16 = 0x0010;
    const NOT_SUPPORTED: u16 = 0x000c;
    const RESPONSE: u8 = 0x80;
    let mut datagram = input.get(16..16 + DATAGRAM).ok_or(Status::BadParameter)?.to_vec();
    let (class, attribute) = (datagram[1], be16(&datagram, 16));
    datagram[3] |= RESPONSE;
    if attribute == NODE_DESCRIPTION {
        put(&mut datagram, 64, &node_description(function));
    } else {
        put(&mut datagram, 4, &NOT_SUPPORTED.to_be_bytes());
    }
    put_context(output, 16, &datagram);
    Ok(format!("class {class:#x}, attribute {attribute:#x}"))
}

/// What the node calls itself.
fn node_description(function: &Function) -> [u8; 64] {
    let mut description = [0; 64];
    put(&mut description, 0, format!("rdmascope emulated card {}", function.index()).as_bytes());
    description
}

/// Registers that the card has; reading fills them, writing is accepted.
pub fn access_register(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    let register = be32(input, 8) & 0xffff;
    let is_read = be32(input, 4) & 1 == 1;
    let length = input.len().min(output.len()) - 16;
    put(output, 16, &input[16..16 + length]);
    let data = &mut output[16..];
    match (register, function.is_ethernet()) {
        (registers::PTYS, true) => {
            const GBASE_100: u64 = 1 << 20;
            set_all(
                data,
                &[(ptys::ETH_PROTO_CAPABILITY, GBASE_100), (ptys::ETH_PROTO_ADMIN, GBASE_100), (ptys::ETH_PROTO_OPER, GBASE_100)],
            );
        }
        (registers::PTYS, false) => {
            const FOUR_LANES: u64 = 2;
            const EDR: u64 = 0x20;
            set_all(
                data,
                &[
                    (ptys::IB_LINK_WIDTH_CAPABILITY, FOUR_LANES),
                    (ptys::IB_PROTO_CAPABILITY, 0x3f),
                    (ptys::IB_LINK_WIDTH_OPER, FOUR_LANES),
                    (ptys::IB_PROTO_OPER, EDR),
                ],
            );
        }
        (registers::PMTU, is_ethernet) => {
            let (largest, now) = if is_ethernet { (LARGEST_ETHERNET_MTU, ETHERNET_MTU) } else { (INFINIBAND_MTU, INFINIBAND_MTU) };
            set_all(data, &[(pmtu::MAX_MTU, largest), (pmtu::OPER_MTU, now), (pmtu::ADMIN_MTU, now)]);
        }
        (registers::PVLC, _) => {
            const EIGHT_LANES: u64 = 4;
            set_all(data, &[(pvlc::VL_HW_CAP, EIGHT_LANES), (pvlc::VL_ADMIN, EIGHT_LANES), (pvlc::VL_OPERATIONAL, EIGHT_LANES)]);
        }
        (registers::NODE_DESCRIPTION, _) if is_read => put(data, 0, &node_description(function)),
        (registers::HOST_ENDIANNESS | registers::NODE_DESCRIPTION | registers::PAOS | registers::PFCC | registers::PPCNT, _) => {}
        _ => return Err(Status::BadParameter),
    }
    Ok(format!("register {register:#x}, {}", if is_read { "read" } else { "write" }))
}

/// Registers (`MLX5_REG_*`).
mod registers {
    pub const PMTU: u32 = 0x5003;
    pub const PTYS: u32 = 0x5004;
    /// State that the administrator wants; taken as it is written.
    pub const PAOS: u32 = 0x5006;
    /// Pause frames; all off.
    pub const PFCC: u32 = 0x5007;
    /// Counters of the physical port; all zero.
    pub const PPCNT: u32 = 0x5008;
    pub const PVLC: u32 = 0x500f;
    pub const NODE_DESCRIPTION: u32 = 0x6001;
    pub const HOST_ENDIANNESS: u32 = 0x7004;
}
