//! The threads, queues and kernel objects of every synthetic capture.

/// The measured thread.
pub(super) const TID: u32 = 1000;
/// Its process.
pub(super) const TGID: u32 = 999;
/// The server's thread.
pub(super) const SERVER: u32 = 2000;
/// A kernel worker.
pub(super) const WORKER: u32 = 300;
/// The queue pair.
pub(super) const QPN: u32 = 17;
/// The CQ as its owner knows it.
pub(super) const CQ_HANDLE: u64 = 0x7f00_0000_1000;
/// The kernel's CQ.
pub(super) const CQ: u64 = 0xffff_8880_0100_0000;
/// The CQ of the send queue.
pub(super) const SEND_CQ: u64 = 0xffff_8880_0200_0000;
/// The completion channel.
pub(super) const CHANNEL: u64 = 0xffff_8880_0300_0060;
/// The kernel's queue pair.
pub(super) const QP: u64 = 0xffff_8880_0400_0000;
/// rxe's work item.
pub(super) const WORK: u64 = 0xffff_8880_0400_0400;
/// The network device's interrupt.
pub(super) const IRQ: u32 = 25;
/// mlx5's own object of the CQ.
pub(super) const DRIVER_CQ: u64 = 0xffff_8880_0100_00e0;
/// mlx5's number of the CQ.
pub(super) const CQN: u32 = 0x412;
/// mlx5's event queue.
pub(super) const EVENT_QUEUE: u64 = 0xffff_8880_0500_0000;
/// The interrupt of the CQ's completion vector.
pub(super) const COMPLETION_IRQ: u32 = 61;
