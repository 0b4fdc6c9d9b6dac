//! Big-endian words and bit fields, as the device's interface counts them: bit 0 is the most significant bit of byte 0.

/// A field of a structure of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// First bit, from the start of the structure.
    pub offset: usize,
    /// Width, 1 to 64.
    pub bits: usize,
}

impl Field {
    /// A field of `bits` bits from bit `offset` on.
    pub const fn new(offset: usize, bits: usize) -> Self {
        Self { offset, bits }
    }

    /// The same field of a structure that itself begins at bit `base`.
    pub const fn within(self, base: usize) -> Self {
        Self::new(self.offset + base, self.bits)
    }

    /// Its value; bits beyond the end of `bytes` are 0.
    pub fn get(self, bytes: &[u8]) -> u64 {
        (self.offset..self.offset + self.bits).fold(0, |value, bit| {
            let byte = bytes.get(bit / 8).copied().unwrap_or(0);
            value << 1 | u64::from(byte >> (7 - bit % 8) & 1)
        })
    }

    /// Sets it; bits beyond the end of `bytes` are dropped.
    pub fn set(self, bytes: &mut [u8], value: u64) {
        for index in 0..self.bits {
            let bit = self.offset + index;
            let Some(byte) = bytes.get_mut(bit / 8) else { return };
            let mask = 1 << (7 - bit % 8);
            let is_set = value >> (self.bits - 1 - index) & 1 == 1;
            *byte = if is_set { *byte | mask } else { *byte & !mask };
        }
    }

    /// Copies it from one structure to another of the same kind.
    pub fn copy(self, from: &[u8], to: &mut [u8]) {
        if self.bits <= 64 {
            self.set(to, self.get(from));
        } else if self.offset.is_multiple_of(8) && self.bits.is_multiple_of(8) {
            let bytes = self.offset / 8..(self.offset + self.bits) / 8;
            if let (Some(from), Some(to)) = (from.get(bytes.clone()), to.get_mut(bytes)) {
                to.copy_from_slice(from);
            }
        }
    }
}

/// Sets several fields at once.
pub fn set_all(bytes: &mut [u8], values: &[(Field, u64)]) {
    for (field, value) in values {
        field.set(bytes, *value);
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..at + N).and_then(|part| part.try_into().ok()).unwrap_or([0; N])
}

/// The big-endian 16-bit word at byte `at`; 0 beyond the end.
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

/// The big-endian 32-bit word at byte `at`; 0 beyond the end.
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

/// The big-endian 64-bit word at byte `at`; 0 beyond the end.
pub fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

/// Writes `value` at byte `at`; nothing beyond the end.
pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(part) = bytes.get_mut(at..at + value.len()) {
        part.copy_from_slice(value);
    }
}

/// Writes a big-endian 32-bit word at byte `at`.
pub fn put32(bytes: &mut [u8], at: usize, value: u32) {
    put(bytes, at, &value.to_be_bytes());
}

/// The low 24 bits, as object numbers and counters of the interface are.
pub const fn low24(word: u32) -> u32 {
    word & 0xff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_counts_from_the_most_significant_bit() {
        let mut bytes = [0_u8; 4];
        Field::new(3, 5).set(&mut bytes, 0b10101);
        assert_eq!(bytes, [0b0001_0101, 0, 0, 0]);
        Field::new(8, 24).set(&mut bytes, 0xab_cdef);
        assert_eq!(be32(&bytes, 0), 0x15ab_cdef);
        assert_eq!(Field::new(8, 24).get(&bytes), 0xab_cdef);
        assert_eq!(Field::new(4, 8).get(&bytes), 0x5a);
    }

    #[test]
    fn beyond_the_end_there_is_nothing() {
        let mut bytes = [0xff_u8; 2];
        assert_eq!(Field::new(12, 8).get(&bytes), 0xf0);
        Field::new(12, 8).set(&mut bytes, 0);
        assert_eq!(bytes, [0xff, 0xf0]);
        assert_eq!(be32(&bytes, 0), 0);
    }

    #[test]
    fn wide_fields_are_copied_by_bytes() {
        let from: Vec<u8> = (0..32).collect();
        let mut to = vec![0; 32];
        Field::new(64, 128).copy(&from, &mut to);
        assert_eq!(to[8..24], from[8..24]);
        assert_eq!(to[..8], [0; 8]);
    }
}
