//! The first pages of BAR 0 (`struct mlx5_init_seg`): who the device is, where the command queue lies, the clock.

use super::command::{self, LOG_SLOTS, LOG_STRIDE};
use super::{Function, pci};
use crate::knobs;

/// Version of the firmware that it says it has: 16.35.2000.
const FIRMWARE: (u32, u32, u32) = (16, 35, 2000);
/// Version of the command interface.
const COMMAND_INTERFACE: u32 = 5;

/// Words of the segment.
mod word {
    pub const FIRMWARE: u64 = 0x00;
    pub const COMMAND_INTERFACE: u64 = 0x04;
    pub const QUEUE_HIGH: u64 = 0x10;
    pub const QUEUE_LOW: u64 = 0x14;
    pub const QUEUE_DOORBELL: u64 = 0x18;
    pub const TIMER_HIGH: u64 = 0x1000;
    pub const TIMER_LOW: u64 = 0x1004;
    pub const HEALTH_COUNTER: u64 = 0x1010;
}

impl Function {
    /// The word at `offset`.
    pub(super) fn init_segment(&self, offset: u64) -> u32 {
        let (major, minor, patch) = FIRMWARE;
        match offset {
            word::FIRMWARE => minor << 16 | major,
            word::COMMAND_INTERFACE => COMMAND_INTERFACE << 16 | patch,
            word::QUEUE_HIGH => (self.command_queue >> 32) as u32,
            word::QUEUE_LOW => self.command_queue as u32 & !0xfff | LOG_SLOTS << 4 | LOG_STRIDE,
            word::TIMER_HIGH => (self.oracle.ticks() >> 32) as u32,
            word::TIMER_LOW => self.oracle.ticks() as u32,
            // It must move; every 10 ms is often enough.
            word::HEALTH_COUNTER => (self.oracle.ticks() / 10_000_000) as u32 + 1,
            // All else is zero, "initializing" among it: the device is ready.
            _ => 0,
        }
    }

    /// Writes to the pages before the user access regions.
    pub(super) fn write_init_segment(&mut self, offset: u64, data: &[u8]) {
        debug_assert!(offset < u64::from(pci::FIRST_UAR) << 12 && offset & !0xfff != knobs::PAGE);
        let Ok(bytes) = <[u8; 4]>::try_from(data) else {
            return self.trouble(format!("a write of {} bytes to {offset:#x} of BAR 0", data.len()));
        };
        let value = u32::from_be_bytes(bytes);
        match offset {
            word::QUEUE_HIGH => self.command_queue_high = value,
            word::QUEUE_LOW => self.command_queue = u64::from(self.command_queue_high) << 32 | u64::from(value & !0xfff),
            word::QUEUE_DOORBELL => {
                for slot in (0..1 << LOG_SLOTS).filter(|slot| value >> slot & 1 == 1) {
                    command::execute(self, slot);
                }
            }
            _ => self.trouble(format!("a write of {value:#x} to {offset:#x} of BAR 0")),
        }
    }
}
