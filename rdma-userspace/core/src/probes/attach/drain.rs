//! Reading the ring: raw records in ring order, nothing decoded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aya::maps::{MapData, RingBuf};
use ebpf_probes::Header;
use ebpf_probes::config::KINDS_MAX;

/// Records that the reader got, by kind; the last slot counts kinds that the array has no room for.
#[derive(Debug)]
pub(super) struct Delivered([AtomicU64; KINDS_MAX as usize + 1]);

impl Delivered {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Delivered(std::array::from_fn(|_| AtomicU64::new(0))))
    }

    pub(super) fn of(&self, kind: usize) -> u64 {
        self.0[kind.min(KINDS_MAX as usize)].load(Ordering::Relaxed)
    }

    fn count(&self, record: &[u8]) {
        let kind = record.first_chunk::<2>().map_or(usize::MAX, |bytes| usize::from(u16::from_le_bytes(*bytes)));
        self.0[kind.min(KINDS_MAX as usize)].fetch_add(1, Ordering::Relaxed);
    }
}

/// The reader's end of the ring. It may live on another thread than [`super::Probes`].
pub struct Drain {
    ring: RingBuf<MapData>,
    delivered: Arc<Delivered>,
    ring_bytes: u32,
}

impl Drain {
    pub(super) fn new(ring: RingBuf<MapData>, delivered: Arc<Delivered>, ring_bytes: u32) -> Self {
        Drain { ring, delivered, ring_bytes }
    }

    /// Hands every record that is in the ring to `sink` and returns how many there were. Never waits. Ends after as many records
    /// as the ring can hold, so that a busy kernel cannot keep it for ever.
    pub fn drain(&mut self, mut sink: impl FnMut(&[u8])) -> u64 {
        let limit = u64::from(self.ring_bytes) / size_of::<Header>() as u64;
        let mut count = 0;
        while count < limit {
            let Some(record) = self.ring.next() else { break };
            self.delivered.count(&record);
            sink(&record);
            count += 1;
        }
        count
    }
}
