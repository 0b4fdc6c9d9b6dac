//! Receives: taking one, filling it, flushing what is posted.

use super::completion::{Completion, Kind, Syndrome};
use super::mkey::{Access, INVALID_LKEY};
use super::queue_pair::{QueuePair, Receives};
use super::{Asynchronous, Effect, Engine};
use crate::bits::{be32, be64};

/// A receive that was taken.
pub(super) struct Receive {
    /// Index of its element.
    pub(super) wqe: u16,
    pd: u32,
    segments: Vec<(u32, u64, usize)>,
}

impl Receive {
    /// Bytes that it can hold.
    pub(super) fn capacity(&self) -> usize {
        self.segments.iter().map(|segment| segment.2).sum()
    }
}

impl Engine {
    /// Takes the next receive of a queue pair; none where none is posted.
    pub(super) fn take_receive(&mut self, qp: &mut QueuePair) -> Option<Receive> {
        match &mut qp.receives {
            Receives::None => None,
            Receives::Own { log_size, stride, head } => {
                let posted = self.memory.word(qp.doorbell).ok()? as u16;
                if posted == *head {
                    return None;
                }
                let slot = u64::from(*head) & ((1 << *log_size) - 1);
                let address = qp.buffer.address(slot * u64::from(*stride))?;
                let element = self.memory.bytes(address, *stride as usize).ok()?;
                let wqe = *head;
                *head = head.wrapping_add(1);
                Some(Receive { wqe, pd: qp.pd, segments: segments(&element) })
            }
            Receives::Shared(number) => {
                let shared = self.srqs.get_mut(number)?;
                let (wqe, element) = shared.take(&self.memory)?;
                let pd = shared.pd;
                if shared.is_below_limit(&self.memory) {
                    self.effects.push(Effect::Asynchronous(Asynchronous::SharedReceiveLimit(*number)));
                }
                Some(Receive { wqe, pd, segments: segments(&element) })
            }
        }
    }

    /// Fills a receive; none where a key does not allow it.
    pub(super) fn fill(&self, receive: &Receive, data: &[u8]) -> Option<()> {
        let mut rest = data;
        for (lkey, address, length) in &receive.segments {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*length).min(rest.len()));
            self.scatter(*lkey, receive.pd, *address, Access::LocalWrite, piece)?;
            rest = after;
        }
        Some(())
    }

    /// A CQE for each receive that is posted, and none of them is any more.
    pub(super) fn flush_receives(&mut self, qp: &mut QueuePair) {
        if !matches!(qp.receives, Receives::Own { .. }) {
            return;
        }
        while let Some(receive) = self.take_receive(qp) {
            self.complete(qp.receive_cqn, &failed(qp, Kind::ResponderError, receive.wqe, 0, Syndrome::Flushed));
        }
    }
}

/// The completion of a request or receive that failed.
pub(super) fn failed(qp: &QueuePair, kind: Kind, wqe: u16, wqe_opcode: u8, syndrome: Syndrome) -> Completion {
    Completion {
        kind,
        qpn: qp.qpn,
        user_index: qp.user_index,
        wqe,
        wqe_opcode,
        bytes: 0,
        immediate: 0,
        source: 0,
        source_lid: 0,
        syndrome: Some(syndrome),
        solicited: true,
    }
}

/// Key, address and length of an element's buffers.
fn segments(element: &[u8]) -> Vec<(u32, u64, usize)> {
    let segment = |bytes: &[u8]| (be32(bytes, 4), be64(bytes, 8), (be32(bytes, 0) & 0x7fff_ffff) as usize);
    element.chunks_exact(16).map(segment).take_while(|(lkey, ..)| *lkey != INVALID_LKEY).collect()
}
