//! Shared receive queues: a list of elements, each of which names the next.

use super::buffer::QueueBuffer;
use super::memory::Memory;
use crate::bits::be16;

/// Bytes of the segment that names the next element (`struct mlx5_wqe_srq_next_seg`).
const NEXT_SEGMENT: usize = 16;

/// A shared receive queue (an RMP of the interface).
#[derive(Debug, Clone)]
pub struct SharedReceives {
    /// Its protection domain.
    pub pd: u32,
    /// Its pages.
    pub buffer: QueueBuffer,
    /// Bytes of an element, log 2.
    pub log_stride: u32,
    /// Address of its doorbell record: elements posted.
    pub doorbell: u64,
    /// Elements below which the driver wants an event; 0 for none. An event takes it back.
    pub limit: u16,
    next: u16,
    taken: u16,
}

impl SharedReceives {
    /// An empty one.
    pub fn new(pd: u32, buffer: QueueBuffer, log_stride: u32, doorbell: u64) -> Self {
        Self { pd, buffer, log_stride, doorbell, limit: 0, next: 0, taken: 0 }
    }

    /// Takes the next element: its index and its data segments. None where none is posted.
    pub fn take(&mut self, memory: &Memory) -> Option<(u16, Vec<u8>)> {
        let posted = memory.word(self.doorbell).ok()? as u16;
        if posted == self.taken {
            return None;
        }
        let address = self.buffer.address(u64::from(self.next) << self.log_stride)?;
        let element = memory.bytes(address, 1 << self.log_stride).ok()?;
        let index = self.next;
        self.next = be16(&element, 2);
        self.taken = self.taken.wrapping_add(1);
        Some((index, element[NEXT_SEGMENT.min(element.len())..].to_vec()))
    }

    /// Whether the limit's event is due now; it is due once.
    pub fn is_below_limit(&mut self, memory: &Memory) -> bool {
        let posted = memory.word(self.doorbell).unwrap_or(0) as u16;
        let is_below = self.limit != 0 && posted.wrapping_sub(self.taken) < self.limit;
        if is_below {
            self.limit = 0;
        }
        is_below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_taken_in_the_order_of_their_links() {
        let memory = Memory::anonymous(0, 0x3000);
        let buffer = QueueBuffer::new(&0x1000_u64.to_be_bytes(), 0, 0, 128);
        for (index, next) in [(0_u64, 2_u16), (2, 1), (1, 3)] {
            memory.write(0x1002 + index * 32, &next.to_be_bytes()).unwrap();
            memory.write(0x1010 + index * 32, &[index as u8]).unwrap();
        }
        memory.write(0, &2_u32.to_be_bytes()).unwrap();
        let mut shared = SharedReceives::new(1, buffer, 5, 0);
        shared.limit = 2;
        let (index, data) = shared.take(&memory).unwrap();
        assert_eq!((index, data[0], data.len()), (0, 0, 16));
        assert!(shared.is_below_limit(&memory));
        assert!(!shared.is_below_limit(&memory));
        assert_eq!(shared.take(&memory).unwrap().0, 2);
        assert_eq!(shared.take(&memory), None);
        memory.write(0, &3_u32.to_be_bytes()).unwrap();
        assert_eq!(shared.take(&memory).unwrap().0, 1);
    }
}
