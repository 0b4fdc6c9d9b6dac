//! What a message holds: a pattern that tells the side it comes from, and a sequence number in its last bytes.
//!
//! The sequence takes the last 8 bytes where the size is a multiple of 8, and the last byte otherwise; it is never 0 and differs from the
//! one before, so that a watcher of zeroed memory sees each message arrive. A message begins on a cache line, so 8 bytes are aligned.
use capture::Side;

/// Where the messages of an area lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub size_bytes: u32,
    pub stride_bytes: usize,
    pub slots: u32,
}

impl Layout {
    pub fn area_bytes(&self) -> usize {
        self.stride_bytes * self.slots as usize
    }

    /// Offset of the slot that the message with this number uses.
    #[inline]
    pub fn offset(&self, number: u64) -> usize {
        (number % u64::from(self.slots)) as usize * self.stride_bytes
    }

    /// The sequence takes 8 bytes.
    #[inline]
    pub fn is_wide(&self) -> bool {
        self.size_bytes.is_multiple_of(8)
    }

    /// The sequence as a message carries it.
    #[inline]
    pub fn on_wire(&self, sequence: u64) -> u64 {
        if self.is_wide() { sequence } else { sequence.wrapping_sub(1) % 255 + 1 }
    }

    /// The bytes before the sequence.
    pub fn pattern(&self, from: Side) -> Vec<u8> {
        let salt = if from == Side::Client { 0x35 } else { 0xca };
        let tail = if self.is_wide() { 8 } else { 1 };
        (0..self.size_bytes as usize - tail).map(|i| (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ salt).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn sequences_are_never_zero_and_never_repeat_at_once() {
        for size_bytes in [1, 7, 8, 12, 64, 4096] {
            let layout = Layout { size_bytes, stride_bytes: (size_bytes as usize).next_multiple_of(64), slots: 3 };
            for sequence in 1..2000 {
                let on_wire = layout.on_wire(sequence);
                assert_ne!(on_wire, 0);
                assert_ne!(on_wire, layout.on_wire(sequence + 1));
                assert!(size_bytes % 8 == 0 || on_wire <= 255);
            }
            assert_eq!((layout.offset(0), layout.offset(3)), (0, 0));
            assert!(layout.offset(5) + size_bytes as usize <= layout.area_bytes());
        }
    }
}
