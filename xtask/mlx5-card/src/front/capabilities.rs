//! What the function says that it can do (QUERY_HCA_CAP), and what the driver chose of it (SET_HCA_CAP).

use super::layout::{atomic, flow_table, flow_tables, hca, offloads, roce};
use crate::bits::set_all;
use crate::oracle::CLOCK_KHZ;
use std::collections::BTreeMap;

/// Bytes of a group of capabilities.
const GROUP: usize = 4096;

/// Groups (`enum mlx5_cap_type`).
pub mod group {
    /// General.
    pub const GENERAL: u32 = 0;
    /// Offloads of the network device.
    pub const OFFLOADS: u32 = 1;
    /// Atomics.
    pub const ATOMIC: u32 = 3;
    /// RoCE.
    pub const ROCE: u32 = 4;
    /// Flow tables.
    pub const FLOW_TABLES: u32 = 7;
}

/// The groups that the function has; the others are all zeros, which means that it has nothing of them.
#[derive(Debug, Clone)]
pub struct Capabilities {
    groups: BTreeMap<u32, Vec<u8>>,
}

impl Capabilities {
    /// Those of an InfiniBand or an Ethernet function.
    pub fn new(is_ethernet: bool) -> Self {
        let mut groups = BTreeMap::from([(group::GENERAL, general()), (group::ATOMIC, atomics())]);
        if is_ethernet {
            set_all(groups.entry(group::GENERAL).or_default(), ETHERNET);
            groups.insert(group::OFFLOADS, filled(OFFLOADS));
            groups.insert(group::ROCE, filled(ROCE));
            groups.insert(group::FLOW_TABLES, receive_flow_tables());
        }
        Self { groups }
    }

    /// A group, where there is one.
    pub fn group(&self, number: u32) -> Option<&[u8]> {
        self.groups.get(&number).map(Vec::as_slice)
    }

    /// The driver's choice. Of the atomics it is one field, of the general ones it may be any.
    pub fn choose(&mut self, number: u32, chosen: &[u8]) {
        let Some(group) = self.groups.get_mut(&number) else { return };
        match number {
            group::ATOMIC => atomic::ATOMIC_REQ_8B_ENDIANNESS_MODE.copy(chosen, group),
            group::GENERAL => {
                let length = chosen.len().min(256);
                group[..length].copy_from_slice(&chosen[..length]);
            }
            _ => {}
        }
    }
}

fn filled(values: &[(crate::bits::Field, u64)]) -> Vec<u8> {
    let mut bytes = vec![0; GROUP];
    set_all(&mut bytes, values);
    bytes
}

fn general() -> Vec<u8> {
    filled(&[
        (hca::LOG_MAX_SRQ_SZ, 15),
        (hca::LOG_MAX_QP_SZ, 15),
        (hca::LOG_MAX_QP, 17),
        (hca::LOG_MAX_SRQ, 16),
        (hca::LOG_MAX_CQ_SZ, 22),
        (hca::LOG_MAX_CQ, 16),
        (hca::LOG_MAX_EQ_SZ, 22),
        (hca::LOG_MAX_MKEY, 22),
        (hca::LOG_MAX_EQ, 7),
        (hca::LOG_MAX_MRW_SZ, 63),
        (hca::LOG_MAX_KLM_LIST_SIZE, 16),
        (hca::LOG_MAX_RA_REQ_QP, 4),
        (hca::LOG_MAX_RA_RES_QP, 4),
        (hca::OUT_OF_SEQ_CNT, 1),
        (hca::RETRANSMISSION_Q_COUNTERS, 1),
        (hca::MAX_QP_CNT, 64),
        (hca::IB_VIRT, 1),
        (hca::PORT_TYPE, 0),
        (hca::NUM_PORTS, 1),
        (hca::LOG_MAX_MSG, 30),
        (hca::XRC, 1),
        (hca::UD, 1),
        (hca::UC, 1),
        (hca::RC, 1),
        (hca::ATOMIC, 1),
        (hca::CQ_MODERATION, 1),
        (hca::UAR_SZ, 5),
        (hca::LOG_PG_SZ, 12),
        (hca::LOG_BF_REG_SIZE, 9),
        (hca::MAX_WQE_SZ_SQ, 1024),
        (hca::MAX_WQE_SZ_RQ, 512),
        (hca::MAX_WQE_SZ_SQ_DC, 1024),
        (hca::LOG_MAX_PD, 23),
        (hca::LOG_MAX_XRCD, 23),
        (hca::LOG_MAX_TRANSPORT_DOMAIN, 23),
        // The kernel then registers memory by CREATE_MKEY alone, never by a work request.
        (hca::UMR_MODIFY_ENTITY_SIZE_DISABLED, 1),
        (hca::UMR_INDIRECT_MKEY_DISABLED, 1),
        (hca::UMR_MODIFY_ATOMIC_DISABLED, 1),
        (hca::CQE_VERSION, 1),
        (hca::COMPACT_ADDRESS_VECTOR, 1),
        (hca::PKV, 1),
        (hca::QKV, 1),
        (hca::BLOCK_LB_MC, 1),
        (hca::LOCAL_CA_ACK_DELAY, 16),
        (hca::DEVICE_FREQUENCY_KHZ, CLOCK_KHZ),
        (hca::LOG_MAX_RMP, 16),
        (hca::LOG_MAX_MCG, 13),
        (hca::MAX_QP_MCG, 240),
        (hca::MAX_NUM_EQS, 64),
        (hca::LOG_MAX_STRIDE_SZ_RQ, 13),
        (hca::LOG_MIN_STRIDE_SZ_RQ, 4),
        (hca::LOG_MAX_WQ_SZ, 15),
    ])
}

/// What an Ethernet function has beside or instead.
const ETHERNET: &[(crate::bits::Field, u64)] = &[
    (hca::PORT_TYPE, 1),
    (hca::IB_VIRT, 0),
    (hca::ETH_NET_OFFLOADS, 1),
    (hca::NIC_FLOW_TABLE, 1),
    (hca::ROCE, 1),
    (hca::LOG_MAX_RQ, 16),
    (hca::LOG_MAX_SQ, 16),
    (hca::LOG_MAX_TIR, 16),
    (hca::LOG_MAX_TIS, 16),
    (hca::LOG_MAX_RQT, 16),
    (hca::LOG_MAX_RQT_SIZE, 8),
    (hca::BASIC_CYCLIC_RCV_WQE, 1),
    (hca::LOG_MAX_CURRENT_UC_LIST, 7),
    (hca::LOG_MAX_CURRENT_MC_LIST, 7),
    (hca::LOG_MAX_VLAN_LIST, 7),
    (hca::LOG_MAX_L2_TABLE, 7),
    (hca::MAX_TC, 1),
    (hca::LOG_MAX_TIS_PER_SQ, 3),
    (hca::LOG_MAX_STRIDE_SZ_SQ, 6),
    (hca::LOG_MIN_STRIDE_SZ_SQ, 6),
];

const OFFLOADS: &[(crate::bits::Field, u64)] = &[
    (offloads::CSUM_CAP, 1),
    (offloads::VLAN_CAP, 1),
    (offloads::MAX_LSO_CAP, 18),
    (offloads::RSS_IND_TBL_CAP, 8),
    (offloads::SELF_LB_EN_MODIFIABLE, 1),
    (offloads::WQE_INLINE_MODE, 2),
    (offloads::WQE_VLAN_INSERT, 1),
];

/// RoCE v1 and v2 over IPv4 and IPv6: bits 1 and 2 of the network headers, bits 0 and 2 of the versions.
const ROCE: &[(crate::bits::Field, u64)] = &[
    (roce::L3_TYPE, 0b110),
    (roce::ROCE_VERSION, 0b101),
    (roce::R_ROCE_DEST_UDP_PORT, 4791),
    (roce::R_ROCE_MAX_SRC_UDP_PORT, 0xffff),
    (roce::R_ROCE_MIN_SRC_UDP_PORT, 0xc000),
    (roce::ROCE_ADDRESS_TABLE_SIZE, 32),
];

/// Compare and swap, and fetch and add (bits 0 and 1), of 8 bytes; answers in the host's byte order can be chosen.
fn atomics() -> Vec<u8> {
    filled(&[(atomic::SUPPORTED_ATOMIC_REQ_8B_ENDIANNESS_MODE_1, 1), (atomic::ATOMIC_OPERATIONS, 0b11), (atomic::ATOMIC_SIZE_QP, 8)])
}

fn receive_flow_tables() -> Vec<u8> {
    let properties = [
        (flow_table::FT_SUPPORT, 1),
        (flow_table::FLOW_MODIFY_EN, 1),
        (flow_table::MODIFY_ROOT, 1),
        (flow_table::IDENTIFIED_MISS_TABLE_MODE, 1),
        (flow_table::FLOW_TABLE_MODIFY, 1),
        (flow_table::LOG_MAX_FT_SIZE, 20),
        (flow_table::MAX_FT_LEVEL, 64),
        (flow_table::LOG_MAX_FT_NUM, 12),
        (flow_table::LOG_MAX_DESTINATION, 6),
        (flow_table::LOG_MAX_FLOW, 20),
    ];
    let base = flow_tables::FLOW_TABLE_PROPERTIES_NIC_RECEIVE.offset;
    filled(&properties.map(|(field, value)| (field.within(base), value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_chooses_the_byte_order_of_atomics_and_nothing_else_of_them() {
        let mut capabilities = Capabilities::new(false);
        capabilities.choose(group::ATOMIC, &[0xff; 64]);
        let group = capabilities.group(group::ATOMIC).unwrap();
        assert_eq!(atomic::ATOMIC_REQ_8B_ENDIANNESS_MODE.get(group), 3);
        assert_eq!(atomic::ATOMIC_OPERATIONS.get(group), 3);
    }

    #[test]
    fn an_ethernet_function_has_roce_and_an_infiniband_function_has_not() {
        assert!(Capabilities::new(true).group(group::ROCE).is_some());
        let infiniband = Capabilities::new(false);
        assert!(infiniband.group(group::ROCE).is_none());
        assert_eq!(hca::IB_VIRT.get(infiniband.group(group::GENERAL).unwrap()), 1);
    }
}
