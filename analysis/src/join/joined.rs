//! What the parts of the join write into: the sample as it is known so far, and which events are its own.
use super::chain::Chain;
use super::flags::Flags;

/// What is known of a sample after the join.
#[derive(Clone, Copy, Debug, Default)]
pub struct Joined {
    /// The milestones.
    pub chain: Chain,
    /// The flags.
    pub flags: Flags,
    /// Thread that left the CPU when the waiting thread got it (0 is the idle task), and its name.
    pub ran_before: Option<(u32, [u8; 16])>,
    /// CPU that left an idle state between the wake-up and the switch.
    pub idle_exit_cpu: Option<u32>,
    /// The thread left its CPU in the blocking read and was switched in again for the event of this sample.
    pub slept: bool,
    /// The handler was called from the driver's own callback (`mlx5_ib_cq_comp` and its like), and a record shows it.
    pub callback: bool,
    /// K1 is the begin of the driver's own handler: the record of the interrupt itself is not there.
    pub own_handler_for_interrupt: bool,
}

/// What the joins found of a sample; positions are into the window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// R6 of the end CQE (exact join only).
    pub cqe: Option<usize>,
    /// K5 of the event that ended the blocking read.
    pub handler: Option<usize>,
    /// The blocking read was ended by the event of an earlier CQE, and this one was found by the poll after it.
    pub earlier_event: bool,
}
