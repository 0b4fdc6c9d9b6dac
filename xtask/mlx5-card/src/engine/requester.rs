//! The sending half of a queue pair: requests leave in the order of the queue and complete in it.

use super::completion::{Completion, Kind, Syndrome};
use super::message::{
    Action, Address, Body, Datagram, Message, Refusal, Request, Transport, distance, function_of_lid, function_of_mac, lid_of,
};
use super::mkey::Access;
use super::queue_pair::{InFlight, QueuePair, SendQueue, State, serves};
use super::receive::failed;
use super::wqe::{self, Segment, WorkRequest, opcode};
use super::{Effect, Engine, Timer, datagram};
use crate::bits::{be32, low24};
use std::time::{Duration, Instant};

/// Requests of one queue pair that may be under way.
const WINDOW: usize = 128;
/// A retry count that means "for ever".
const FOR_EVER: u8 = 7;
/// Top bit of a datagram's queue key: the queue pair's own is meant.
const OWN_Q_KEY: u32 = 1 << 31;

impl Engine {
    /// Takes what is posted and sends it, as far as the window, a fence or a wait allows.
    pub(super) fn serve_send_queue(&mut self, qp: &mut QueuePair) {
        match qp.state {
            State::Error => return self.flush(qp),
            State::ReadyToSend => {}
            _ => return,
        }
        while !qp.requester.is_waiting && qp.requester.in_flight.len() < WINDOW {
            let Some(request) = self.next_request(qp) else { break };
            if request.fenced && !qp.requester.in_flight.is_empty() {
                break;
            }
            if let Some(send) = &mut qp.send {
                send.head = send.head.wrapping_add(request.blocks);
            }
            self.launch(qp, request);
            self.retire(qp);
            if qp.state != State::ReadyToSend {
                return;
            }
        }
        self.watch_answers(qp);
    }

    fn next_request(&self, qp: &QueuePair) -> Option<WorkRequest> {
        let send = qp.send.as_ref()?;
        let posted = self.said(self.memory.word(qp.doorbell + 4))? as u16;
        if posted == send.head {
            return None;
        }
        let bytes = self.element(qp, send, send.head)?;
        Some(WorkRequest::decode(&bytes, send.head, qp.transport))
    }

    fn element(&self, qp: &QueuePair, send: &SendQueue, index: u16) -> Option<Vec<u8>> {
        let block = |number: u16| {
            let slot = u64::from(index.wrapping_add(number)) & ((1 << send.log_size) - 1);
            self.said(self.memory.bytes(qp.buffer.address(send.offset + slot * 64)?, 64))
        };
        let mut bytes = block(0)?;
        let segments = wqe::segment_count(&bytes);
        for number in 1..wqe::blocks(segments) {
            bytes.extend(block(number)?);
        }
        bytes.truncate(segments.max(1) * 16);
        Some(bytes)
    }

    /// Sends one request, or finds out that it cannot be.
    fn launch(&mut self, qp: &mut QueuePair, work: WorkRequest) {
        let mut in_flight = InFlight {
            request: None,
            wqe: work.index,
            opcode: work.opcode,
            signalled: work.signalled,
            length: work.length(),
            segments: Vec::new(),
            outcome: None,
        };
        if qp.transport == Transport::Ethernet || work.opcode == opcode::NOP {
            in_flight.outcome = Some(Ok(()));
            return qp.requester.in_flight.push_back(in_flight);
        }
        match self.request(qp, &work) {
            Err(syndrome) => in_flight.outcome = Some(Err(syndrome)),
            Ok((to, request)) => {
                qp.requester.next = low24(qp.requester.next + 1);
                if let Some(to) = to {
                    self.send(qp, to, Body::Request(request.clone()));
                }
                in_flight.segments = work.segments;
                if qp.transport == Transport::Reliable {
                    in_flight.request = Some(request);
                } else {
                    in_flight.outcome = Some(Ok(()));
                }
            }
        }
        qp.requester.in_flight.push_back(in_flight);
    }

    /// The request as it goes over the wire, and to whom; nobody where the address is nobody's.
    fn request(&mut self, qp: &QueuePair, work: &WorkRequest) -> Result<(Option<Address>, Request), Syndrome> {
        let action = self.action(qp, work)?;
        if !serves(qp.transport, &action) {
            return Err(Syndrome::LocalQpOperation);
        }
        let (to, datagram) = match &work.datagram {
            None => (qp.attributes.remote_function.map(|function| Address { function, qpn: qp.attributes.remote_qpn }), None),
            Some(vector) => {
                let source = if self.is_roce { self.gids.get(&u32::from(vector.source_gid)).copied() } else { None };
                let function = if self.is_roce { function_of_mac(vector.mac) } else { function_of_lid(vector.lid) };
                let (header, flags) = datagram::header(source, vector, work.length());
                let q_key = if vector.q_key & OWN_Q_KEY != 0 { qp.attributes.q_key } else { vector.q_key };
                let to = function.map(|function| Address { function, qpn: vector.qpn });
                (to, Some(Datagram { q_key, header, flags }))
            }
        };
        let source_lid = if self.is_roce { 0 } else { lid_of(self.function) };
        Ok((to, Request { sequence: qp.requester.next, action, solicited: work.solicited, source_lid, datagram }))
    }

    fn action(&mut self, qp: &QueuePair, work: &WorkRequest) -> Result<Action, Syndrome> {
        let (address, rkey) = work.remote.unwrap_or_default();
        let (operand, compare) = work.operands.unwrap_or_default();
        match work.opcode {
            opcode::SEND => Ok(Action::Send { data: self.data(qp, work)?, immediate: None }),
            opcode::SEND_IMMEDIATE => Ok(Action::Send { data: self.data(qp, work)?, immediate: Some(work.immediate) }),
            opcode::WRITE => Ok(Action::Write { address, rkey, data: self.data(qp, work)?, immediate: None }),
            opcode::WRITE_IMMEDIATE => Ok(Action::Write { address, rkey, data: self.data(qp, work)?, immediate: Some(work.immediate) }),
            opcode::READ => Ok(Action::Read { address, rkey, length: work.length() }),
            opcode::COMPARE_SWAP => Ok(Action::Atomic { address, rkey, operand, compare: Some(compare) }),
            opcode::FETCH_ADD => Ok(Action::Atomic { address, rkey, operand, compare: None }),
            other => {
                self.trouble(format!("queue pair {:#x}: a request of opcode {other:#x}, which this card does not have", qp.qpn));
                Err(Syndrome::LocalQpOperation)
            }
        }
    }

    fn data(&self, qp: &QueuePair, work: &WorkRequest) -> Result<Vec<u8>, Syndrome> {
        let mut data = Vec::with_capacity(work.length());
        for segment in &work.segments {
            match segment {
                Segment::Inline(bytes) => data.extend_from_slice(bytes),
                Segment::Buffer { lkey, address, length } => {
                    self.gather(*lkey, qp.pd, *address, *length, Access::LocalRead, &mut data).ok_or(Syndrome::LocalProtection)?
                }
            }
        }
        Ok(data)
    }

    pub(super) fn send(&mut self, qp: &QueuePair, to: Address, body: Body) {
        let from = Address { function: self.function, qpn: qp.qpn };
        if self.is_up {
            self.effects.push(Effect::Send(Message { from, to, body }));
        }
    }

    /// Sends everything again that has no answer.
    fn send_again(&mut self, qp: &mut QueuePair) {
        let Some(function) = qp.attributes.remote_function else { return };
        let to = Address { function, qpn: qp.attributes.remote_qpn };
        let again: Vec<Request> =
            qp.requester.in_flight.iter().filter(|one| one.outcome.is_none()).filter_map(|one| one.request.clone()).collect();
        for request in again {
            self.send(qp, to, Body::Request(request));
        }
        qp.requester.last_progress = Some(Instant::now());
        self.watch_answers(qp);
    }

    /// Makes sure that a missing answer is noticed.
    fn watch_answers(&mut self, qp: &mut QueuePair) {
        let has_open = qp.requester.in_flight.iter().any(|one| one.outcome.is_none());
        let Some(timeout) = qp.attributes.timeout().filter(|_| has_open && !qp.requester.has_timer) else { return };
        qp.requester.last_progress = Some(Instant::now());
        qp.requester.has_timer = true;
        self.effects.push(Effect::Timer(timeout, Timer::Answer(qp.qpn)));
    }

    /// An answer may be overdue.
    pub(super) fn check_answers(&mut self, qp: &mut QueuePair) {
        qp.requester.has_timer = false;
        let Some(timeout) = qp.attributes.timeout() else { return };
        let Some(open) = qp.requester.in_flight.iter().position(|one| one.outcome.is_none()) else { return };
        if qp.state != State::ReadyToSend {
            return;
        }
        let waited = qp.requester.last_progress.map_or(Duration::MAX, |since| since.elapsed());
        if qp.requester.is_waiting || waited < timeout {
            qp.requester.has_timer = true;
            let rest = timeout.saturating_sub(waited).max(Duration::from_micros(10));
            return self.effects.push(Effect::Timer(rest, Timer::Answer(qp.qpn)));
        }
        self.counters.ack_timeout += 1;
        let sequence = qp.requester.in_flight[open].request.as_ref().map_or(0, |request| request.sequence);
        self.wire(qp.qpn, sequence, "timeout");
        self.retry(qp, open);
    }

    fn retry(&mut self, qp: &mut QueuePair, open: usize) {
        if qp.requester.retries >= qp.attributes.retry_count {
            qp.requester.in_flight[open].outcome = Some(Err(Syndrome::RetryExceeded));
            return self.retire(qp);
        }
        qp.requester.retries += 1;
        self.send_again(qp);
    }

    /// The wait after "receiver not ready" is over.
    pub(super) fn wait_is_over(&mut self, qp: &mut QueuePair) {
        if !std::mem::take(&mut qp.requester.is_waiting) || qp.state != State::ReadyToSend {
            return;
        }
        self.send_again(qp);
        self.serve_send_queue(qp);
    }

    /// A request was done; so were those before it, unless their answer brings data.
    pub(super) fn answered(&mut self, qp: &mut QueuePair, sequence: u32, data: &[u8]) {
        if qp.state != State::ReadyToSend {
            return;
        }
        let mut lost = None;
        for index in 0..qp.requester.in_flight.len() {
            let one = &qp.requester.in_flight[index];
            let Some(request) = one.request.as_ref().filter(|_| one.outcome.is_none()) else { continue };
            let after = distance(request.sequence, sequence);
            if after > 0 {
                break;
            }
            if after < 0 && one.brings_data() {
                lost = Some(index);
                break;
            }
            let is_written = after < 0 || self.put_answer(qp, index, data).is_some();
            let outcome = if is_written { Ok(()) } else { Err(Syndrome::LocalProtection) };
            qp.requester.in_flight[index].outcome = Some(outcome);
            qp.requester.retries = 0;
            qp.requester.rnr_retries = 0;
            qp.requester.last_progress = Some(Instant::now());
        }
        if let Some(open) = lost {
            self.counters.implied_nak += 1;
            self.retry(qp, open);
        }
        self.retire(qp);
        self.serve_send_queue(qp);
    }

    /// Writes what was read to where the request wants it.
    fn put_answer(&self, qp: &QueuePair, index: usize, data: &[u8]) -> Option<()> {
        let one = &qp.requester.in_flight[index];
        if !one.brings_data() {
            return Some(());
        }
        let mut rest = data;
        for segment in &one.segments {
            let Segment::Buffer { lkey, address, length } = segment else { return None };
            let (piece, after) = rest.split_at((*length).min(rest.len()));
            self.scatter(*lkey, qp.pd, *address, Access::LocalWrite, piece)?;
            rest = after;
        }
        Some(())
    }

    /// A request was not done.
    pub(super) fn refused(&mut self, qp: &mut QueuePair, sequence: u32, reason: Refusal) {
        let is_it = |one: &InFlight| one.outcome.is_none() && one.request.as_ref().is_some_and(|request| request.sequence == sequence);
        let Some(open) = qp.requester.in_flight.iter().position(is_it).filter(|_| qp.state == State::ReadyToSend) else { return };
        // What came before it was done; only answers with data are still owed.
        for one in qp.requester.in_flight.iter_mut().take(open).filter(|one| one.outcome.is_none() && !one.brings_data()) {
            one.outcome = Some(Ok(()));
        }
        match reason {
            Refusal::ReceiverNotReady(wait) => {
                self.counters.rnr_nak_retry += 1;
                if qp.attributes.rnr_retry != FOR_EVER && qp.requester.rnr_retries >= qp.attributes.rnr_retry {
                    qp.requester.in_flight[open].outcome = Some(Err(Syndrome::RnrRetryExceeded));
                } else {
                    qp.requester.rnr_retries = qp.requester.rnr_retries.saturating_add(1);
                    if !std::mem::replace(&mut qp.requester.is_waiting, true) {
                        self.effects.push(Effect::Timer(wait, Timer::ReceiverNotReady(qp.qpn)));
                    }
                }
            }
            Refusal::OutOfSequence => {
                self.counters.packet_sequence_error += 1;
                return self.retry(qp, open);
            }
            Refusal::InvalidRequest => qp.requester.in_flight[open].outcome = Some(Err(Syndrome::RemoteInvalidRequest)),
            Refusal::Access => qp.requester.in_flight[open].outcome = Some(Err(Syndrome::RemoteAccess)),
            Refusal::Operation => qp.requester.in_flight[open].outcome = Some(Err(Syndrome::RemoteOperation)),
        }
        self.retire(qp);
    }

    /// Writes the CQEs of what has ended, in the order of the queue. The first failure ends the queue pair.
    pub(super) fn retire(&mut self, qp: &mut QueuePair) {
        while let Some(outcome) = qp.requester.in_flight.front().and_then(|one| one.outcome) {
            let Some(one) = qp.requester.in_flight.pop_front() else { return };
            let Some(cqn) = qp.send.as_ref().map(|send| send.cqn) else { return };
            match outcome {
                Ok(()) if one.signalled => {
                    let good = Completion {
                        kind: Kind::Requester,
                        qpn: qp.qpn,
                        user_index: qp.user_index,
                        wqe: one.wqe,
                        wqe_opcode: one.opcode,
                        bytes: one.length as u32,
                        immediate: 0,
                        source: 0,
                        source_lid: 0,
                        syndrome: None,
                        solicited: false,
                    };
                    self.complete(cqn, &good);
                }
                Ok(()) => {}
                Err(syndrome) => {
                    self.complete(cqn, &failed(qp, Kind::RequesterError, one.wqe, one.opcode, syndrome));
                    return self.fail_taken(qp, &format!("request {} of opcode {:#x} ended with {syndrome:?}", one.wqe, one.opcode));
                }
            }
        }
    }

    /// A CQE for each request that has none.
    pub(super) fn flush_requests(&mut self, qp: &mut QueuePair) {
        let Some(cqn) = qp.send.as_ref().map(|send| send.cqn) else { return };
        while let Some(one) = qp.requester.in_flight.pop_front() {
            self.complete(cqn, &failed(qp, Kind::RequesterError, one.wqe, one.opcode, Syndrome::Flushed));
        }
        while let Some((index, code, blocks)) = self.next_flushed(qp) {
            if let Some(send) = &mut qp.send {
                send.head = send.head.wrapping_add(blocks);
            }
            self.complete(cqn, &failed(qp, Kind::RequesterError, index, code, Syndrome::Flushed));
        }
    }

    fn next_flushed(&self, qp: &QueuePair) -> Option<(u16, u8, u16)> {
        let send = qp.send.as_ref()?;
        let posted = self.said(self.memory.word(qp.doorbell + 4))? as u16;
        if posted == send.head {
            return None;
        }
        let bytes = self.element(qp, send, send.head)?;
        Some((send.head, be32(&bytes, 0) as u8, wqe::blocks(wqe::segment_count(&bytes))))
    }
}

impl Engine {
    /// The driver's transition of a queue pair, with the state that it leads to.
    pub fn transit(&mut self, qpn: u32, state: State) {
        let Some(mut qp) = self.qps.remove(&qpn) else { return };
        let was = std::mem::replace(&mut qp.state, state);
        match state {
            State::Reset => {
                qp.reset();
                self.forget_error(qpn);
            }
            State::ReadyToReceive if was == State::Init => qp.responder.expected = qp.attributes.first_receive,
            State::ReadyToSend if was == State::ReadyToReceive => qp.requester.next = qp.attributes.first_send,
            State::Error => {
                qp.state = was;
                self.fail_taken(&mut qp, "the driver wants it");
            }
            _ => {}
        }
        self.qps.insert(qpn, qp);
    }
}
