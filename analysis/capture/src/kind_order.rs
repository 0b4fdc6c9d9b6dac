//! The order of record kinds along the path of a completion: it settles the order of records of several CPUs with the same time.
use ebpf_probes::Kind;

/// Position of a kind of record along the path: settles the order of records of several CPUs with the same time.
pub fn kind_rank(kind: u16) -> usize {
    const ORDER: &[Kind] = &[
        Kind::CqCreate,
        Kind::CqArm,
        Kind::RxePost,
        Kind::WorkQueue,
        Kind::WorkStart,
        Kind::RxeTask,
        Kind::RxeXmit,
        Kind::NetPacket,
        Kind::CpuIdleExit,
        Kind::PageFault,
        Kind::TimerEntry,
        Kind::TimerExit,
        Kind::IrqEntry,
        Kind::DriverIrq,
        Kind::DriverEnqueue,
        Kind::SoftirqRaise,
        Kind::IrqExit,
        Kind::SoftirqEntry,
        Kind::RxeRcv,
        Kind::CqPost,
        Kind::CqError,
        Kind::NapiPoll,
        Kind::TaskletEntry,
        Kind::DriverBottomHalf,
        Kind::DriverComp,
        Kind::CompHandler,
        Kind::SoftirqExit,
        Kind::SchedMigrate,
        Kind::SchedWaking,
        Kind::SchedWakeup,
        Kind::SchedSwitch,
        Kind::EventRead,
        Kind::CqDestroy,
    ];
    Kind::from_u16(kind).and_then(|kind| ORDER.iter().position(|k| *k == kind)).unwrap_or(ORDER.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_place_in_the_order() {
        let mut ranks: Vec<usize> = Kind::ALL.iter().map(|kind| kind_rank(*kind as u16)).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, (0..Kind::ALL.len()).collect::<Vec<_>>());
    }
}
