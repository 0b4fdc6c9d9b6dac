//! Where fields lie in the structures of the interface: bit offset from the start of the structure, and bits.
//!
//! Facts of `include/linux/mlx5/mlx5_ifc.h` of Linux (structure `mlx5_ifc_NAME_bits`, whose name stands at each table), which
//! describes the same interface as the public programmer's reference manual of the adapters. Only fields that the card uses.

use crate::bits::Field;

macro_rules! layout {
    ($(#[$about:meta])* $name:ident: $($field:ident = $offset:literal, $bits:literal;)*) => {
        $(#[$about])*
        pub mod $name {
            use super::Field;
            $(
                #[doc = concat!("Bit ", $offset, ", ", $bits, " bits.")]
                pub const $field: Field = Field::new($offset, $bits);
            )*
        }
    };
}

layout! {
    /// General capabilities (`cmd_hca_cap`).
    hca:
    LOG_MAX_SRQ_SZ = 128, 8;
    LOG_MAX_QP_SZ = 136, 8;
    LOG_MAX_QP = 155, 5;
    LOG_MAX_SRQ = 171, 5;
    LOG_MAX_CQ_SZ = 200, 8;
    LOG_MAX_CQ = 219, 5;
    LOG_MAX_EQ_SZ = 224, 8;
    LOG_MAX_MKEY = 234, 6;
    LOG_MAX_EQ = 252, 4;
    LOG_MAX_MRW_SZ = 265, 7;
    LOG_MAX_KLM_LIST_SIZE = 282, 6;
    LOG_MAX_RA_REQ_QP = 330, 6;
    LOG_MAX_RA_RES_QP = 346, 6;
    OUT_OF_SEQ_CNT = 384, 1;
    RETRANSMISSION_Q_COUNTERS = 386, 1;
    MAX_QP_CNT = 390, 10;
    IB_VIRT = 418, 1;
    NIC_FLOW_TABLE = 422, 1;
    LOCAL_CA_ACK_DELAY = 427, 5;
    PORT_TYPE = 438, 2;
    NUM_PORTS = 440, 8;
    LOG_MAX_MSG = 451, 5;
    MAX_TC = 460, 4;
    CQE_VERSION = 508, 4;
    COMPACT_ADDRESS_VECTOR = 512, 1;
    UMR_MODIFY_ENTITY_SIZE_DISABLED = 519, 1;
    UMR_MODIFY_ATOMIC_DISABLED = 520, 1;
    UMR_INDIRECT_MKEY_DISABLED = 521, 1;
    ETH_NET_OFFLOADS = 540, 1;
    ROCE = 541, 1;
    ATOMIC = 542, 1;
    CQ_MODERATION = 546, 1;
    BLOCK_LB_MC = 552, 1;
    QKV = 566, 1;
    PKV = 567, 1;
    XRC = 572, 1;
    UD = 573, 1;
    UC = 574, 1;
    RC = 575, 1;
    UAR_SZ = 586, 6;
    LOG_PG_SZ = 600, 8;
    LOG_BF_REG_SIZE = 619, 5;
    MAX_WQE_SZ_SQ = 656, 16;
    MAX_WQE_SZ_RQ = 688, 16;
    MAX_WQE_SZ_SQ_DC = 720, 16;
    MAX_QP_MCG = 743, 25;
    LOG_MAX_MCG = 792, 8;
    LOG_MAX_TRANSPORT_DOMAIN = 803, 5;
    LOG_MAX_PD = 811, 5;
    LOG_MAX_XRCD = 827, 5;
    LOG_MAX_RQ = 867, 5;
    LOG_MAX_SQ = 875, 5;
    LOG_MAX_TIR = 883, 5;
    LOG_MAX_TIS = 891, 5;
    BASIC_CYCLIC_RCV_WQE = 896, 1;
    LOG_MAX_RMP = 899, 5;
    LOG_MAX_RQT = 907, 5;
    LOG_MAX_RQT_SIZE = 915, 5;
    LOG_MAX_TIS_PER_SQ = 923, 5;
    LOG_MAX_STRIDE_SZ_RQ = 931, 5;
    LOG_MIN_STRIDE_SZ_RQ = 939, 5;
    LOG_MAX_STRIDE_SZ_SQ = 947, 5;
    LOG_MIN_STRIDE_SZ_SQ = 955, 5;
    LOG_MAX_WQ_SZ = 987, 5;
    LOG_MAX_VLAN_LIST = 1003, 5;
    LOG_MAX_CURRENT_MC_LIST = 1011, 5;
    LOG_MAX_CURRENT_UC_LIST = 1019, 5;
    MAX_NUM_EQS = 1136, 16;
    LOG_MAX_L2_TABLE = 1155, 5;
    DEVICE_FREQUENCY_KHZ = 1248, 32;
}

layout! {
    /// Capabilities of atomics (`atomic_caps`).
    atomic:
    ATOMIC_REQ_8B_ENDIANNESS_MODE = 64, 2;
    SUPPORTED_ATOMIC_REQ_8B_ENDIANNESS_MODE_1 = 70, 1;
    ATOMIC_OPERATIONS = 144, 16;
    ATOMIC_SIZE_QP = 176, 16;
}

layout! {
    /// Offloads of the network device (`per_protocol_networking_offload_caps`).
    offloads:
    CSUM_CAP = 0, 1;
    VLAN_CAP = 1, 1;
    WQE_VLAN_INSERT = 7, 1;
    SELF_LB_EN_MODIFIABLE = 8, 1;
    MAX_LSO_CAP = 11, 5;
    WQE_INLINE_MODE = 18, 2;
    RSS_IND_TBL_CAP = 20, 4;
}

layout! {
    /// Capabilities of RoCE (`roce_cap`).
    roce:
    L3_TYPE = 140, 4;
    ROCE_VERSION = 152, 8;
    R_ROCE_DEST_UDP_PORT = 176, 16;
    R_ROCE_MAX_SRC_UDP_PORT = 192, 16;
    R_ROCE_MIN_SRC_UDP_PORT = 208, 16;
    ROCE_ADDRESS_TABLE_SIZE = 240, 16;
}

layout! {
    /// Capabilities of flow tables (`flow_table_nic_cap`).
    flow_tables:
    FLOW_TABLE_PROPERTIES_NIC_RECEIVE = 512, 512;
}

layout! {
    /// Properties of one kind of flow table (`flow_table_prop_layout`).
    flow_table:
    FT_SUPPORT = 0, 1;
    FLOW_MODIFY_EN = 3, 1;
    MODIFY_ROOT = 4, 1;
    IDENTIFIED_MISS_TABLE_MODE = 5, 1;
    FLOW_TABLE_MODIFY = 6, 1;
    LOG_MAX_FT_SIZE = 34, 6;
    MAX_FT_LEVEL = 56, 8;
    LOG_MAX_FT_NUM = 120, 8;
    LOG_MAX_DESTINATION = 152, 8;
    LOG_MAX_FLOW = 184, 8;
}

layout! {
    /// Event queue context (`eqc`).
    eqc:
    PAGE_OFFSET = 84, 6;
    LOG_EQ_SIZE = 99, 5;
    INTR = 180, 12;
    LOG_PAGE_SIZE = 195, 5;
}

layout! {
    /// Completion queue context (`cqc`).
    cqc:
    CQE_SZ = 8, 3;
    OI = 14, 1;
    PAGE_OFFSET = 84, 6;
    LOG_CQ_SIZE = 99, 5;
    CQ_PERIOD = 132, 12;
    CQ_MAX_COUNT = 144, 16;
    C_EQN_OR_APU_ELEMENT = 160, 32;
    LOG_PAGE_SIZE = 195, 5;
    DBR_ADDR = 448, 64;
}

layout! {
    /// Queue pair context (`qpc`).
    qpc:
    STATE = 0, 4;
    ST = 8, 8;
    PM_STATE = 19, 2;
    PD = 40, 24;
    MTU = 64, 3;
    LOG_MSG_MAX = 67, 5;
    LOG_RQ_SIZE = 73, 4;
    LOG_RQ_STRIDE = 77, 3;
    NO_SQ = 80, 1;
    LOG_SQ_SIZE = 81, 4;
    COUNTER_SET_ID = 96, 8;
    USER_INDEX = 136, 24;
    LOG_PAGE_SIZE = 163, 5;
    REMOTE_QPN = 168, 24;
    PRIMARY_ADDRESS_PATH = 192, 352;
    LOG_SRA_MAX = 904, 3;
    RETRY_COUNT = 909, 3;
    RNR_RETRY = 912, 3;
    NEXT_SEND_PSN = 968, 24;
    CQN_SND = 1000, 24;
    LOG_RRA_MAX = 1160, 3;
    ATOMIC_MODE = 1164, 4;
    RRE = 1168, 1;
    RWE = 1169, 1;
    RAE = 1170, 1;
    PAGE_OFFSET = 1172, 6;
    MIN_RNR_NAK = 1187, 5;
    NEXT_RCV_PSN = 1192, 24;
    CQN_RCV = 1256, 24;
    DBR_ADDR = 1280, 64;
    Q_KEY = 1344, 32;
    RQ_TYPE = 1381, 3;
    SRQN_RMPN_XRQN = 1384, 24;
}

layout! {
    /// Memory key context (`mkc`).
    mkc:
    ACCESS_MODE_4_2 = 3, 3;
    A = 17, 1;
    RW = 18, 1;
    RR = 19, 1;
    LW = 20, 1;
    LR = 21, 1;
    ACCESS_MODE_1_0 = 22, 2;
    MKEY_7_0 = 56, 8;
    LENGTH64 = 96, 1;
    PD = 104, 24;
    START_ADDR = 128, 64;
    LEN = 192, 64;
    LOG_PAGE_SIZE = 474, 6;
}

layout! {
    /// CREATE_MKEY (`create_mkey_in`).
    create_mkey:
    TRANSLATIONS_OCTWORD_ACTUAL_SIZE = 768, 32;
}

layout! {
    /// Send queue context (`sqc`).
    sqc:
    USER_INDEX = 40, 24;
    CQN = 72, 24;
}

layout! {
    /// Work queue (`wq`).
    wq:
    PAGE_OFFSET = 43, 5;
    LWM = 48, 16;
    PD = 72, 24;
    DBR_ADDR = 128, 64;
    LOG_WQ_STRIDE = 268, 4;
    LOG_WQ_PG_SZ = 275, 5;
    LOG_WQ_SZ = 283, 5;
}

layout! {
    /// Port of an InfiniBand function (`hca_vport_context`).
    hca_vport:
    PORT_PHYSICAL_STATE = 272, 4;
    PORT_STATE = 280, 4;
    VPORT_STATE = 284, 4;
    SYSTEM_IMAGE_GUID = 320, 64;
    PORT_GUID = 384, 64;
    NODE_GUID = 448, 64;
    CAP_MASK1 = 512, 32;
    LID = 768, 16;
    SUBNET_TIMEOUT = 795, 5;
    SM_LID = 800, 16;
}

layout! {
    /// Port of an Ethernet function (`nic_vport_context`).
    nic_vport:
    ROCE_EN = 31, 1;
    MTU = 304, 16;
    SYSTEM_IMAGE_GUID = 320, 64;
    PORT_GUID = 384, 64;
    NODE_GUID = 448, 64;
    PERMANENT_ADDRESS = 1952, 64;
}

layout! {
    /// QUERY_VPORT_STATE (`query_vport_state_out`).
    vport_state:
    ADMIN_STATE = 120, 4;
    STATE = 124, 4;
}

layout! {
    /// QUERY_ISSI (`query_issi_out`).
    issi:
    SUPPORTED_ISSI_DW0 = 864, 32;
}

layout! {
    /// QUERY_SPECIAL_CONTEXTS (`query_special_contexts_out`).
    special_contexts:
    RESD_LKEY = 96, 32;
}

layout! {
    /// QUERY_HCA_VPORT_GID (`query_hca_vport_gid_out`).
    vport_gid:
    GIDS_NUM = 96, 16;
}

layout! {
    /// Register PTYS, port type and speed (`ptys_reg`).
    ptys:
    ETH_PROTO_CAPABILITY = 96, 32;
    IB_LINK_WIDTH_CAPABILITY = 128, 16;
    IB_PROTO_CAPABILITY = 144, 16;
    ETH_PROTO_ADMIN = 192, 32;
    ETH_PROTO_OPER = 288, 32;
    IB_LINK_WIDTH_OPER = 320, 16;
    IB_PROTO_OPER = 336, 16;
}

layout! {
    /// Register PMTU (`pmtu_reg`).
    pmtu:
    MAX_MTU = 32, 16;
    ADMIN_MTU = 64, 16;
    OPER_MTU = 96, 16;
}

layout! {
    /// Register PVLC, virtual lanes (`pvlc_reg`).
    pvlc:
    VL_HW_CAP = 60, 4;
    VL_ADMIN = 92, 4;
    VL_OPERATIONAL = 124, 4;
}

layout! {
    /// Address path of a queue pair (`ads`), within the queue pair context.
    path:
    RLID = 48, 16;
    ACK_TIMEOUT = 64, 5;
    RMAC_47_32 = 304, 16;
    RMAC_31_0 = 320, 32;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What programs that use the interface without these tables rely on: byte offsets of words in contexts.
    #[test]
    fn fields_lie_where_the_driver_puts_them() {
        for (field, byte) in [
            (cqc::DBR_ADDR, 56),
            (qpc::DBR_ADDR, 160),
            (qpc::Q_KEY, 168),
            (mkc::START_ADDR, 16),
            (mkc::LEN, 24),
            (wq::DBR_ADDR, 16),
            (hca::DEVICE_FREQUENCY_KHZ, 156),
            (hca_vport::PORT_GUID, 48),
        ] {
            assert_eq!(field.offset, byte * 8, "{field:?}");
            assert!(matches!(field.bits, 32 | 64));
        }
    }

    #[test]
    fn no_field_of_a_context_lies_over_another() {
        let fields = [
            qpc::STATE,
            qpc::ST,
            qpc::PD,
            qpc::MTU,
            qpc::LOG_MSG_MAX,
            qpc::LOG_RQ_SIZE,
            qpc::LOG_RQ_STRIDE,
            qpc::NO_SQ,
            qpc::LOG_SQ_SIZE,
            qpc::USER_INDEX,
            qpc::LOG_PAGE_SIZE,
            qpc::REMOTE_QPN,
            qpc::PRIMARY_ADDRESS_PATH,
            qpc::LOG_SRA_MAX,
            qpc::RETRY_COUNT,
            qpc::RNR_RETRY,
            qpc::NEXT_SEND_PSN,
            qpc::CQN_SND,
            qpc::LOG_RRA_MAX,
            qpc::RRE,
            qpc::RWE,
            qpc::RAE,
            qpc::PAGE_OFFSET,
            qpc::MIN_RNR_NAK,
            qpc::NEXT_RCV_PSN,
            qpc::CQN_RCV,
            qpc::DBR_ADDR,
            qpc::Q_KEY,
            qpc::RQ_TYPE,
            qpc::SRQN_RMPN_XRQN,
        ];
        let ends = |pair: &[Field]| pair[0].offset + pair[0].bits <= pair[1].offset;
        assert!(fields.windows(2).all(ends));
    }
}
