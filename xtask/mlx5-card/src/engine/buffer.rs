//! A queue's buffer: a ring that lies in pages of the guest.

use crate::bits::be64;

/// The pages of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueBuffer {
    pages: Vec<u64>,
    page_shift: u32,
    first: u64,
}

impl QueueBuffer {
    /// From a list of big-endian page addresses: pages of 4096 << `log_page` bytes, the ring begins `page_offset` 64ths of a
    /// page into the first one and has `bytes` bytes.
    pub fn new(list: &[u8], log_page: u64, page_offset: u64, bytes: u64) -> Self {
        let page_shift = 12 + log_page as u32;
        let first = page_offset << (page_shift - 6);
        let count = (first + bytes).div_ceil(1 << page_shift) as usize;
        let pages = (0..count.min(list.len() / 8)).map(|index| be64(list, index * 8) & !0xfff).collect();
        Self { pages, page_shift, first }
    }

    /// The guest's address of byte `offset` of the ring; none where the list of pages is too short.
    pub fn address(&self, offset: u64) -> Option<u64> {
        let at = self.first + offset;
        let page = self.pages.get((at >> self.page_shift) as usize)?;
        Some(page + (at & ((1 << self.page_shift) - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_goes_on_in_the_next_page() {
        let list: Vec<u8> = [0x5000_u64, 0x9000].iter().flat_map(|page| page.to_be_bytes()).collect();
        let buffer = QueueBuffer::new(&list, 0, 32, 4096);
        assert_eq!(buffer.address(0), Some(0x5800));
        assert_eq!(buffer.address(0x7ff), Some(0x5fff));
        assert_eq!(buffer.address(0x800), Some(0x9000));
        assert_eq!(buffer.address(0x1800), None);
    }

    #[test]
    fn the_offset_is_in_64ths_of_a_page_of_any_size() {
        let buffer = QueueBuffer::new(&0x10_0000_u64.to_be_bytes(), 4, 3, 4096);
        assert_eq!(buffer.address(0), Some(0x10_0000 + 3 * 1024));
    }
}
