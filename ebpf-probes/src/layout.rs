//! Compile-time proof of the record layout: a change of size or of an offset does not build.
use crate::*;
use core::mem::{align_of, offset_of, size_of};

macro_rules! sizes { ($($type:ty = $size:literal),* $(,)?) => { $(const _: () = assert!(size_of::<$type>() == $size && align_of::<$type>() <= 8);)* } }

sizes! {
    Header = 24, CpuIdle = 8, Irq = 8, Softirq = 8, Tasklet = 16, Work = 16, Napi = 8, CompHandler = 32, Wake = 8,
    Switch = 32, EventRead = 16, RxePost = 16, RxeXmit = 32, RxeRcv = 24, RxeTask = 16, CqPost = 32, DriverCq = 16, NetPacket = 16,
    DriverEntry = 16,
    PageFault = 16, Timer = 8,
    CqCreate = 32, CqDestroy = 32, CqArm = 16, CqError = 24,
}
const _: () = assert!(offset_of!(Header, ts_ns) == 8 && offset_of!(Header, pid) == 16 && offset_of!(Header, tgid) == 20);
const _: () = assert!(offset_of!(CompHandler, owner_tgid) == 24 && offset_of!(Switch, prev_comm) == 8 && offset_of!(CqPost, qpn) == 16);

/// The longest record in bytes, header included.
pub const RECORD_MAX_BYTES: usize = size_of::<Header>() + 32;
