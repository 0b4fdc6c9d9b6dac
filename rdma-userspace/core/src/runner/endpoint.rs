//! One end of a run: memory, completion queues, a queue pair, and what the peer must know about them.
use super::error::RunnerError;
use super::memory::Memory;
use super::ops::{self, Description, LocalArea};
use super::params::Params;
use super::payload::Layout;
use super::queues::Queues;
use super::reap::Completions;
use super::submit::{ReceiveQueue, SendQueue, Submit};
use crate::verbs::{Device, Gid, LinkLayer, Pd, Port, PortState, Qp, QpCaps, RecvWr, RemoteMemory, Route, SendWr, VerbsError, gid_table};
use capture::wr_id::WrIds;
use capture::{Operation, Side};
use serde::{Deserialize, Serialize};
use std::time::Duration;

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
    pub(super) queues: Queues,
    pub(super) params: Params,
    pub(super) side: Side,
    description: &'static Description,
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
    pub fn supports(device: &Device, op: Operation) -> Result<(), RunnerError> {
        let fault = (ops::description(op)?.fault)(device);
        fault.map_or(Ok(()), |why| Err(RunnerError::Refused { what: op.name().into(), why }))
    }

    /// Creates everything up to a queue pair in INIT, with its receives posted.
    pub fn create(device: &Device, params: &Params, side: Side) -> Result<Self, RunnerError> {
        params.check()?;
        Self::supports(device, params.op)?;
        let port = device.port(params.port)?;
        if port.state != PortState::Active {
            let state = port.state.to_string();
            return Err(VerbsError::PortDown { device: device.name().into(), port: port.number, state }.into());
        }
        if params.size_bytes > port.max_message_bytes {
            let why = format!("{} bytes; port {} takes at most {}", params.size_bytes, port.number, port.max_message_bytes);
            return Err(RunnerError::Refused { what: "The size".into(), why });
        }
        let gid = find_gid(device, &port, params.gid_index)?;
        let (send_slots, recv_slots) = params.slots();
        let layout = |slots| Layout { size_bytes: params.size_bytes, stride_bytes: params.stride_bytes(), slots };
        let description = ops::description(params.op)?;
        let access = description.lends(side);
        let pd = Pd::alloc(device)?;
        let memory = Memory::register(&pd, layout(send_slots), layout(recv_slots), access)?;

        let (ends_with, mode) = (params.op.ends_with(), params.mode_of(side));
        let completions = Completions::create(device, ends_with, mode, params.cq_entries(), params.comp_vector)?;
        let qp = create_qp(&pd, &completions, params)?;
        qp.to_init(port.number, access)?;

        let ids = WrIds::new(params.worker, side);
        let (local, inline) = match description.local {
            LocalArea::Send => (&memory.send.mr, params.inline_bytes > 0 && params.size_bytes <= qp.caps().inline_bytes),
            LocalArea::Receive => (&memory.recv.mr, false),
        };
        let send_wr = SendWr::new(local, (description.send_op)(RemoteMemory::default()), 0, params.size_bytes, inline)?;
        memory.send.fill(side)?;
        (description.put_before)(&memory, side)?;
        let sends = SendQueue::new(send_wr, memory.send.layout, ids);
        let receives = ReceiveQueue::new(RecvWr::new(&memory.recv.mr, 0, params.size_bytes)?, memory.recv.layout, ids);
        let mut submit = Submit { qp, sends, receives, remote: RemoteMemory::default() };
        if description.takes_receives {
            submit.fill_receives()?;
        }
        let random =
            getrandom::u32().map_err(|error| RunnerError::Thread { what: "a random number", source: std::io::Error::other(error) })?;
        Ok(Self {
            queues: Queues { submit, completions, memory },
            params: params.clone(),
            side,
            description,
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
            qpn: self.queues.submit.qp.number(),
            psn: self.psn,
            gid: self.gid.0,
            lid: self.port.lid,
            rkey: self.queues.memory.recv.mr.rkey(),
            addr: self.queues.memory.recv.mr.address(),
            area_bytes: self.queues.memory.recv.mr.bytes() as u64,
            mtu_bytes: self.port.active_mtu_bytes,
            responder_reads: reads(self.device.limits().max_responder_reads),
        }
    }

    /// INIT → RTR → RTS towards the peer, and reads the state back until it is RTS.
    pub fn connect(&mut self, peer: &PeerInfo) -> Result<(), RunnerError> {
        if peer.qpn > MASK_24 || peer.psn > MASK_24 {
            return Err(RunnerError::BadPeer(format!("QPN {:#x} and PSN {:#x} must fit into 24 bits", peer.qpn, peer.psn)));
        }
        let description = self.description;
        if description.reaches_peer(self.side) && peer.area_bytes < u64::from(self.params.size_bytes) {
            return Err(RunnerError::BadPeer(format!(
                "its memory has {} bytes, the operation needs {}",
                peer.area_bytes, self.params.size_bytes
            )));
        }
        if !peer.addr.is_multiple_of(description.alignment) {
            return Err(RunnerError::BadPeer(format!("its address {:#x} is not a multiple of {}", peer.addr, description.alignment)));
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
        self.queues.submit.qp.to_rtr(&route)?;
        self.queues.submit.qp.to_rts(&route)?;
        self.queues.submit.qp.wait_rts(RTS_DEADLINE)?;
        let remote = RemoteMemory { address: peer.addr, rkey: peer.rkey };
        self.queues.submit.remote = remote;
        self.queues.submit.sends.set_op((description.send_op)(remote));
        Ok(())
    }

    /// Address of the `struct ibv_cq` whose completions end the samples: what the kernel calls its user handle.
    pub fn cq_handle(&self) -> u64 {
        self.queues.completions.end_cq().handle()
    }

    /// The same of both CQs; the one whose completions end the samples comes first.
    pub fn cq_handles(&self) -> [u64; 2] {
        let completions = &self.queues.completions;
        let end = self.cq_handle();
        let (send, recv) = (completions.send_cq.handle(), completions.recv_cq.handle());
        [end, if end == send { recv } else { send }]
    }

    /// Queue pair number.
    pub fn qpn(&self) -> u32 {
        self.queues.submit.qp.number()
    }

    /// Entries that the device gave to the CQ whose completions end the samples.
    pub fn cq_depth(&self) -> u32 {
        self.queues.completions.end_cq().depth()
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

    /// Which side it is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Operations that this end has begun: its sends.
    pub fn posted(&self) -> u64 {
        self.queues.submit.sends.posted()
    }

    /// Checks what lies in this end's memory after `done` operations: pattern and sequence, sums, old values.
    pub fn verify(&self, done: u64) -> Result<(), RunnerError> {
        (self.description.verify)(&self.queues, self.side, done)
    }

    /// State of the port now, in words.
    pub(super) fn port_state(&self) -> String {
        self.device.port(self.port.number).map_or_else(|error| error.to_string(), |port| port.state.to_string())
    }
}

/// A device that cannot send so much inline refuses the queue pair: then it is made without.
fn create_qp(pd: &Pd, completions: &Completions, params: &Params) -> Result<Qp, VerbsError> {
    let (send_cq, recv_cq) = (&completions.send_cq, &completions.recv_cq);
    let caps = QpCaps { send_wr: params.send_depth, recv_wr: params.recv_depth, inline_bytes: params.inline_bytes };
    match Qp::create(pd, send_cq, recv_cq, params.transport, caps) {
        Err(VerbsError::CreateQp { .. }) if caps.inline_bytes > 0 => {
            Qp::create(pd, send_cq, recv_cq, params.transport, QpCaps { inline_bytes: 0, ..caps })
        }
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
            Err(RunnerError::Refused { what: "The GID index".into(), why })
        }
    }
}
