//! Queue pair: creation, the way RESET → INIT → RTR → RTS, reading its state back, posts.
use super::cq::Cq;
use super::device::mtu_code_from_bytes;
use super::error::{VerbsError, create_cause, modify_cause, post_cause};
use super::ffi::{RawQp, sys};
use super::mr::{Access, Pd};
use super::wr::{RecvWr, SendWr};
use crate::machine::Gid;
use capture::Transport;
use std::io;
use std::time::{Duration, Instant};

/// The type that the device knows a transport by.
fn qp_type(transport: Transport) -> sys::ibv_qp_type::Type {
    match transport {
        Transport::Rc => sys::ibv_qp_type::IBV_QPT_RC,
    }
}

/// Capacities of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpCaps {
    /// Outstanding send WRs.
    pub send_wr: u32,
    /// Outstanding receive WRs.
    pub recv_wr: u32,
    /// Bytes that can be sent inline.
    pub inline_bytes: u32,
}

/// State of a queue pair (`enum ibv_qp_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpState(u32);

impl QpState {
    /// Ready to send.
    pub const RTS: Self = Self(sys::ibv_qp_state::IBV_QPS_RTS);
    /// Error: everything posted is flushed.
    pub const ERR: Self = Self(sys::ibv_qp_state::IBV_QPS_ERR);
}

impl std::fmt::Display for QpState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"];
        f.write_str(names.get(self.0 as usize).unwrap_or(&"UNKNOWN"))
    }
}

/// How a queue pair reaches its peer, and its timers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Port used, from 1.
    pub port: u8,
    /// Index of our GID.
    pub gid_index: u8,
    /// The peer's GID.
    pub remote_gid: Gid,
    /// The peer's LID (InfiniBand).
    pub remote_lid: u16,
    /// True on RoCE, or across InfiniBand subnets: packets carry GIDs.
    pub global: bool,
    /// The peer's queue pair.
    pub remote_qpn: u32,
    /// First packet sequence number of the peer.
    pub remote_psn: u32,
    /// Our first packet sequence number.
    pub local_psn: u32,
    /// Path MTU, bytes.
    pub mtu_bytes: u32,
    /// READs and atomics that we may have outstanding.
    pub initiator_reads: u8,
    /// READs and atomics of the peer that we take at once.
    pub responder_reads: u8,
    /// Acknowledge timeout: 4.096 µs · 2^timeout; 0 waits for ever.
    pub timeout: u8,
    /// Retries after a timeout, 0 to 7.
    pub retry: u8,
    /// Retries when the peer has no receive; 7 is for ever.
    pub rnr_retry: u8,
    /// Code of the time that a peer is asked to wait when there is no receive (12 is 0.64 ms).
    pub rnr_timer: u8,
}

/// A queue pair.
pub struct Qp {
    raw: RawQp,
    caps: QpCaps,
}

impl Qp {
    /// Creates a queue pair in RESET. The capacities may come out larger than asked for.
    pub fn create(pd: &Pd, send_cq: &Cq, recv_cq: &Cq, transport: Transport, caps: QpCaps) -> Result<Self, VerbsError> {
        let device = pd.device();
        let limits = device.limits();
        for (what, asked) in [("Send queue depth", caps.send_wr), ("Receive queue depth", caps.recv_wr)] {
            if asked > limits.max_qp_wr {
                return Err(device.over_limit(what, u64::from(asked), "max_qp_wr", u64::from(limits.max_qp_wr)));
            }
        }
        let mut cap = sys::ibv_qp_cap {
            max_send_wr: caps.send_wr,
            max_recv_wr: caps.recv_wr,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: caps.inline_bytes,
        };
        let raw = RawQp::create(&pd.raw, &send_cq.0, &recv_cq.0, qp_type(transport), &mut cap).map_err(|source| VerbsError::CreateQp {
            device: device.name().into(),
            asked: format!("{} send WRs, {} receive WRs, {} inline bytes", caps.send_wr, caps.recv_wr, caps.inline_bytes),
            limits: format!("max_qp_wr {}, max_sge {}", limits.max_qp_wr, limits.max_sge),
            cause: create_cause(&source),
            source,
        })?;
        let caps = QpCaps { send_wr: cap.max_send_wr, recv_wr: cap.max_recv_wr, inline_bytes: cap.max_inline_data };
        Ok(Self { raw, caps })
    }

    /// Queue pair number.
    pub fn number(&self) -> u32 {
        self.raw.number()
    }

    /// What the device gave.
    pub fn caps(&self) -> QpCaps {
        self.caps
    }

    /// RESET → INIT: port and the rights of the peer. From here receives can be posted.
    pub fn to_init(&self, port: u8, access: Access) -> Result<(), VerbsError> {
        use sys::ibv_qp_attr_mask as mask;
        let mut attr = RawQp::zeroed_attr();
        attr.qp_state = sys::ibv_qp_state::IBV_QPS_INIT;
        attr.port_num = port;
        attr.qp_access_flags = access.flags();
        let fields = mask::IBV_QP_STATE | mask::IBV_QP_PKEY_INDEX | mask::IBV_QP_PORT | mask::IBV_QP_ACCESS_FLAGS;
        self.modify("INIT", &mut attr, fields, || format!("port {port}, {access:?}"))
    }

    /// INIT → RTR: the path to the peer. Receives must have been posted before.
    pub fn to_rtr(&self, route: &Route) -> Result<(), VerbsError> {
        use sys::ibv_qp_attr_mask as mask;
        let mut attr = RawQp::zeroed_attr();
        attr.qp_state = sys::ibv_qp_state::IBV_QPS_RTR;
        attr.path_mtu = mtu_code_from_bytes(route.mtu_bytes).unwrap_or(0);
        attr.dest_qp_num = route.remote_qpn;
        attr.rq_psn = route.remote_psn;
        attr.max_dest_rd_atomic = route.responder_reads;
        attr.min_rnr_timer = route.rnr_timer;
        attr.ah_attr.port_num = route.port;
        attr.ah_attr.dlid = route.remote_lid;
        if route.global {
            attr.ah_attr.is_global = 1;
            attr.ah_attr.grh = sys::ibv_global_route {
                dgid: sys::ibv_gid { raw: route.remote_gid.0 },
                flow_label: 0,
                sgid_index: route.gid_index,
                hop_limit: 64,
                traffic_class: 0,
            };
        }
        let fields = mask::IBV_QP_STATE
            | mask::IBV_QP_AV
            | mask::IBV_QP_PATH_MTU
            | mask::IBV_QP_DEST_QPN
            | mask::IBV_QP_RQ_PSN
            | mask::IBV_QP_MAX_DEST_RD_ATOMIC
            | mask::IBV_QP_MIN_RNR_TIMER;
        self.modify("RTR", &mut attr, fields, || format!("{route:?}"))
    }

    /// RTR → RTS: timers and our sequence number.
    pub fn to_rts(&self, route: &Route) -> Result<(), VerbsError> {
        use sys::ibv_qp_attr_mask as mask;
        let mut attr = RawQp::zeroed_attr();
        attr.qp_state = sys::ibv_qp_state::IBV_QPS_RTS;
        attr.timeout = route.timeout;
        attr.retry_cnt = route.retry;
        attr.rnr_retry = route.rnr_retry;
        attr.sq_psn = route.local_psn;
        attr.max_rd_atomic = route.initiator_reads;
        let fields = mask::IBV_QP_STATE
            | mask::IBV_QP_TIMEOUT
            | mask::IBV_QP_RETRY_CNT
            | mask::IBV_QP_RNR_RETRY
            | mask::IBV_QP_SQ_PSN
            | mask::IBV_QP_MAX_QP_RD_ATOMIC;
        self.modify("RTS", &mut attr, fields, || format!("{route:?}"))
    }

    /// The state, read back from the device.
    pub fn state(&self) -> Result<QpState, VerbsError> {
        match self.raw.query(sys::ibv_qp_attr_mask::IBV_QP_STATE) {
            Ok(attr) => Ok(QpState(attr.qp_state)),
            Err(source) => Err(VerbsError::QueryQp { qpn: self.number(), source }),
        }
    }

    /// Reads the state back until it is RTS.
    pub fn wait_rts(&self, deadline: Duration) -> Result<(), VerbsError> {
        let begin = Instant::now();
        loop {
            let state = self.state()?;
            if state == QpState::RTS {
                return Ok(());
            }
            if begin.elapsed() >= deadline || state == QpState::ERR {
                let waited_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
                return Err(VerbsError::NotReady { qpn: self.number(), state: state.to_string(), waited_ms });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Posts a send WR; see the contract in [`super::SendWr`]'s module.
    #[inline]
    pub fn post_send(&self, wr: &mut SendWr) -> Result<(), VerbsError> {
        self.raw.post_send(&mut wr.raw).map_err(|source| self.post_failed("ibv_post_send", wr.wr_id, source))
    }

    /// Posts a receive WR; the memory belongs to the device until its completion.
    #[inline]
    pub fn post_recv(&self, wr: &mut RecvWr) -> Result<(), VerbsError> {
        self.raw.post_recv(&mut wr.raw).map_err(|source| self.post_failed("ibv_post_recv", wr.wr_id, source))
    }

    #[cold]
    fn post_failed(&self, operation: &'static str, wr_id: u64, source: io::Error) -> VerbsError {
        VerbsError::Post { operation, wr_id, qpn: self.number(), cause: post_cause(&source), source }
    }

    fn modify(
        &self,
        to: &'static str,
        attr: &mut sys::ibv_qp_attr,
        fields: sys::ibv_qp_attr_mask,
        parameters: impl FnOnce() -> String,
    ) -> Result<(), VerbsError> {
        self.raw.modify(attr, fields).map_err(|source| VerbsError::ModifyQp {
            qpn: self.number(),
            to,
            parameters: parameters(),
            cause: modify_cause(&source),
            source,
        })
    }
}
