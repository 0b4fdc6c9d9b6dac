//! One sample: what the runner stamped for one measured operation, from its begin WR to its end WR.
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The user-side record of one operation. All times are `CLOCK_MONOTONIC` in nanoseconds; 0 means "did not happen".
///
/// For `read`, `write` and atomics begin and end are the same WR. For ping-pongs the begin WR is the client's own send and the
/// end WR its receive of the answer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Sample {
    /// wr_id of the WR whose post begins the sample; unique within the capture.
    pub begin_wr_id: u64,
    /// wr_id of the WR whose completion ends the sample; 0 where no CQE ends it (`write-pp`).
    pub end_wr_id: u64,
    /// U1: just before `ibv_post_send`.
    pub post_begin_ns: u64,
    /// U1: just after `ibv_post_send` returned.
    pub post_end_ns: u64,
    /// U2: just before the CQ was armed. 0 in polling.
    pub arm_ns: u64,
    /// U3: just before the blocking read that was followed by the end CQE. 0 when none was needed.
    pub wait_begin_ns: u64,
    /// U3: just after that read returned.
    pub wait_end_ns: u64,
    /// U4: right after the poll that returned the end CQE (for `write-pp`: right after the byte was seen).
    pub done_ns: u64,
    /// Queue pair number on this side.
    pub qpn: u32,
    /// Index into [`super::manifest::Manifest::rounds`].
    pub round: u32,
    /// Worker (measured thread) that made the sample.
    pub worker: u16,
    /// `ibv_wc_status` of the end CQE; 0 is success.
    pub status: u16,
    /// Blocking reads within the sample.
    pub waits: u16,
    /// Reads that brought an event but no CQE (a spurious wake-up).
    pub empty_wakeups: u16,
    /// Zero; room for later.
    pub reserved: [u32; 2],
}

const _: () = assert!(size_of::<Sample>() == 88 && align_of::<Sample>() == 8);

impl Sample {
    /// What is reported: begin of the post to the end CQE, in nanoseconds. `None` when the clock went backwards (a defect worth showing).
    pub fn latency_ns(&self) -> Option<u64> {
        self.done_ns.checked_sub(self.post_begin_ns)
    }
}
