//! What a manifest says of one end of a run: device, placement, kernel threads in the path.
use crate::machine::{self, Root, completion_vector, kernel_threads};
use crate::probes::drivers::completion_shape;
use crate::runner::{Endpoint, PeerInfo};
use crate::verbs::{Device, GidEntry, gid_table};
use capture::manifest::{self, CompletionQueue, Placement, QueuePair, Worker};

/// The server's end of a run: what its manifest says of it, and what the kernel's events are joined with.
#[derive(Clone, Debug)]
pub struct EndpointFacts {
    /// The device.
    pub device: manifest::Device,
    /// The thread with its queues; its id is 0 until it is there.
    pub worker: Worker,
    /// What is known of its place besides.
    pub rest: Placement,
    /// Kernel threads in the path here.
    pub kernel_threads: Vec<manifest::KernelThread>,
    /// The server's thread polls.
    pub polls: bool,
}

impl EndpointFacts {
    /// Of a connected endpoint; its thread is not there yet.
    pub fn of(endpoint: &Endpoint, device: &Device, client: &PeerInfo, cpu: Option<u32>) -> EndpointFacts {
        let (params, port) = (endpoint.params(), endpoint.port());
        let gid = gid_table(device, port.number).unwrap_or_default().into_iter().find(|entry| entry.index == params.gid_index);
        let (worker, rest) = measured_thread(endpoint, device, client, cpu);
        EndpointFacts {
            polls: params.mode_of(endpoint.side()).spins(),
            kernel_threads: kernel_threads::in_path(device.name(), &[cpu]),
            device: self::device(device, endpoint, gid.as_ref(), "the client chose the pair"),
            worker,
            rest,
        }
    }

    /// Where the thread runs.
    pub fn placement(&self) -> Placement {
        Placement::of_worker(&self.worker, self.rest.clone())
    }
}

/// The device of an endpoint. `gid`: the row of its GID table that is used, where it is known; `gid_reason`: why that one.
pub fn device(device: &Device, endpoint: &Endpoint, gid: Option<&GidEntry>, gid_reason: &str) -> manifest::Device {
    let port = endpoint.port();
    manifest::Device {
        name: device.name().to_owned(),
        driver: device.driver(),
        completion_shape: completion_shape(&device.driver()),
        firmware: device.firmware(),
        board: device.board(),
        port: port.number,
        netdev: gid.and_then(|gid| gid.netdev.clone()),
        gid_index: endpoint.params().gid_index,
        gid: gid.map(|gid| gid.gid.to_string()).unwrap_or_default(),
        gid_type: gid.map(|gid| gid.kind.to_string()).unwrap_or_default(),
        gid_reason: gid_reason.to_owned(),
        mtu_bytes: endpoint.mtu_bytes(),
        rate_gbps: port.rate_gbps,
    }
}

/// The thread that will own a connected endpoint, with its queues; its id is 0 until it is there. The placement has what the worker does
/// not tell: the process, and vector → interrupt CPU → waiter CPU. `cpu`: where that thread is pinned.
pub fn measured_thread(endpoint: &Endpoint, device: &Device, peer: &PeerInfo, cpu: Option<u32>) -> (Worker, Placement) {
    let (params, root) = (endpoint.params(), Root::live());
    let vector = machine::device::device(&root, device.name())
        .map(|device| completion_vector::placement(&root, &device, params.comp_vector, cpu))
        .unwrap_or_default();
    let queue = |handle| CompletionQueue { handle, comp_vector: params.comp_vector, irq: vector.irq };
    let worker = Worker {
        index: params.worker,
        tid: 0,
        cpu,
        mode: params.mode_of(endpoint.side()),
        queue_pairs: vec![QueuePair { qpn: endpoint.qpn(), peer_qpn: peer.qpn }],
        completion_queues: endpoint.cq_handles().map(queue).to_vec(),
    };
    let rest = Placement { tgid: std::process::id(), irq_cpus: vector.irq_cpus, text: vector.text, ..Placement::default() };
    (worker, rest)
}

#[cfg(test)]
impl EndpointFacts {
    /// Of no endpoint.
    pub fn made_up() -> EndpointFacts {
        let worker = Worker {
            index: 0,
            tid: 0,
            cpu: None,
            mode: capture::Mode::Poll,
            queue_pairs: vec![QueuePair { qpn: 17, peer_qpn: 18 }],
            completion_queues: vec![CompletionQueue::default()],
        };
        let rest = Placement::default();
        EndpointFacts { device: manifest::Device::default(), worker, rest, kernel_threads: Vec::new(), polls: true }
    }
}
