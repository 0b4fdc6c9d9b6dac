//! Memory keys: which of the guest's pages an address of a work request means, and who may use them.

/// The key that needs no object: the guest's own addresses, for the kernel (`resd_lkey` of QUERY_SPECIAL_CONTEXTS).
pub const RESERVED_LKEY: u32 = 0x300;
/// Ends a receive WQE's list of buffers (`MLX5_INVALID_LKEY`).
pub const INVALID_LKEY: u32 = 0x100;

/// How a key's addresses become the guest's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Translation {
    /// They are the guest's (mode PA).
    Physical,
    /// By a list of pages of 1 << `shift` bytes (mode MTT).
    Pages {
        /// Page size, log 2.
        shift: u32,
        /// Address of each page.
        pages: Vec<u64>,
    },
    /// A mode that this card does not have (KLM, KSM); every access fails.
    Unsupported(u64),
}

/// What an access wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Gather for a work request of this function.
    LocalRead,
    /// Scatter for a work request of this function.
    LocalWrite,
    /// A peer's READ.
    RemoteRead,
    /// A peer's WRITE.
    RemoteWrite,
    /// A peer's atomic.
    RemoteAtomic,
}

/// What a key allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights {
    /// Local read.
    pub local_read: bool,
    /// Local write.
    pub local_write: bool,
    /// Remote read.
    pub remote_read: bool,
    /// Remote write.
    pub remote_write: bool,
    /// Remote atomic.
    pub atomic: bool,
}

/// A memory key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryKey {
    /// The low byte of the key, which the driver chose.
    pub low_byte: u8,
    /// Its protection domain.
    pub pd: u32,
    /// First address.
    pub start: u64,
    /// Bytes; none for a key of everything (`length64`).
    pub length: Option<u64>,
    /// What may be done with it.
    pub rights: Rights,
    /// How addresses translate.
    pub translation: Translation,
}

impl MemoryKey {
    fn allows(&self, access: Access) -> bool {
        match access {
            Access::LocalRead => self.rights.local_read,
            Access::LocalWrite => self.rights.local_write,
            Access::RemoteRead => self.rights.remote_read,
            Access::RemoteWrite => self.rights.remote_write,
            Access::RemoteAtomic => self.rights.atomic,
        }
    }

    /// The guest's memory behind `length` bytes at `address`, piece by piece; none where the key does not allow it.
    pub fn pieces(&self, key: u32, pd: u32, address: u64, length: usize, access: Access) -> Option<Vec<(u64, usize)>> {
        if key as u8 != self.low_byte || pd != self.pd || !self.allows(access) {
            return None;
        }
        if let Some(size) = self.length {
            let offset = address.checked_sub(self.start)?;
            if offset.checked_add(length as u64)? > size {
                return None;
            }
        }
        match &self.translation {
            Translation::Physical => Some(vec![(address, length)]),
            Translation::Unsupported(_) => None,
            Translation::Pages { shift, pages } => {
                let size = 1_u64 << shift;
                let base = self.start & !(size - 1);
                let (mut at, mut left, mut pieces) = (address - base, length, Vec::new());
                while left > 0 {
                    let inside = at & (size - 1);
                    let piece = left.min((size - inside) as usize);
                    pieces.push((*pages.get((at >> shift) as usize)? + inside, piece));
                    at += piece as u64;
                    left -= piece;
                }
                Some(pieces)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> MemoryKey {
        MemoryKey {
            low_byte: 0x42,
            pd: 7,
            start: 0x1_0800,
            length: Some(0x1000),
            rights: Rights { local_read: true, remote_write: true, ..Rights::default() },
            translation: Translation::Pages { shift: 12, pages: vec![0xa000, 0x3000] },
        }
    }

    #[test]
    fn an_access_over_a_page_is_two_pieces() {
        let pieces = key().pieces(0x142, 7, 0x1_0ff0, 0x20, Access::LocalRead);
        assert_eq!(pieces, Some(vec![(0xaff0, 0x10), (0x3000, 0x10)]));
    }

    #[test]
    fn bounds_rights_domain_and_low_byte_are_checked() {
        let ask = |low, pd, address, length, access| key().pieces(low, pd, address, length, access);
        assert!(ask(0x42, 7, 0x1_0800, 0x1000, Access::RemoteWrite).is_some());
        assert!(ask(0x42, 7, 0x1_0800, 0x1001, Access::RemoteWrite).is_none());
        assert!(ask(0x42, 7, 0x1_07ff, 1, Access::RemoteWrite).is_none());
        assert!(ask(0x42, 7, 0x1_0800, 1, Access::RemoteRead).is_none());
        assert!(ask(0x42, 8, 0x1_0800, 1, Access::LocalRead).is_none());
        assert!(ask(0x43, 7, 0x1_0800, 1, Access::LocalRead).is_none());
        assert!(ask(0x42, 7, u64::MAX, 2, Access::LocalRead).is_none());
    }
}
