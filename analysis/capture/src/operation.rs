//! The operations, and what each one is to whoever records it and to whoever reads the record.
use crate::metric::Metric;
use crate::named::named;

named! {
    /// An operation.
    pub enum Operation: "operation" {
        /// SEND/RECV ping-pong.
        Send = "send",
        /// RDMA WRITE, post to own completion.
        Write = "write",
        /// RDMA WRITE ping-pong by watching memory; polling only.
        WritePp = "write-pp",
        /// RDMA READ, post to own completion.
        Read = "read",
        /// Atomic FETCH_ADD, post to own completion.
        FetchAdd = "fetch-add",
        /// Atomic CMP_SWAP, post to own completion.
        CmpSwap = "cmp-swap",
        /// No operation of ours: whatever the programs of a trace did.
        Foreign = "trace",
    }
}

/// What ends a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndsWith {
    /// The completion of the WR that began it: the peer's answer brings it.
    OwnCompletion,
    /// The completion of a receive: a request of the peer brings it.
    Receive,
    /// Data in memory, which a request of the peer writes. No CQE marks it, so nobody can wait for an event.
    Memory,
}

impl Operation {
    /// The operations that a run can measure.
    pub const MEASURED: &'static [Self] = &[Self::Send, Self::Write, Self::WritePp, Self::Read, Self::FetchAdd, Self::CmpSwap];

    /// What ends its samples.
    pub const fn ends_with(self) -> EndsWith {
        match self {
            Self::Send => EndsWith::Receive,
            Self::WritePp => EndsWith::Memory,
            Self::Write | Self::Read | Self::FetchAdd | Self::CmpSwap | Self::Foreign => EndsWith::OwnCompletion,
        }
    }

    /// True for ping-pongs: the server's thread takes part, and a request of the peer ends the sample.
    pub const fn server_answers(self) -> bool {
        matches!(self.ends_with(), EndsWith::Receive | EndsWith::Memory)
    }

    /// True when a CQE ends the samples.
    pub const fn has_cqe(self) -> bool {
        !matches!(self.ends_with(), EndsWith::Memory)
    }

    /// What its latency is.
    pub const fn metric(self) -> Metric {
        if self.server_answers() { Metric::Rtt } else { Metric::PostToCqe }
    }

    /// True for atomics, which work on 8 bytes.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::FetchAdd | Self::CmpSwap)
    }
}
