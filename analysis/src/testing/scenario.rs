//! What the synthetic captures imitate.
use capture::{Mode, Operation};

/// What is imitated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// 6.1, one guest, `send` with completion events.
    SendEvent61,
    /// 6.12, one guest, `send` with completion events.
    SendEvent612,
    /// `read` by polling on 6.12.
    ReadPoll,
    /// 6.1, one guest, `read` with completion events: the CQE comes inside the post.
    ReadInline61,
    /// 6.1, two guests, `read` with completion events: interrupt, NAPI, softirq.
    TwoGuests,
    /// A card of mlx5, both ends on one kernel, `send` with completion events: interrupt, tasklet, callback, handler.
    SendMlx5,
}

impl Scenario {
    /// All of them.
    pub const ALL: &'static [Scenario] = &[
        Scenario::SendEvent61,
        Scenario::SendEvent612,
        Scenario::ReadPoll,
        Scenario::ReadInline61,
        Scenario::TwoGuests,
        Scenario::SendMlx5,
    ];

    /// Operation and mode.
    pub fn op_mode(self) -> (Operation, Mode) {
        match self {
            Scenario::SendEvent61 | Scenario::SendEvent612 | Scenario::SendMlx5 => (Operation::Send, Mode::Event),
            Scenario::ReadPoll => (Operation::Read, Mode::Poll),
            Scenario::ReadInline61 | Scenario::TwoGuests => (Operation::Read, Mode::Event),
        }
    }
}
