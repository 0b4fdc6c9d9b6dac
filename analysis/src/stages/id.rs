//! The stages by identity: what code names a stage by.

/// A stage. In path order, as its row in [`super::STAGES`]; what no stage covers is the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is described by its row of the table")]
#[repr(u8)]
pub enum StageId {
    Post,
    DeviceNetwork,
    PostDeviceNetwork,
    DeviceNetworkDetection,
    RequesterQueue,
    RequesterWorkqueue,
    Requester,
    RequesterStartUnseen,
    Retransmission,
    TxStack,
    WirePeer,
    RxInterrupt,
    IrqThreadWakeup,
    IrqThread,
    SoftirqThreadWakeup,
    RxSoftirq,
    TaskQueue,
    TaskWorkqueue,
    Protocol,
    ProtocolStartUnseen,
    ProtocolDetection,
    PostReturn,
    Detect,
    NotifyDelay,
    HardIrq,
    BottomHalfWait,
    BottomHalf,
    Handler,
    Activation,
    IdleExit,
    RunQueue,
    ActivationRunQueue,
    EventRead,
    ReturnToUser,
    EventReadNoSleep,
    Poll,
    Unattributed,
}

impl StageId {
    /// Number of stages, the unattributed time included.
    pub const COUNT: usize = StageId::Unattributed as usize + 1;

    /// The time that no stage covers?
    pub fn is_unattributed(self) -> bool {
        self == StageId::Unattributed
    }
}
