//! One end of a run: memory, completion queues, a queue pair, and what the peer must know about them.
use super::error::RunnerError;
use super::ops::READ_SEQUENCE;
use super::params::{Mode, OpKind, Params, Role};
use super::payload::Layout;
use super::rings::{RecvRing, SendRing};
use super::wr_id::WrIds;
use crate::kernel::faults;
use crate::verbs::{
    Access, Batch, Buffer, Channel, Cq, Device, Gid, LinkLayer, MemlockBudget, Mr, Pd, Port, PortState, Qp, QpCaps, RecvWr, Route, SendOp,
    SendWr, VerbsError, gid_table,
};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Least distance between the end of the send area and the begin of the receive area: they share no huge page and no prefetched line.
const AREA_DISTANCE_BYTES: usize = 2 << 20;
/// How long a queue pair may take to show RTS.
const RTS_DEADLINE: Duration = Duration::from_secs(5);
/// Queue pair and packet sequence numbers have 24 bits.
const MASK_24: u32 = 0x00ff_ffff;

/// What one end tells the other before they connect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerInfo {
    /// Queue pair number.
    pub qpn: u32,
    /// First packet sequence number.
    pub psn: u32,
    /// GID.
    pub gid: [u8; 16],
    /// LID (InfiniBand; 0 on RoCE).
    pub lid: u16,
    /// Key of the memory that the other end may reach; useless where the operation needs none.
    pub rkey: u32,
    /// Virtual address of that memory.
    pub addr: u64,
    /// Its size in bytes.
    pub area_bytes: u64,
    /// Active MTU of the port in bytes.
    pub mtu_bytes: u32,
    /// READs and atomics of the other end that are taken at once.
    pub responder_reads: u8,
}

/// One end of a run. Dropping it tears down queue pair, queues and memory in that order.
pub struct Endpoint {
    // The order of the fields is the order of teardown.
    pub(super) qp: Qp,
    pub(super) send_cq: Cq,
    pub(super) recv_cq: Cq,
    pub(super) sends: SendRing,
    pub(super) recvs: RecvRing,
    pub(super) send_mr: Mr,
    pub(super) recv_mr: Mr,
    pub(super) batch: Batch,
    /// Address and key of the peer's memory.
    pub(super) remote: (u64, u32),
    pub(super) params: Params,
    pub(super) role: Role,
    /// Set when a round was cut off in the middle of an operation.
    pub(super) dirty: bool,
    inline: bool,
    device: Device,
    port: Port,
    gid: Gid,
    psn: u32,
    mtu_bytes: u32,
}

impl Endpoint {
    /// Whether this side's device can do the operation, and its kernel survives it.
    ///
    /// # Errors
    /// [`RunnerError::Refused`] with the reason.
    pub fn supports(device: &Device, op: OpKind) -> Result<(), RunnerError> {
        if !op.is_atomic() {
            return Ok(());
        }
        let driver = device.driver();
        let fault = if device.limits().atomics {
            faults::atomics(Path::new("/"), &driver).map(str::to_owned)
        } else {
            Some(format!("{} ({driver}) has no atomic operations", device.name()))
        };
        fault.map_or(Ok(()), |why| Err(RunnerError::Refused { what: op.name(), why }))
    }

    /// Creates everything up to a queue pair in INIT, with its receives posted.
    pub fn create(device: &Device, params: &Params, role: Role) -> Result<Self, RunnerError> {
        params.check()?;
        Self::supports(device, params.op)?;
        let port = device.port(params.port)?;
        if port.state != PortState::Active {
            let state = port.state.to_string();
            return Err(VerbsError::PortDown { device: device.name().into(), port: port.number, state }.into());
        }
        if params.size_bytes > port.max_message_bytes {
            let why = format!("{} bytes; port {} takes at most {}", params.size_bytes, port.number, port.max_message_bytes);
            return Err(RunnerError::Refused { what: "The size", why });
        }
        let gid = find_gid(device, &port, params.gid_index)?;
        let (send_slots, recv_slots) = params.slots();
        let layout = |slots| Layout { size_bytes: params.size_bytes, stride_bytes: params.stride_bytes(), slots };
        let (send_layout, recv_layout) = (layout(send_slots), layout(recv_slots));
        let access = target_access(params.op, role);
        let pd = Pd::alloc(device)?;
        let (send_mr, recv_mr) = areas(&pd, &send_layout, &recv_layout, access)?;

        let channel = |wanted| if wanted && params.mode_of(role) == Mode::Event { Channel::create(device).map(Some) } else { Ok(None) };
        let ends_on_recv = params.op.server_answers();
        let entries = params.cq_entries();
        let send_cq = Cq::create(device, channel(!ends_on_recv)?, entries, params.comp_vector)?;
        let recv_cq = Cq::create(device, channel(ends_on_recv)?, entries, params.comp_vector)?;
        let qp = create_qp(&pd, &send_cq, &recv_cq, params)?;
        qp.to_init(port.number, access)?;

        let ids = WrIds::new(params.worker, role);
        // Results of READ and atomics arrive in the receive area; everything else leaves from the send area.
        let lands_here = matches!(params.op, OpKind::Read | OpKind::FetchAdd | OpKind::CmpSwap);
        let inline = !lands_here && params.inline_bytes > 0 && params.size_bytes <= qp.caps().inline_bytes;
        let send_wr = SendWr::new(if lands_here { &recv_mr } else { &send_mr }, SendOp::Send, 0, params.size_bytes, inline)?;
        send_layout.fill(&send_mr, role)?;
        if params.op == OpKind::Read && role == Role::Server {
            recv_layout.fill(&recv_mr, role)?;
            recv_layout.store(&recv_mr, 0, READ_SEQUENCE)?;
        }
        let mut recvs = RecvRing::new(RecvWr::new(&recv_mr, 0, params.size_bytes)?, recv_layout, ids);
        if params.op == OpKind::Send {
            recvs.fill(&qp)?;
        }
        let random =
            getrandom::u32().map_err(|error| RunnerError::Thread { what: "a random number", source: std::io::Error::other(error) })?;
        Ok(Self {
            qp,
            send_cq,
            recv_cq,
            sends: SendRing::new(send_wr, send_layout, ids),
            recvs,
            send_mr,
            recv_mr,
            batch: Batch::default(),
            remote: (0, 0),
            params: params.clone(),
            role,
            dirty: false,
            inline,
            device: device.clone(),
            mtu_bytes: port.active_mtu_bytes,
            port,
            gid,
            psn: random & MASK_24,
        })
    }

    /// What the peer needs.
    pub fn local(&self) -> PeerInfo {
        PeerInfo {
            qpn: self.qp.number(),
            psn: self.psn,
            gid: self.gid.0,
            lid: self.port.lid,
            rkey: self.recv_mr.rkey(),
            addr: self.recv_mr.address(),
            area_bytes: self.recv_mr.bytes() as u64,
            mtu_bytes: self.port.active_mtu_bytes,
            responder_reads: reads(self.device.limits().max_responder_reads),
        }
    }

    /// INIT → RTR → RTS towards the peer, and reads the state back until it is RTS.
    pub fn connect(&mut self, peer: &PeerInfo) -> Result<(), RunnerError> {
        if peer.qpn > MASK_24 || peer.psn > MASK_24 {
            return Err(RunnerError::BadPeer(format!("QPN {:#x} and PSN {:#x} must fit into 24 bits", peer.qpn, peer.psn)));
        }
        let needs_memory = self.params.op == OpKind::WritePp || (self.params.op != OpKind::Send && self.role == Role::Client);
        if needs_memory && peer.area_bytes < u64::from(self.params.size_bytes) {
            return Err(RunnerError::BadPeer(format!(
                "its memory has {} bytes, the operation needs {}",
                peer.area_bytes, self.params.size_bytes
            )));
        }
        if self.params.op.is_atomic() && !peer.addr.is_multiple_of(8) {
            return Err(RunnerError::BadPeer(format!("its address {:#x} is not a multiple of 8", peer.addr)));
        }
        let asked = self.params.mtu_bytes.unwrap_or(u32::MAX);
        self.mtu_bytes = self.port.active_mtu_bytes.min(peer.mtu_bytes).min(asked);
        let route = Route {
            port: self.port.number,
            gid_index: u8::try_from(self.params.gid_index).unwrap_or(u8::MAX),
            remote_gid: Gid(peer.gid),
            remote_lid: peer.lid,
            global: self.port.link_layer == LinkLayer::Ethernet,
            remote_qpn: peer.qpn,
            remote_psn: peer.psn,
            local_psn: self.psn,
            mtu_bytes: self.mtu_bytes,
            initiator_reads: reads(self.device.limits().max_initiator_reads).min(peer.responder_reads),
            responder_reads: reads(self.device.limits().max_responder_reads),
            timeout: self.params.timeout,
            retry: self.params.retry,
            rnr_retry: self.params.rnr_retry,
            rnr_timer: self.params.rnr_timer,
        };
        self.qp.to_rtr(&route)?;
        self.qp.to_rts(&route)?;
        self.qp.wait_rts(RTS_DEADLINE)?;
        self.remote = (peer.addr, peer.rkey);
        let (remote_address, rkey) = self.remote;
        self.sends.wr.set_op(match self.params.op {
            OpKind::Send => SendOp::Send,
            OpKind::Write | OpKind::WritePp => SendOp::Write { remote_address, rkey },
            OpKind::Read => SendOp::Read { remote_address, rkey },
            OpKind::FetchAdd => SendOp::FetchAdd { remote_address, rkey, add: 1 },
            OpKind::CmpSwap => SendOp::CmpSwap { remote_address, rkey, compare: 0, swap: 1 },
        });
        Ok(())
    }

    /// Address of the `struct ibv_cq` whose completions end the samples: what the kernel calls its user handle.
    pub fn cq_handle(&self) -> u64 {
        self.end_cq().handle()
    }

    /// Queue pair number.
    pub fn qpn(&self) -> u32 {
        self.qp.number()
    }

    /// Entries that the device gave to the CQ whose completions end the samples.
    pub fn cq_depth(&self) -> u32 {
        self.end_cq().depth()
    }

    /// Path MTU in bytes; before `connect` the active MTU of the port.
    pub fn mtu_bytes(&self) -> u32 {
        self.mtu_bytes
    }

    /// True when messages are sent inline: copied into the WR by the post.
    pub fn sends_inline(&self) -> bool {
        self.inline
    }

    /// The port that is used.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// The parameters that it was made with.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Which end it is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Operations that this end has begun: its sends.
    pub fn posted(&self) -> u64 {
        self.sends.posted()
    }

    /// Checks what lies in this end's memory after `done` operations: pattern and sequence, sums, old values.
    pub fn verify(&self, done: u64) -> Result<(), RunnerError> {
        let other = if self.role == Role::Client { Role::Server } else { Role::Client };
        let layout = &self.recvs.layout;
        let counter = || self.recv_mr.atomic_u64(0).map(|counter| counter.load(Ordering::Acquire));
        match (self.params.op, self.role) {
            (OpKind::Send, _) => {
                if self.recvs.taken() != done {
                    return Err(RunnerError::Payload(format!("{} messages received, expected {done}", self.recvs.taken())));
                }
                let first = done.saturating_sub(u64::from(layout.slots));
                (first..done).try_for_each(|number| layout.verify(&self.recv_mr, number, other, number + 1))
            }
            (OpKind::WritePp, _) | (OpKind::Write, Role::Server) => layout.verify(&self.recv_mr, 0, other, done),
            (OpKind::Read, Role::Client) => layout.verify(&self.recv_mr, 0, other, READ_SEQUENCE),
            (OpKind::FetchAdd | OpKind::CmpSwap, role) => {
                let expected = if role == Role::Server { done } else { done.saturating_sub(1) };
                let got = counter()?;
                if got == expected { Ok(()) } else { Err(RunnerError::Payload(format!("the counter is {got}, expected {expected}"))) }
            }
            (OpKind::Write, Role::Client) | (OpKind::Read, Role::Server) => Ok(()),
        }
    }

    /// The CQ whose completions end the samples; the one with the channel in mode event.
    pub(super) fn end_cq(&self) -> &Cq {
        if self.params.op.server_answers() { &self.recv_cq } else { &self.send_cq }
    }

    /// State of the port now, in words.
    pub(super) fn port_state(&self) -> String {
        self.device.port(self.port.number).map_or_else(|error| error.to_string(), |port| port.state.to_string())
    }
}

/// A device that cannot send so much inline refuses the queue pair: then it is made without.
fn create_qp(pd: &Pd, send_cq: &Cq, recv_cq: &Cq, params: &Params) -> Result<Qp, VerbsError> {
    let caps = QpCaps { send_wr: params.send_depth, recv_wr: params.recv_depth, inline_bytes: params.inline_bytes };
    match Qp::create(pd, send_cq, recv_cq, caps) {
        Err(VerbsError::CreateQp { .. }) if caps.inline_bytes > 0 => Qp::create(pd, send_cq, recv_cq, QpCaps { inline_bytes: 0, ..caps }),
        created => created,
    }
}

fn reads(limit: u32) -> u8 {
    u8::try_from(limit).unwrap_or(u8::MAX).min(16)
}

fn find_gid(device: &Device, port: &Port, index: u32) -> Result<Gid, RunnerError> {
    let table = gid_table(device, port.number)?;
    match table.iter().find(|entry| entry.index == index) {
        Some(entry) => Ok(entry.gid),
        None => {
            let indices: Vec<_> = table.iter().map(|entry| entry.index.to_string()).collect();
            let why = format!("{index}: port {} of {} has entries {}", port.number, device.name(), indices.join(", "));
            Err(RunnerError::Refused { what: "The GID index", why })
        }
    }
}

/// Rights of the peer on the receive area: only what the operation needs, only where it is needed.
fn target_access(op: OpKind, role: Role) -> Access {
    let target = role == Role::Server;
    Access {
        local_write: true,
        remote_write: op == OpKind::WritePp || (op == OpKind::Write && target),
        remote_read: op == OpKind::Read && target,
        remote_atomic: op.is_atomic() && target,
    }
}

/// One mapping with the send area at its begin and the receive area well away from it; only the areas themselves are locked and registered.
fn areas(pd: &Pd, send: &Layout, recv: &Layout, access: Access) -> Result<(Mr, Mr), RunnerError> {
    let page = crate::verbs::ffi::os::page_bytes();
    let send_bytes = send.area_bytes().next_multiple_of(page);
    let recv_bytes = recv.area_bytes().next_multiple_of(page);
    MemlockBudget::read()?.check((send_bytes + recv_bytes) as u64)?;
    let recv_offset = (send_bytes + AREA_DISTANCE_BYTES).next_multiple_of(AREA_DISTANCE_BYTES);
    let buffer = Buffer::map(recv_offset + recv_bytes)?;
    let send_mr = Mr::register(pd, &buffer, 0, send_bytes, Access::default())?;
    let recv_mr = Mr::register(pd, &buffer, recv_offset, recv_bytes, access)?;
    Ok((send_mr, recv_mr))
}
