//! The network device's send queues: what is posted to them is completed, so that the driver's queues move.

use super::super::layout::{sqc, wq};
use super::objects::PAGES_AT;
use super::{Answer, Function, Status};
use crate::bits::put32;
use crate::engine::buffer::QueueBuffer;
use crate::engine::message::Transport;
use crate::engine::queue_pair::{Attributes, QueuePair, Receives, Requester, Responder, SendQueue, State};

/// The context of a send queue and, in it, of its work queue.
const CONTEXT_AT: usize = 32;
const WQ_AT: usize = CONTEXT_AT + 48;

pub fn create_sq(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    let queue = input.get(WQ_AT..).ok_or(Status::BadParameter)?;
    let context = &input[CONTEXT_AT..];
    let log_size = wq::LOG_WQ_SZ.get(queue) as u32;
    let pages = input.get(PAGES_AT..).unwrap_or_default();
    let buffer = QueueBuffer::new(pages, wq::LOG_WQ_PG_SZ.get(queue), wq::PAGE_OFFSET.get(queue), 64 << log_size);
    let number = function.next_number();
    let cqn = sqc::CQN.get(context) as u32;
    let queue_pair = QueuePair {
        qpn: number,
        transport: Transport::Ethernet,
        state: State::ReadyToSend,
        pd: wq::PD.get(queue) as u32,
        user_index: sqc::USER_INDEX.get(context) as u32,
        buffer,
        doorbell: wq::DBR_ADDR.get(queue),
        send: Some(SendQueue { offset: 0, log_size, cqn, head: 0 }),
        receives: Receives::None,
        receive_cqn: 0,
        context: Vec::new(),
        attributes: Attributes::default(),
        requester: Requester::default(),
        responder: Responder::default(),
    };
    function.engine.qps.insert(number, queue_pair);
    put32(output, 8, number);
    Ok(format!("sq {number:#x}, 2^{log_size}, cq {cqn:#x}"))
}
