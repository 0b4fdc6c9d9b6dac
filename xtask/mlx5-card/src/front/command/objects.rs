//! Commands about event queues, completion queues, memory keys, shared receive queues and user access regions.

use super::super::event_queue::EventQueue;
use super::super::layout::{cqc, create_mkey, eqc, mkc, wq};
use super::super::pci;
use super::{Answer, Function, Status, object, put_context};
use crate::bits::{be64, low24, put32};
use crate::engine::buffer::QueueBuffer;
use crate::engine::completion_queue::{CompletionQueue, Moderation};
use crate::engine::mkey::{MemoryKey, Rights, Translation};
use crate::engine::shared_receive::SharedReceives;

/// Where the list of pages begins in the commands that make queues and keys.
pub(super) const PAGES_AT: usize = 272;
/// Where a context of 64 bytes begins in them.
const CONTEXT_AT: usize = 16;
/// The mask of events in CREATE_EQ.
const EVENT_MASK_AT: usize = 88;
/// The context of a shared receive queue and, in it, of its work queue.
const RMP_AT: usize = 32;
const RMP_WQ_AT: usize = RMP_AT + 48;
/// Numbers of event queues.
const EVENT_QUEUES: std::ops::Range<u32> = 1..64;

fn pages(input: &[u8]) -> &[u8] {
    input.get(PAGES_AT..).unwrap_or_default()
}

pub fn create_eq(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    let context = &input[CONTEXT_AT..];
    let number = EVENT_QUEUES.into_iter().find(|number| !function.event_queues.contains_key(number)).ok_or(Status::NoResources)?;
    let log_size = eqc::LOG_EQ_SIZE.get(context) as u32;
    let buffer = QueueBuffer::new(pages(input), eqc::LOG_PAGE_SIZE.get(context), eqc::PAGE_OFFSET.get(context), 64 << log_size);
    let (vector, mask) = (eqc::INTR.get(context) as u32, be64(input, EVENT_MASK_AT));
    function.event_queues.insert(number, EventQueue::new(buffer, log_size, vector, mask));
    put32(output, 8, number);
    Ok(format!("eq {number}, 2^{log_size}, vector {vector}, events {mask:#x}"))
}

pub fn destroy_eq(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    let number = object(input) & 0xff;
    function.event_queues.remove(&number).map(|_| format!("eq {number}")).ok_or(Status::BadResource)
}

fn moderation(context: &[u8]) -> Moderation {
    Moderation { count: cqc::CQ_MAX_COUNT.get(context) as u16, period_us: cqc::CQ_PERIOD.get(context) as u16 }
}

pub fn create_cq(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    let context = &input[CONTEXT_AT..];
    let log_size = cqc::LOG_CQ_SIZE.get(context) as u32;
    let size = cqc::CQE_SZ.get(context);
    if size > 1 {
        return Err(Status::BadParameter);
    }
    let eqn = cqc::C_EQN_OR_APU_ELEMENT.get(context) as u32 & 0xff;
    if !function.event_queues.contains_key(&eqn) {
        return Err(Status::BadResource);
    }
    let bytes = (64 << size) << log_size;
    let buffer = QueueBuffer::new(pages(input), cqc::LOG_PAGE_SIZE.get(context), cqc::PAGE_OFFSET.get(context), bytes);
    let mut queue = CompletionQueue::new(buffer, log_size, size == 1, eqn, cqc::DBR_ADDR.get(context));
    queue.ignores_overrun = cqc::OI.get(context) == 1;
    queue.moderation = moderation(context);
    let number = function.next_number();
    function.engine.cqs.insert(number, queue);
    put32(output, 8, number);
    Ok(format!("cq {number:#x}, 2^{log_size}, eq {eqn}"))
}

pub fn destroy_cq(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    let number = object(input);
    function.engine.cqs.remove(&number).map(|_| format!("cq {number:#x}")).ok_or(Status::BadResource)
}

/// Moderation alone; the size cannot be changed.
pub fn modify_cq(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    const FIELDS_AT: usize = 12;
    const PERIOD: u32 = 1 << 0;
    const COUNT: u32 = 1 << 1;
    let wanted = crate::bits::be32(input, FIELDS_AT);
    let op_mod = crate::bits::be32(input, 4) & 0xffff;
    if op_mod != 0 || wanted & !(PERIOD | COUNT) != 0 {
        return Err(Status::BadParameter);
    }
    let queue = function.engine.cqs.get_mut(&object(input)).ok_or(Status::BadResource)?;
    let new = moderation(&input[CONTEXT_AT..]);
    if wanted & PERIOD != 0 {
        queue.moderation.period_us = new.period_us;
    }
    if wanted & COUNT != 0 {
        queue.moderation.count = new.count;
    }
    Ok(format!("cq {:#x}: {:?}", object(input), queue.moderation))
}

pub fn create_mkey(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    const MODE_PHYSICAL: u64 = 0;
    const MODE_PAGES: u64 = 1;
    let context = &input[CONTEXT_AT..];
    let is_set = |field: crate::bits::Field| field.get(context) == 1;
    let translation = match mkc::ACCESS_MODE_1_0.get(context) | mkc::ACCESS_MODE_4_2.get(context) << 2 {
        MODE_PHYSICAL => Translation::Physical,
        MODE_PAGES => {
            let count = create_mkey::TRANSLATIONS_OCTWORD_ACTUAL_SIZE.get(input) as usize * 2;
            let list = pages(input).chunks_exact(8).take(count);
            Translation::Pages { shift: mkc::LOG_PAGE_SIZE.get(context) as u32, pages: list.map(|page| be64(page, 0) & !0xfff).collect() }
        }
        mode => Translation::Unsupported(mode),
    };
    if let Translation::Unsupported(mode) = translation {
        function.trouble(format!("a memory key of mode {mode}, which this card does not have, is made; every access by it will fail"));
    }
    let key = MemoryKey {
        low_byte: mkc::MKEY_7_0.get(context) as u8,
        pd: mkc::PD.get(context) as u32,
        start: mkc::START_ADDR.get(context),
        length: (!is_set(mkc::LENGTH64)).then(|| mkc::LEN.get(context)),
        rights: Rights {
            local_read: is_set(mkc::LR),
            local_write: is_set(mkc::LW),
            remote_read: is_set(mkc::RR),
            remote_write: is_set(mkc::RW),
            atomic: is_set(mkc::A),
        },
        translation,
    };
    let number = function.next_number();
    let note = format!("key {number:#x}{:02x}, {:#x} bytes at {:#x}", key.low_byte, key.length.unwrap_or(u64::MAX), key.start);
    function.engine.mkeys.insert(number, key);
    put32(output, 8, number);
    Ok(note)
}

pub fn destroy_mkey(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    function.engine.mkeys.remove(&object(input)).map(|_| format!("key {:#x}", object(input))).ok_or(Status::BadResource)
}

pub fn create_rmp(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    let queue = input.get(RMP_WQ_AT..).ok_or(Status::BadParameter)?;
    let (log_size, log_stride) = (wq::LOG_WQ_SZ.get(queue), wq::LOG_WQ_STRIDE.get(queue));
    let bytes = 1 << (log_size + log_stride);
    let buffer = QueueBuffer::new(pages(input), wq::LOG_WQ_PG_SZ.get(queue), wq::PAGE_OFFSET.get(queue), bytes);
    let mut shared = SharedReceives::new(wq::PD.get(queue) as u32, buffer, log_stride as u32, wq::DBR_ADDR.get(queue));
    shared.limit = wq::LWM.get(queue) as u16;
    let number = function.next_number();
    function.engine.srqs.insert(number, shared);
    put32(output, 8, number);
    Ok(format!("srq {number:#x}, 2^{log_size} of 2^{log_stride} bytes"))
}

/// The limit alone can be changed.
pub fn modify_rmp(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    let queue = input.get(RMP_WQ_AT..).ok_or(Status::BadParameter)?;
    let shared = function.engine.srqs.get_mut(&object(input)).ok_or(Status::BadResource)?;
    shared.limit = wq::LWM.get(queue) as u16;
    Ok(format!("srq {:#x}, limit {}", object(input), shared.limit))
}

pub fn query_rmp(function: &mut Function, input: &[u8], output: &mut [u8]) -> Answer {
    let shared = function.engine.srqs.get(&object(input)).ok_or(Status::BadResource)?;
    let mut queue = [0; 64];
    wq::LWM.set(&mut queue, shared.limit.into());
    put_context(output, RMP_WQ_AT, &queue);
    Ok(String::new())
}

pub fn destroy_rmp(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    function.engine.srqs.remove(&object(input)).map(|_| format!("srq {:#x}", object(input))).ok_or(Status::BadResource)
}

/// The limit of a shared receive queue, once more.
pub fn arm_receives(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    let shared = function.engine.srqs.get_mut(&object(input)).ok_or(Status::BadResource)?;
    shared.limit = crate::bits::be32(input, 12) as u16;
    Ok(format!("srq {:#x}, limit {}", object(input), shared.limit))
}

pub fn alloc_uar(function: &mut Function, _: &[u8], output: &mut [u8]) -> Answer {
    let page = (pci::FIRST_UAR..pci::PAGES).find(|page| !function.uars.contains(page)).ok_or(Status::NoResources)?;
    function.uars.insert(page);
    put32(output, 8, low24(page));
    Ok(format!("uar {page}"))
}

pub fn dealloc_uar(function: &mut Function, input: &[u8], _: &mut [u8]) -> Answer {
    function.uars.remove(&object(input)).then(|| format!("uar {}", object(input))).ok_or(Status::BadResource)
}
