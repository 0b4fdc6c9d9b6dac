//! Commands about queue pairs.

use super::super::layout::{path, qpc};
use super::objects::PAGES_AT;
use super::{Answer, Function, Status, object, put_context};
use crate::bits::{Field, be32, low24, put32};
use crate::engine::buffer::QueueBuffer;
use crate::engine::message::{Transport, function_of_lid, function_of_mac};
use crate::engine::queue_pair::{Attributes, QueuePair, Receives, Requester, Responder, SendQueue, State};

/// Where the context begins, in commands and in the answer of QUERY_QP.
const CONTEXT: std::ops::Range<usize> = 24..256;
/// Where the mask of optional parameters lies.
const OPTIONAL_AT: usize = 16;

/// Kinds of queue pairs (`MLX5_QP_ST_*`).
const KIND_RC: u64 = 0;
const KIND_UC: u64 = 1;
const KIND_UD: u64 = 2;
const KIND_QP0: u64 = 7;
const KIND_QP1: u64 = 8;
/// Kinds of receive queues: one of its own, a shared one.
const RECEIVES_OWN: u64 = 0;
const RECEIVES_SHARED: u64 = 1;

/// Parameters that a transition sets always.
const OF_INIT: &[Field] = &[qpc::PM_STATE, qpc::RRE, qpc::RWE, qpc::RAE, qpc::ATOMIC_MODE, qpc::Q_KEY, qpc::COUNTER_SET_ID];
const OF_RECEIVE: &[Field] =
    &[qpc::REMOTE_QPN, qpc::PRIMARY_ADDRESS_PATH, qpc::MTU, qpc::LOG_MSG_MAX, qpc::NEXT_RCV_PSN, qpc::MIN_RNR_NAK, qpc::LOG_RRA_MAX];
const OF_SEND: &[Field] = &[qpc::NEXT_SEND_PSN, qpc::RETRY_COUNT, qpc::RNR_RETRY, qpc::LOG_SRA_MAX, ACK_TIMEOUT];

/// The time-out within the context's first path.
const ACK_TIMEOUT: Field = path::ACK_TIMEOUT.within(qpc::PRIMARY_ADDRESS_PATH.offset);

/// Parameters that a transition may set beside (`enum mlx5_qp_optpar`): bit, field.
const OPTIONAL: &[(u32, Field)] = &[
    (1, qpc::RRE),
    (2, qpc::RAE),
    (3, qpc::RWE),
    (5, qpc::Q_KEY),
    (6, qpc::MIN_RNR_NAK),
    (7, qpc::PRIMARY_ADDRESS_PATH),
    (8, qpc::LOG_SRA_MAX),
    (9, qpc::LOG_RRA_MAX),
    (12, qpc::RETRY_COUNT),
    (13, qpc::RNR_RETRY),
    (14, ACK_TIMEOUT),
];

pub fn create(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    let context = input.get(CONTEXT).ok_or(Status::BadParameter)?.to_vec();
    let get = |field: Field| field.get(&context);
    let kind = get(qpc::ST);
    let (transport, number) = match kind {
        KIND_RC => (Transport::Reliable, None),
        KIND_UC => (Transport::Unreliable, None),
        KIND_UD => (Transport::Datagram, None),
        KIND_QP0 => (Transport::Datagram, Some(0)),
        KIND_QP1 => (Transport::Datagram, Some(1)),
        _ => (Transport::Other, None),
    };
    let (receive_log, stride) = (get(qpc::LOG_RQ_SIZE) as u32, 16_u32 << get(qpc::LOG_RQ_STRIDE));
    let receives = match get(qpc::RQ_TYPE) {
        RECEIVES_OWN => Receives::Own { log_size: receive_log, stride, head: 0 },
        RECEIVES_SHARED => Receives::Shared(get(qpc::SRQN_RMPN_XRQN) as u32),
        _ => Receives::None,
    };
    let offset = if matches!(receives, Receives::Own { .. }) { u64::from(stride) << receive_log } else { 0 };
    let log_size = get(qpc::LOG_SQ_SIZE) as u32;
    let send = (get(qpc::NO_SQ) == 0).then(|| SendQueue { offset, log_size, cqn: get(qpc::CQN_SND) as u32, head: 0 });
    let bytes = offset + if send.is_some() { 64 << log_size } else { 0 };
    let pages = input.get(PAGES_AT..).unwrap_or_default();
    let qpn = number.unwrap_or_else(|| function.next_number());
    let note = format!(
        "qp {qpn:#x} of kind {kind}, send 2^{log_size}, receive 2^{receive_log}, cqs {:#x} {:#x}",
        get(qpc::CQN_SND),
        get(qpc::CQN_RCV)
    );
    let queue_pair = QueuePair {
        qpn,
        transport,
        state: State::Reset,
        pd: get(qpc::PD) as u32,
        user_index: get(qpc::USER_INDEX) as u32,
        buffer: QueueBuffer::new(pages, get(qpc::LOG_PAGE_SIZE), get(qpc::PAGE_OFFSET), bytes),
        doorbell: get(qpc::DBR_ADDR),
        send,
        receives,
        receive_cqn: get(qpc::CQN_RCV) as u32,
        attributes: Attributes::default(),
        requester: Requester::default(),
        responder: Responder::default(),
        context,
    };
    function.engine.qps.insert(qpn, queue_pair);
    put32(output, 8, qpn);
    Ok(note)
}

/// Also of a send queue of the network device, which is a queue pair here.
pub fn destroy(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    function.engine.forget_error(object(input));
    function.engine.qps.remove(&object(input)).map(|_| format!("qp {:#x}", object(input))).ok_or(Status::BadResource)
}

pub fn query(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    let queue_pair = function.engine.qps.get(&object(input)).ok_or(Status::BadResource)?;
    let mut context = queue_pair.context.clone();
    qpc::STATE.set(&mut context, queue_pair.state as u64);
    put_context(output, CONTEXT.start, &context);
    Ok(String::new())
}

pub fn reset_to_init(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    transit(function, input, Some(State::Init), OF_INIT)
}

pub fn init_to_receive(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    transit(function, input, Some(State::ReadyToReceive), OF_RECEIVE)
}

pub fn receive_to_send(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    transit(function, input, Some(State::ReadyToSend), OF_SEND)
}

/// Optional parameters in the same state.
pub fn change(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    transit(function, input, None, &[])
}

pub fn to_error(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    transit(function, input, Some(State::Error), &[])
}

pub fn to_reset(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    transit(function, input, Some(State::Reset), &[])
}

fn transit(function: &mut Function, input: &[u8], state: Option<State>, always: &[Field]) -> Answer {
    let is_ethernet = function.is_ethernet();
    let queue_pair = function.engine.qps.get_mut(&object(input)).ok_or(Status::BadResource)?;
    if let Some(new) = input.get(CONTEXT) {
        let mask = be32(input, OPTIONAL_AT);
        let chosen = OPTIONAL.iter().filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, field)| field);
        for field in always.iter().chain(chosen) {
            field.copy(new, &mut queue_pair.context);
        }
    }
    queue_pair.attributes = attributes(&queue_pair.context, is_ethernet);
    let state = state.unwrap_or(queue_pair.state);
    let remote = queue_pair.attributes.remote_qpn;
    function.engine.transit(object(input), state);
    Ok(format!("qp {:#x} is {state:?}, peer {remote:#x}", object(input)))
}

fn attributes(context: &[u8], is_ethernet: bool) -> Attributes {
    let get = |field: Field| field.get(context);
    let first = qpc::PRIMARY_ADDRESS_PATH.offset;
    let mac = (get(path::RMAC_47_32.within(first)) << 32 | get(path::RMAC_31_0.within(first))).to_be_bytes();
    let remote_function = if is_ethernet {
        function_of_mac(std::array::from_fn(|at| mac[at + 2]))
    } else {
        function_of_lid(get(path::RLID.within(first)) as u16)
    };
    Attributes {
        remote_qpn: low24(get(qpc::REMOTE_QPN) as u32),
        remote_function,
        q_key: get(qpc::Q_KEY) as u32,
        remote_read: get(qpc::RRE) == 1,
        remote_write: get(qpc::RWE) == 1,
        remote_atomic: get(qpc::RAE) == 1,
        min_rnr_timer: get(qpc::MIN_RNR_NAK) as u8,
        retry_count: get(qpc::RETRY_COUNT) as u8,
        rnr_retry: get(qpc::RNR_RETRY) as u8,
        ack_timeout: get(ACK_TIMEOUT) as u8,
        first_send: get(qpc::NEXT_SEND_PSN) as u32,
        first_receive: get(qpc::NEXT_RCV_PSN) as u32,
    }
}
