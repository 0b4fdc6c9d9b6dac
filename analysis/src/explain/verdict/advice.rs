//! What to try next: by what was in the way where that is known, else by the stage.
use crate::explain::model::Cause;
use crate::join::flags::{Flag, Flags};
use crate::stages::{Advice, StageId};

/// The advice as the rest of a sentence that begins with "Next:".
pub(super) fn advice(stage: StageId, cause: Cause, flags: Flags) -> &'static str {
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
        | Cause::NotRecorded => of_stage(stage, flags).text(),
    }
}

fn of_stage(stage: StageId, flags: Flags) -> Advice {
    if stage == StageId::WirePeer && flags.has(Flag::Loopback) { Advice::PeerHere } else { stage.row().advice }
}
