//! Where a measured thread ran, and the identities that the join needs.
use serde::{Deserialize, Serialize};

/// Completion vector, interrupt CPU and waiter CPU, and the identities that the join needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// Process id of this side.
    pub tgid: u32,
    /// Thread id of the measured thread (worker 0).
    pub tid: u32,
    /// Address of the `struct ibv_cq` whose completions end the samples: the kernel's `user_handle`.
    pub cq_handle: u64,
    /// Queue pair number on this side.
    pub qpn: u32,
    /// Queue pair number of the peer.
    pub peer_qpn: u32,
    /// CPU that the measured thread is pinned to; `None`: not pinned.
    pub cpu: Option<u32>,
    /// CPU of the server's thread.
    pub server_cpu: Option<u32>,
    /// Completion vector of the CQ.
    pub comp_vector: u32,
    /// Linux interrupt of that vector, where the device has one and tells.
    pub irq: Option<u32>,
    /// CPUs that this interrupt may run on, as the kernel lists them.
    pub irq_cpus: Option<String>,
    /// One sentence: vector → interrupt CPU → waiter CPU.
    pub text: String,
}
