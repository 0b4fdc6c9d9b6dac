//! Every command that the card has. Anything else is answered with "bad operation".

use super::{Command, accept, ethernet, hca, number, objects, port, queue_pair};

/// The command of an opcode.
pub fn find(opcode: u16) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.opcode == opcode)
}

macro_rules! commands {
    ($($opcode:literal $name:ident $run:path;)*) => {
        /// Opcode and name as in `include/linux/mlx5/mlx5_ifc.h` (`MLX5_CMD_OP_*`).
        pub const COMMANDS: &[Command] = &[$(Command { opcode: $opcode, name: stringify!($name), run: $run }),*];
    };
}

commands! {
    0x100 QUERY_HCA_CAP hca::query_capabilities;
    0x101 QUERY_ADAPTER hca::query_adapter;
    0x102 INIT_HCA accept;
    0x103 TEARDOWN_HCA accept;
    0x104 ENABLE_HCA accept;
    0x105 DISABLE_HCA accept;
    // The card wants none of the guest's pages: the answer is zero.
    0x107 QUERY_PAGES accept;
    0x108 MANAGE_PAGES accept;
    0x109 SET_HCA_CAP hca::set_capabilities;
    0x10a QUERY_ISSI hca::query_issi;
    0x10b SET_ISSI accept;
    0x10d SET_DRIVER_VERSION accept;
    0x200 CREATE_MKEY objects::create_mkey;
    0x202 DESTROY_MKEY objects::destroy_mkey;
    0x203 QUERY_SPECIAL_CONTEXTS hca::query_special_contexts;
    0x301 CREATE_EQ objects::create_eq;
    0x302 DESTROY_EQ objects::destroy_eq;
    0x400 CREATE_CQ objects::create_cq;
    0x401 DESTROY_CQ objects::destroy_cq;
    0x403 MODIFY_CQ objects::modify_cq;
    0x500 CREATE_QP queue_pair::create;
    0x501 DESTROY_QP queue_pair::destroy;
    0x502 RST2INIT_QP queue_pair::reset_to_init;
    0x503 INIT2RTR_QP queue_pair::init_to_receive;
    0x504 RTR2RTS_QP queue_pair::receive_to_send;
    0x505 RTS2RTS_QP queue_pair::change;
    0x507 TO_ERR_QP queue_pair::to_error;
    0x50a TO_RST_QP queue_pair::to_reset;
    0x50b QUERY_QP queue_pair::query;
    0x50d MAD_IFC port::management_datagram;
    0x50e INIT2INIT_QP queue_pair::change;
    0x703 ARM_RQ objects::arm_receives;
    0x705 CREATE_XRC_SRQ number;
    0x706 DESTROY_XRC_SRQ accept;
    0x750 QUERY_VPORT_STATE port::query_vport_state;
    0x751 MODIFY_VPORT_STATE accept;
    0x754 QUERY_NIC_VPORT_CONTEXT port::query_nic_vport;
    0x755 MODIFY_NIC_VPORT_CONTEXT accept;
    0x761 SET_ROCE_ADDRESS port::set_roce_address;
    0x762 QUERY_HCA_VPORT_CONTEXT port::query_hca_vport;
    0x763 MODIFY_HCA_VPORT_CONTEXT accept;
    0x764 QUERY_HCA_VPORT_GID port::query_gid;
    0x765 QUERY_HCA_VPORT_PKEY port::query_pkey;
    // Every counter of traffic is zero.
    0x770 QUERY_VPORT_COUNTER accept;
    0x771 ALLOC_Q_COUNTER port::alloc_q_counter;
    0x772 DEALLOC_Q_COUNTER accept;
    0x773 QUERY_Q_COUNTER port::query_q_counter;
    0x800 ALLOC_PD number;
    0x801 DEALLOC_PD accept;
    0x802 ALLOC_UAR objects::alloc_uar;
    0x803 DEALLOC_UAR objects::dealloc_uar;
    0x805 ACCESS_REG port::access_register;
    // Multicast groups are not delivered to.
    0x806 ATTACH_TO_MCG accept;
    0x807 DETACH_FROM_MCG accept;
    0x80e ALLOC_XRCD number;
    0x80f DEALLOC_XRCD accept;
    0x816 ALLOC_TRANSPORT_DOMAIN number;
    0x817 DEALLOC_TRANSPORT_DOMAIN accept;
    0x829 SET_L2_TABLE_ENTRY accept;
    0x82b DELETE_L2_TABLE_ENTRY accept;
    // The network device: its queues and tables have numbers, frames go nowhere.
    0x900 CREATE_TIR number;
    0x901 MODIFY_TIR accept;
    0x902 DESTROY_TIR accept;
    0x904 CREATE_SQ ethernet::create_sq;
    0x905 MODIFY_SQ accept;
    0x906 DESTROY_SQ queue_pair::destroy;
    0x908 CREATE_RQ number;
    0x909 MODIFY_RQ accept;
    0x90a DESTROY_RQ accept;
    0x90c CREATE_RMP objects::create_rmp;
    0x90d MODIFY_RMP objects::modify_rmp;
    0x90e DESTROY_RMP objects::destroy_rmp;
    0x90f QUERY_RMP objects::query_rmp;
    0x912 CREATE_TIS number;
    0x913 MODIFY_TIS accept;
    0x914 DESTROY_TIS accept;
    0x916 CREATE_RQT number;
    0x917 MODIFY_RQT accept;
    0x918 DESTROY_RQT accept;
    0x92f SET_FLOW_TABLE_ROOT accept;
    0x930 CREATE_FLOW_TABLE number;
    0x931 DESTROY_FLOW_TABLE accept;
    0x933 CREATE_FLOW_GROUP number;
    0x934 DESTROY_FLOW_GROUP accept;
    0x936 SET_FLOW_TABLE_ENTRY accept;
    0x938 DELETE_FLOW_TABLE_ENTRY accept;
    0x939 ALLOC_FLOW_COUNTER number;
    0x93a DEALLOC_FLOW_COUNTER accept;
    0x93b QUERY_FLOW_COUNTER accept;
    0x93c MODIFY_FLOW_TABLE accept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_rise() {
        assert!(COMMANDS.is_sorted_by(|one, next| one.opcode < next.opcode));
    }
}
