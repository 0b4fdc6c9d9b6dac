//! The receiving half of a queue pair.

use super::completion::{Completion, Kind, Syndrome};
use super::message::{Action, Address, Body, Refusal, Request, Transport, distance};
use super::mkey::Access;
use super::queue_pair::QueuePair;
use super::receive::{Receive, failed};
use super::{Asynchronous, Effect, Engine, datagram};
use crate::bits::low24;

/// Answers of atomics that are remembered, at least as many as may be under way.
const REMEMBERED_ATOMICS: usize = 256;
/// Queue pair of the subnet's management, whose receives carry the partition key.
const MANAGEMENT_QP: u32 = 1;
/// The only partition.
const DEFAULT_PARTITION: u32 = 0xffff;

/// What a receive that takes an immediate or a SEND says about itself.
struct Arrival<'a> {
    kind: Kind,
    data: &'a [u8],
    immediate: Option<u32>,
    header: &'a [u8],
    from: u32,
    flags: u32,
    source_lid: u16,
    solicited: bool,
}

impl Engine {
    /// A request has come in.
    pub(super) fn respond(&mut self, qp: &mut QueuePair, from: Address, request: Request) {
        if !qp.is_receiving() {
            return;
        }
        match qp.transport {
            Transport::Reliable => self.respond_reliably(qp, from, &request),
            Transport::Unreliable if request.datagram.is_none() => {
                if self.is_of_peer(qp, from) {
                    // A refusal of a request that nobody answers is a loss.
                    let _ = self.perform(qp, from, &request);
                }
            }
            Transport::Datagram => {
                if request.datagram.as_ref().is_some_and(|datagram| datagram.q_key == qp.attributes.q_key) {
                    let _ = self.perform(qp, from, &request);
                }
            }
            Transport::Unreliable | Transport::Ethernet | Transport::Other => {}
        }
    }

    fn is_of_peer(&self, qp: &QueuePair, from: Address) -> bool {
        from.qpn == qp.attributes.remote_qpn && Some(from.function) == qp.attributes.remote_function
    }

    fn respond_reliably(&mut self, qp: &mut QueuePair, from: Address, request: &Request) {
        if !self.is_of_peer(qp, from) || request.datagram.is_some() {
            return;
        }
        let after = distance(request.sequence, qp.responder.expected);
        if after > 0 {
            self.counters.out_of_sequence += 1;
            self.wire(from.qpn, request.sequence, "out-of-sequence");
            if !std::mem::replace(&mut qp.responder.has_refused, true) {
                let refused = Body::Refused { sequence: qp.responder.expected, reason: Refusal::OutOfSequence };
                self.send(qp, from, refused);
            }
            return;
        }
        if after < 0 {
            self.counters.duplicate_request += 1;
            self.wire(from.qpn, request.sequence, "duplicate");
            if let Some(data) = self.answer_of_duplicate(qp, request) {
                self.send(qp, from, Body::Done { sequence: request.sequence, data });
            }
            return;
        }
        let answer = match self.perform(qp, from, request) {
            Ok(data) => {
                qp.responder.expected = low24(request.sequence + 1);
                qp.responder.has_refused = false;
                Body::Done { sequence: request.sequence, data }
            }
            Err(reason) => {
                qp.responder.has_refused = true;
                Body::Refused { sequence: request.sequence, reason }
            }
        };
        let refusal = if let Body::Refused { reason, .. } = &answer { Some(*reason) } else { None };
        match refusal {
            // A queue pair that is its own peer fails with what was wrong, before it fails for having been asked for it.
            Some(reason) if from == (Address { function: self.function, qpn: qp.qpn }) => self.refused(qp, request.sequence, reason),
            _ => self.send(qp, from, answer),
        }
        match refusal {
            None => {}
            Some(Refusal::ReceiverNotReady(_)) => self.wire(from.qpn, request.sequence, "receiver-not-ready"),
            Some(reason) => {
                if reason == Refusal::Access {
                    self.effects.push(Effect::Asynchronous(Asynchronous::Access(qp.qpn)));
                } else if reason == Refusal::InvalidRequest {
                    self.effects.push(Effect::Asynchronous(Asynchronous::InvalidRequest(qp.qpn)));
                }
                self.fail_taken(qp, &format!("the peer's request {} was refused: {reason:?}", request.sequence));
            }
        }
    }

    /// READs are done again, atomics are not.
    fn answer_of_duplicate(&self, qp: &QueuePair, request: &Request) -> Option<Vec<u8>> {
        match &request.action {
            Action::Send { .. } | Action::Write { .. } => Some(Vec::new()),
            Action::Read { address, rkey, length } => self.read_remotely(qp, *address, *rkey, *length).ok(),
            Action::Atomic { .. } => {
                qp.responder.atomics.iter().find(|(sequence, _)| *sequence == request.sequence).map(|(_, data)| data.clone())
            }
        }
    }

    /// Does what a request says.
    fn perform(&mut self, qp: &mut QueuePair, from: Address, request: &Request) -> Result<Vec<u8>, Refusal> {
        let no_header: &[u8] = &[];
        let (header, flags) = request.datagram.as_ref().map_or((no_header, 0), |datagram| (&datagram.header[..], datagram.flags));
        let arrival = |kind, data, immediate| Arrival {
            kind,
            data,
            immediate,
            header,
            from: from.qpn,
            flags,
            source_lid: request.source_lid,
            solicited: request.solicited,
        };
        match &request.action {
            Action::Send { data, immediate } => {
                let kind = if immediate.is_some() { Kind::SendImmediate } else { Kind::Send };
                self.receive(qp, &arrival(kind, data, *immediate)).map(|()| Vec::new())
            }
            Action::Write { address, rkey, data, immediate } => {
                self.counters.write_requests += 1;
                if !qp.attributes.remote_write || self.pieces(*rkey, qp.pd, *address, data.len(), Access::RemoteWrite).is_none() {
                    return Err(Refusal::Access);
                }
                let receive = if request.action.takes_receive() { Some(self.want_receive(qp)?) } else { None };
                self.scatter(*rkey, qp.pd, *address, Access::RemoteWrite, data).ok_or(Refusal::Access)?;
                if let Some(receive) = receive {
                    self.announce(qp, &receive, &arrival(Kind::WriteImmediate, data, *immediate));
                }
                Ok(Vec::new())
            }
            Action::Read { address, rkey, length } => {
                self.counters.read_requests += 1;
                self.read_remotely(qp, *address, *rkey, *length)
            }
            Action::Atomic { address, rkey, operand, compare } => {
                self.counters.atomic_requests += 1;
                let data = self.atomic(qp, *address, *rkey, *operand, *compare)?;
                qp.responder.atomics.push_back((request.sequence, data.clone()));
                if qp.responder.atomics.len() > REMEMBERED_ATOMICS {
                    qp.responder.atomics.pop_front();
                }
                Ok(data)
            }
        }
    }

    fn read_remotely(&self, qp: &QueuePair, address: u64, rkey: u32, length: usize) -> Result<Vec<u8>, Refusal> {
        let mut data = Vec::with_capacity(length);
        let is_allowed = qp.attributes.remote_read;
        let read = is_allowed.then(|| self.gather(rkey, qp.pd, address, length, Access::RemoteRead, &mut data)).flatten();
        read.map(|()| data).ok_or(Refusal::Access)
    }

    /// The value before, in the byte order of the host: the driver asks for that mode.
    fn atomic(&self, qp: &QueuePair, address: u64, rkey: u32, operand: u64, compare: Option<u64>) -> Result<Vec<u8>, Refusal> {
        if !address.is_multiple_of(8) {
            return Err(Refusal::InvalidRequest);
        }
        if !qp.attributes.remote_atomic {
            return Err(Refusal::Access);
        }
        let pieces = self.pieces(rkey, qp.pd, address, 8, Access::RemoteAtomic).ok_or(Refusal::Access)?;
        let at = pieces.first().ok_or(Refusal::Access)?.0;
        let mut before = [0; 8];
        self.said(self.memory.read(at, &mut before)).ok_or(Refusal::Operation)?;
        let value = u64::from_le_bytes(before);
        let after = match compare {
            Some(expected) if expected != value => value,
            Some(_) => operand,
            None => value.wrapping_add(operand),
        };
        self.said(self.memory.write(at, &after.to_le_bytes())).ok_or(Refusal::Operation)?;
        Ok(before.to_vec())
    }

    fn want_receive(&mut self, qp: &mut QueuePair) -> Result<Receive, Refusal> {
        self.take_receive(qp).ok_or_else(|| {
            self.counters.out_of_buffer += 1;
            Refusal::ReceiverNotReady(qp.attributes.rnr_wait())
        })
    }

    fn receive(&mut self, qp: &mut QueuePair, arrival: &Arrival<'_>) -> Result<(), Refusal> {
        let receive = self.want_receive(qp)?;
        let is_datagram = qp.transport == Transport::Datagram;
        let header = if is_datagram { datagram::HEADER } else { 0 };
        if receive.capacity() < header + arrival.data.len() {
            self.complete(qp.receive_cqn, &failed(qp, Kind::ResponderError, receive.wqe, 0, Syndrome::LocalLength));
            return Err(Refusal::InvalidRequest);
        }
        let is_filled =
            if is_datagram { self.fill(&receive, &[arrival.header, arrival.data].concat()) } else { self.fill(&receive, arrival.data) };
        if is_filled.is_none() {
            self.complete(qp.receive_cqn, &failed(qp, Kind::ResponderError, receive.wqe, 0, Syndrome::LocalProtection));
            return Err(Refusal::Operation);
        }
        self.announce(qp, &receive, arrival);
        Ok(())
    }

    /// Writes the CQE of a receive.
    fn announce(&mut self, qp: &QueuePair, receive: &Receive, arrival: &Arrival<'_>) {
        let header = if qp.transport == Transport::Datagram { datagram::HEADER } else { 0 };
        let immediate = if qp.qpn == MANAGEMENT_QP { DEFAULT_PARTITION } else { arrival.immediate.unwrap_or(0) };
        let completion = Completion {
            kind: arrival.kind,
            qpn: qp.qpn,
            user_index: qp.user_index,
            wqe: receive.wqe,
            wqe_opcode: 0,
            bytes: (header + arrival.data.len()) as u32,
            immediate,
            source: arrival.flags | arrival.from,
            source_lid: arrival.source_lid,
            syndrome: None,
            solicited: arrival.solicited,
        };
        self.complete(qp.receive_cqn, &completion);
    }
}
