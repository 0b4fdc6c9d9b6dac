//! The only place that touches libibverbs, raw memory and the system calls of a measured thread.
//!
//! Every handle here owns its C object, is never null, keeps its parents alive by `Arc` and destroys itself on drop. The functions are safe
//! to call; what they report is the plain `io::Error` of the call. Meaning, parameters and causes are added by the modules around it.
mod context;
mod cq;
mod mr;
mod qp;

pub(crate) mod memory;
pub(crate) mod os;

pub(super) use context::RawContext;
pub(super) use cq::{RawChannel, RawCq, WcArray};
pub(super) use mr::{RawMr, RawPd};
pub(super) use qp::{RawQp, RawRecvWr, RawSendWr};

/// The names of rdma-sys that are used, all of them; nothing else in the project imports that crate.
///
/// `___ibv_query_port` is the real call: the plain name is an old compatibility symbol that fills a shorter structure.
pub(super) mod sys {
    pub(in crate::verbs) use rdma_sys::{
        ___ibv_query_port, ibv_access_flags, ibv_ack_cq_events, ibv_alloc_pd, ibv_atomic_cap, ibv_close_device, ibv_comp_channel,
        ibv_context, ibv_cq, ibv_create_comp_channel, ibv_create_cq, ibv_create_qp, ibv_dealloc_pd, ibv_dereg_mr, ibv_destroy_comp_channel,
        ibv_destroy_cq, ibv_destroy_qp, ibv_device, ibv_device_attr, ibv_free_device_list, ibv_get_cq_event, ibv_get_device_list,
        ibv_get_device_name, ibv_gid, ibv_global_route, ibv_modify_qp, ibv_mr, ibv_open_device, ibv_pd, ibv_poll_cq, ibv_port_attr,
        ibv_post_recv, ibv_post_send, ibv_qp, ibv_qp_attr, ibv_qp_attr_mask, ibv_qp_cap, ibv_qp_init_attr, ibv_qp_state, ibv_qp_type,
        ibv_query_device, ibv_query_qp, ibv_recv_wr, ibv_reg_mr, ibv_req_notify_cq, ibv_send_flags, ibv_send_wr, ibv_sge, ibv_wc,
        ibv_wr_opcode,
    };
    // Types of the unions inside a send work request.
    pub(in crate::verbs) use rdma_sys::{atomic_t, rdma_t};
}

/// The last completion status that the header this was built with has.
#[cfg(test)]
pub(super) const LAST_WC_STATUS: u32 = rdma_sys::ibv_wc_status::IBV_WC_TM_RNDV_INCOMPLETE;

/// The return value of a verb that gives 0, an errno value, or -1 with errno set.
fn check(ret: i32) -> std::io::Result<()> {
    match ret {
        0 => Ok(()),
        code if code > 0 => Err(std::io::Error::from_raw_os_error(code)),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// What a drop can still do about a failed destroy: say it. It must never panic.
fn report_leak(what: &str, result: std::io::Result<()>) {
    if let Err(error) = result {
        eprintln!("rdmascope: {what} could not be destroyed and stays until the process ends: {error}");
    }
}
