//! What to try next: by what was in the way where that is known, else by the stage.
use crate::explain::model::Cause;
use crate::stages::{Advice, StageId};

/// The advice as the rest of a sentence that begins with "Next:".
/// `peer_is_here`: both ends ran on this kernel.
pub(super) fn advice(stage: StageId, cause: Cause, peer_is_here: bool) -> &'static str {
    match cause {
        Cause::Preempted => "keep other threads off the thread's CPU (isolcpus, cpusets, a CPU of its own)",
        Cause::Migrated => "pin the thread (--cpu), and look for who changes its CPU set",
        Cause::Irq | Cause::Softirq => "move that interrupt to another CPU (/proc/irq/*/smp_affinity_list)",
        Cause::Tick => "a CPU of its own with nohz_full has few ticks",
        Cause::Blocked | Cause::PageFault => "lock and touch the memory beforehand (mlockall), and see what the thread waited for",
        Cause::NoneSeen => "compare with a run on another CPU, and look at the hypervisor's steal time, SMIs and the device's counters",
        Cause::RunQueue
        | Cause::IdleExit
        | Cause::BottomHalf
        | Cause::Worker
        | Cause::Peer
        | Cause::Retransmission
        | Cause::OwnCode
        | Cause::NotRecorded => of_stage(stage, peer_is_here).text(),
    }
}

fn of_stage(stage: StageId, peer_is_here: bool) -> Advice {
    match stage.row().advice {
        Advice::OtherSide if peer_is_here => Advice::PeerHere,
        advice => advice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_on_this_machine_has_no_other_side_to_look_at() {
        for stage in [StageId::DeviceNetwork, StageId::PostDeviceNetwork, StageId::WirePeer] {
            assert!(advice(stage, Cause::Peer, true).starts_with("the peer shares this machine"), "{stage}");
            assert!(advice(stage, Cause::Peer, false).starts_with("look at the other side"), "{stage}");
        }
        assert_eq!(advice(StageId::RunQueue, Cause::RunQueue, true), advice(StageId::RunQueue, Cause::RunQueue, false));
    }
}
