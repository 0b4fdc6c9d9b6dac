//! Queue pairs: what they are made of, and what both of their halves remember.

use super::buffer::QueueBuffer;
use super::completion::Syndrome;
use super::message::{Action, Request, Transport};
use super::wqe::Segment;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// States, as the interface numbers them (`MLX5_QP_STATE_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// Reset.
    Reset = 0,
    /// Receives may be posted.
    Init = 1,
    /// It receives.
    ReadyToReceive = 2,
    /// It sends.
    ReadyToSend = 3,
    /// Everything is flushed.
    Error = 6,
}

/// A send queue.
#[derive(Debug, Clone)]
pub struct SendQueue {
    /// Where it begins in the queue pair's buffer, in bytes.
    pub offset: u64,
    /// Blocks of 64 bytes, log 2.
    pub log_size: u32,
    /// Its completion queue.
    pub cqn: u32,
    /// Blocks taken.
    pub head: u16,
}

/// Where receives come from.
#[derive(Debug, Clone)]
pub enum Receives {
    /// There are none.
    None,
    /// A queue of its own, at the start of the buffer.
    Own {
        /// Elements, log 2.
        log_size: u32,
        /// Bytes of an element.
        stride: u32,
        /// Elements taken.
        head: u16,
    },
    /// A shared receive queue.
    Shared(u32),
}

/// What the driver sets by its transitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The peer.
    pub remote_qpn: u32,
    /// The peer's function; none where its address is nobody's.
    pub remote_function: Option<usize>,
    /// Queue key.
    pub q_key: u32,
    /// Whether the peer may READ.
    pub remote_read: bool,
    /// Whether the peer may WRITE.
    pub remote_write: bool,
    /// Whether the peer may do atomics.
    pub remote_atomic: bool,
    /// Code of the time that a peer waits after "receiver not ready" (InfiniBand table).
    pub min_rnr_timer: u8,
    /// Retries after a time-out.
    pub retry_count: u8,
    /// Retries after "receiver not ready"; 7 is for ever.
    pub rnr_retry: u8,
    /// Code of the time-out: 4.096 µs << code, 0 is for ever.
    pub ack_timeout: u8,
    /// First sequence that it sends.
    pub first_send: u32,
    /// First sequence that it expects.
    pub first_receive: u32,
}

impl Attributes {
    /// How long it waits for an answer.
    pub fn timeout(&self) -> Option<Duration> {
        (self.ack_timeout != 0).then(|| Duration::from_nanos(4096_u64 << self.ack_timeout.min(31)))
    }

    /// How long a peer waits after "receiver not ready".
    pub fn rnr_wait(&self) -> Duration {
        /// In units of 10 µs, by code (InfiniBand architecture specification, "RNR NAK timer field").
        const TENS_OF_US: [u32; 32] = [
            65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
            12288, 16384, 24576, 32768, 49152,
        ];
        Duration::from_micros(u64::from(TENS_OF_US[usize::from(self.min_rnr_timer & 31)]) * 10)
    }
}

/// A request that was taken from the send queue and has no CQE yet.
#[derive(Debug)]
pub struct InFlight {
    /// The request, to be sent again; none where there was nothing to send.
    pub request: Option<Request>,
    /// Index of its element.
    pub wqe: u16,
    /// Its opcode.
    pub opcode: u8,
    /// Whether success has a CQE.
    pub signalled: bool,
    /// Bytes, for the CQE.
    pub length: usize,
    /// Where the answer's data goes.
    pub segments: Vec<Segment>,
    /// How it ended.
    pub outcome: Option<Result<(), Syndrome>>,
}

impl InFlight {
    /// Whether its answer brings data.
    pub fn brings_data(&self) -> bool {
        self.request.as_ref().is_some_and(|request| request.action.brings_data())
    }
}

/// The sending half.
#[derive(Debug, Default)]
pub struct Requester {
    /// In the order of the queue.
    pub in_flight: VecDeque<InFlight>,
    /// Sequence of the next request.
    pub next: u32,
    /// Time-outs since the last answer.
    pub retries: u8,
    /// "Receiver not ready" since the last answer.
    pub rnr_retries: u8,
    /// Whether it waits after "receiver not ready".
    pub is_waiting: bool,
    /// When it last sent or heard something.
    pub last_progress: Option<Instant>,
    /// Whether a time-out is under way.
    pub has_timer: bool,
}

/// The receiving half.
#[derive(Debug, Default)]
pub struct Responder {
    /// Sequence of the next request.
    pub expected: u32,
    /// Whether the sender was told to send again: nothing is refused twice.
    pub has_refused: bool,
    /// Answers of the last atomics, which must not be done twice.
    pub atomics: VecDeque<(u32, Vec<u8>)>,
}

/// A queue pair.
#[derive(Debug)]
pub struct QueuePair {
    /// Its number.
    pub qpn: u32,
    /// Its service.
    pub transport: Transport,
    /// Its state.
    pub state: State,
    /// Its protection domain.
    pub pd: u32,
    /// The number that the driver gave it.
    pub user_index: u32,
    /// Pages of its queues.
    pub buffer: QueueBuffer,
    /// Address of its doorbell record: receive counter, then send counter.
    pub doorbell: u64,
    /// The send queue.
    pub send: Option<SendQueue>,
    /// Where receives come from.
    pub receives: Receives,
    /// The completion queue of receives.
    pub receive_cqn: u32,
    /// The context as the driver wrote it, for QUERY_QP.
    pub context: Vec<u8>,
    /// What the transitions set.
    pub attributes: Attributes,
    /// The sending half.
    pub requester: Requester,
    /// The receiving half.
    pub responder: Responder,
}

impl QueuePair {
    /// Forgets what happened, as in the reset state.
    pub fn reset(&mut self) {
        self.requester = Requester::default();
        self.responder = Responder::default();
        if let Some(send) = &mut self.send {
            send.head = 0;
        }
        if let Receives::Own { head, .. } = &mut self.receives {
            *head = 0;
        }
    }

    /// Whether it takes requests.
    pub fn is_receiving(&self) -> bool {
        matches!(self.state, State::ReadyToReceive | State::ReadyToSend)
    }
}

/// Whether a service has this action.
pub const fn serves(transport: Transport, action: &Action) -> bool {
    match transport {
        Transport::Reliable => true,
        Transport::Unreliable => matches!(action, Action::Send { .. } | Action::Write { .. }),
        Transport::Datagram => matches!(action, Action::Send { .. }),
        Transport::Ethernet | Transport::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_specification() {
        let attributes = Attributes { min_rnr_timer: 12, ack_timeout: 14, ..Attributes::default() };
        assert_eq!(attributes.rnr_wait(), Duration::from_micros(640));
        assert_eq!(attributes.timeout(), Some(Duration::from_nanos(67_108_864)));
        assert_eq!(Attributes::default().rnr_wait(), Duration::from_micros(655_360));
        assert_eq!(Attributes::default().timeout(), None);
    }
}
