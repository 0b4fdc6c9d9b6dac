//! Completion queue: poll, arm, and wait for its event.
use super::channel::Channel;
use super::device::Device;
use super::error::{VerbsError, create_cause};
use super::ffi::{RawCq, WcArray};
use std::io;
use std::sync::Arc;

/// Completions taken per poll.
const BATCH: usize = 16;

/// One work completion. Where `status` is not 0 only `wr_id`, `status`, `vendor_err` and `qpn` hold (man ibv_poll_cq).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The wr_id of the work request.
    pub wr_id: u64,
    /// `ibv_wc_status`; 0 is success. See [`super::status_info`].
    pub status: u32,
    /// `ibv_wc_opcode`.
    pub opcode: u32,
    /// The vendor's own code.
    pub vendor_err: u32,
    /// Bytes received.
    pub byte_len: u32,
    /// Queue pair number.
    pub qpn: u32,
}

/// Room for the completions of one poll, reused from poll to poll.
pub struct Batch {
    array: WcArray<BATCH>,
    len: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self { array: WcArray::zeroed(), len: 0 }
    }
}

impl Batch {
    /// Completions of the last poll.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when the last poll found nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A completion of the last poll.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Completion> {
        if index >= self.len {
            return None;
        }
        let wc = self.array.get(index)?;
        Some(Completion {
            wr_id: wc.wr_id,
            status: wc.status,
            opcode: wc.opcode,
            vendor_err: wc.vendor_err,
            byte_len: wc.byte_len,
            qpn: wc.qp_num,
        })
    }

    /// All completions of the last poll, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Completion> + '_ {
        (0..self.len).filter_map(|index| self.get(index))
    }
}

/// A completion queue. Destroying it acknowledges its events first.
#[derive(Clone)]
pub struct Cq(pub(super) Arc<RawCq>);

impl Cq {
    /// Creates a queue of at least `depth` entries on a completion vector; with a channel it can be armed and waited for.
    pub fn create(device: &Device, channel: Option<Channel>, depth: u32, comp_vector: u32) -> Result<Self, VerbsError> {
        let limits = device.limits();
        if depth > limits.max_cqe {
            return Err(device.over_limit("CQ depth", u64::from(depth), "max_cqe", u64::from(limits.max_cqe)));
        }
        if comp_vector >= limits.comp_vectors {
            let last = u64::from(limits.comp_vectors.saturating_sub(1));
            return Err(device.over_limit("Completion vector", u64::from(comp_vector), "the last vector", last));
        }
        let created = RawCq::create(device.raw(), channel.map(|channel| channel.0), depth as i32, comp_vector as i32);
        created.map(|raw| Self(Arc::new(raw))).map_err(|source| VerbsError::CreateCq {
            device: device.name().into(),
            depth,
            comp_vector,
            max_cqe: limits.max_cqe,
            comp_vectors: limits.comp_vectors,
            cause: create_cause(&source),
            source,
        })
    }

    /// Address of the `struct ibv_cq`: what the kernel calls the user handle of this queue.
    pub fn handle(&self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// Entries that the device really gave.
    pub fn depth(&self) -> u32 {
        self.0.depth()
    }

    /// True when it has a channel.
    pub fn has_channel(&self) -> bool {
        self.0.channel().is_some()
    }

    /// Takes up to 16 completions into `batch`; a batch that is not full found the queue empty after them.
    #[inline]
    pub fn poll(&self, batch: &mut Batch) -> Result<usize, VerbsError> {
        match self.0.poll(&mut batch.array) {
            Ok(len) => {
                batch.len = len;
                Ok(len)
            }
            Err(source) => {
                batch.len = 0;
                Err(self.failed("ibv_poll_cq", source))
            }
        }
    }

    /// Arms the queue: the next completion, and only that one, raises an event.
    ///
    /// On rxe a completion that is already there raises none: poll once more after arming, before waiting.
    #[inline]
    pub fn arm(&self) -> Result<(), VerbsError> {
        self.0.arm().map_err(|source| self.failed("ibv_req_notify_cq", source))
    }

    /// Blocks until one event is read: `true`, or until a signal came: `false`. The event is acknowledged later, in bulk.
    #[inline]
    pub fn read_event(&self) -> Result<bool, VerbsError> {
        match self.0.read_event() {
            Ok(()) => Ok(true),
            Err(source) if source.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(source) => Err(self.failed("ibv_get_cq_event", source)),
        }
    }

    /// Reads the events that are there, without blocking, and gives their number. For the time between samples only.
    pub fn drain_events(&self) -> Result<u64, VerbsError> {
        let mut drained = 0;
        loop {
            match self.0.has_event() {
                Ok(true) => drained += u64::from(self.read_event()?),
                Ok(false) => return Ok(drained),
                // A signal: the watchdog's. Whoever waits next looks at its flag.
                Err(source) if source.kind() == io::ErrorKind::Interrupted => return Ok(drained),
                Err(source) => return Err(self.failed("poll of the completion channel", source)),
            }
        }
    }

    /// Acknowledges all events read so far.
    pub fn acknowledge(&self) {
        self.0.acknowledge();
    }

    #[cold]
    fn failed(&self, operation: &'static str, source: io::Error) -> VerbsError {
        VerbsError::CqCall { operation, depth: self.depth(), source }
    }
}
