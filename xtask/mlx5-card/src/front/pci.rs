//! PCI: configuration space and the places of BAR 0.

/// Bytes of BAR 0: pages of the device, then user access regions.
pub const BAR0_SIZE: u64 = 32 << 20;
/// The MSI-X table, in BAR 0. QEMU keeps it.
const MSIX_TABLE: u32 = 0x3000;
/// The MSI-X pending bits, in BAR 0. QEMU keeps them.
const MSIX_PENDING: u32 = 0x4000;
/// First page of BAR 0 that is a user access region.
pub const FIRST_UAR: u32 = 8;
/// Pages of BAR 0.
pub const PAGES: u32 = (BAR0_SIZE >> 12) as u32;
/// Bytes of the configuration space.
pub const CONFIG_SIZE: usize = 256;

const VENDOR: u16 = 0x15b3;
/// ConnectX-5: the newest driver knows it, and the oldest too.
const DEVICE: u16 = 0x1017;
const SUBSYSTEM: u16 = 0x0006;
const CLASS_NETWORK: u8 = 2;
const SUBCLASS_ETHERNET: u8 = 0;
const SUBCLASS_INFINIBAND: u8 = 7;
const CAPABILITIES_AT: usize = 0x60;
const MSIX_AT: usize = 0x9c;
/// Bytes that the guest may write: command, cache line size, interrupt line, device control, link control, MSI-X control.
const WRITABLE: [usize; 9] = [0x04, 0x05, 0x0c, 0x3c, 0x68, 0x69, 0x70, 0x71, MSIX_AT + 3];

/// The configuration space of a function.
#[derive(Debug, Clone)]
pub struct ConfigSpace {
    bytes: [u8; CONFIG_SIZE],
}

impl ConfigSpace {
    /// A PCI Express endpoint with `vectors` MSI-X vectors, whose one BAR QEMU places.
    pub fn new(is_ethernet: bool, vectors: u32) -> Self {
        let mut bytes = [0; CONFIG_SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0x00, &VENDOR.to_le_bytes());
        put(0x02, &DEVICE.to_le_bytes());
        put(0x06, &[0x10]); // status: a list of capabilities
        put(0x0a, &[if is_ethernet { SUBCLASS_ETHERNET } else { SUBCLASS_INFINIBAND }, CLASS_NETWORK]);
        put(0x10, &[0x0c]); // BAR 0: 64 bits, prefetchable
        put(0x2c, &VENDOR.to_le_bytes());
        put(0x2e, &SUBSYSTEM.to_le_bytes());
        put(0x34, &[CAPABILITIES_AT as u8]);
        put(CAPABILITIES_AT, &[0x10, MSIX_AT as u8, 0x02, 0x00]); // PCI Express endpoint, version 2
        put(CAPABILITIES_AT + 4, &0x8002_u32.to_le_bytes()); // role-based errors, payload of 512 bytes
        put(CAPABILITIES_AT + 0x0c, &0x103_u32.to_le_bytes()); // link: 16 lanes, 8 GT/s
        put(CAPABILITIES_AT + 0x12, &0x103_u16.to_le_bytes());
        put(MSIX_AT, &[0x11, 0x00]);
        put(MSIX_AT + 2, &(vectors as u16 - 1).to_le_bytes());
        put(MSIX_AT + 4, &MSIX_TABLE.to_le_bytes());
        put(MSIX_AT + 8, &MSIX_PENDING.to_le_bytes());
        Self { bytes }
    }

    /// Reads from `offset` on; beyond the end there are zeros.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        for (at, byte) in (offset as usize..).zip(data) {
            *byte = self.bytes.get(at).copied().unwrap_or(0);
        }
    }

    /// Writes from `offset` on what can be written.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        for (at, byte) in (offset as usize..).zip(data) {
            if WRITABLE.contains(&at) {
                self.bytes[at] = *byte;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capabilities_are_a_list_that_ends() {
        let config = ConfigSpace::new(false, 33);
        let byte = |at: usize| {
            let mut one = [0];
            config.read(at as u64, &mut one);
            one[0]
        };
        let mut at = usize::from(byte(0x34));
        let mut found = Vec::new();
        while at != 0 {
            found.push(byte(at));
            at = usize::from(byte(at + 1));
        }
        assert_eq!(found, [0x10, 0x11]);
        assert_eq!((byte(0x0a), byte(MSIX_AT + 2)), (7, 32));
    }

    #[test]
    fn identity_cannot_be_written() {
        let mut config = ConfigSpace::new(true, 4);
        config.write(0, &[0xff; 6]);
        let mut head = [0; 6];
        config.read(0, &mut head);
        assert_eq!(head, [0xb3, 0x15, 0x17, 0x10, 0xff, 0xff]);
        let mut beyond = [1; 4];
        config.read(254, &mut beyond);
        assert_eq!(beyond[2..], [0, 0]);
    }
}
