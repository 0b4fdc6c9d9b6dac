//! The measured threads of one side, each with its queues.
use super::Placement;
use crate::mode::Mode;
use serde::{Deserialize, Serialize};

/// A measured thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its number; part of every wr_id, and in [`crate::Sample::worker`].
    pub index: u16,
    /// Thread id.
    pub tid: u32,
    /// CPU that it is pinned to; `None`: not pinned.
    pub cpu: Option<u32>,
    /// Its completion mode.
    pub mode: Mode,
    /// Its queue pairs.
    pub queue_pairs: Vec<QueuePair>,
    /// Its completion queues; the first one's completions end the samples.
    pub completion_queues: Vec<CompletionQueue>,
}

/// A queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePair {
    /// Number on this side.
    pub qpn: u32,
    /// Number on the peer's side.
    pub peer_qpn: u32,
}

/// A completion queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionQueue {
    /// Address of the `struct ibv_cq`: the kernel's `user_handle`.
    pub handle: u64,
    /// Completion vector.
    pub comp_vector: u32,
    /// Linux interrupt of that vector, where the device has one and tells.
    pub irq: Option<u32>,
}

impl Worker {
    /// The one worker that a capture of schema version 1 tells of by its placement.
    pub(super) fn of_placement(placement: &Placement, mode: Mode) -> Worker {
        Worker {
            index: 0,
            tid: placement.tid,
            cpu: placement.cpu,
            mode,
            queue_pairs: vec![QueuePair { qpn: placement.qpn, peer_qpn: placement.peer_qpn }],
            completion_queues: vec![CompletionQueue {
                handle: placement.cq_handle,
                comp_vector: placement.comp_vector,
                irq: placement.irq,
            }],
        }
    }
}

impl Placement {
    /// Where a worker runs. What the worker tells itself is taken from it, and from nowhere else; `rest` has what it does not tell: the
    /// process, the server's CPU, the CPUs of the interrupt, and the sentence.
    pub fn of_worker(worker: &Worker, rest: Placement) -> Placement {
        let queue_pair = worker.queue_pairs.first().copied().unwrap_or_default();
        let completion_queue = worker.completion_queues.first().cloned().unwrap_or_default();
        Placement {
            tid: worker.tid,
            cq_handle: completion_queue.handle,
            qpn: queue_pair.qpn,
            peer_qpn: queue_pair.peer_qpn,
            cpu: worker.cpu,
            comp_vector: completion_queue.comp_vector,
            irq: completion_queue.irq,
            ..rest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Manifest, Run};
    use super::*;
    use crate::operation::Operation;

    fn worker() -> Worker {
        Worker {
            index: 0,
            tid: 7,
            cpu: Some(3),
            mode: Mode::Event,
            queue_pairs: vec![QueuePair { qpn: 17, peer_qpn: 18 }],
            completion_queues: vec![CompletionQueue { handle: 0x1000, comp_vector: 2, irq: Some(41) }],
        }
    }

    #[test]
    fn placement_says_of_the_first_worker_what_the_worker_says() {
        let wrong =
            Placement { tid: 99, qpn: 99, peer_qpn: 99, cq_handle: 99, cpu: None, comp_vector: 99, irq: None, ..Placement::default() };
        let rest = Placement { tgid: 5, server_cpu: Some(1), irq_cpus: Some("0-3".into()), text: "vector 2".into(), ..wrong };
        let mut manifest = Manifest::new(Run::new(Operation::Send, Mode::Event));
        let second = Worker { index: 1, tid: 8, ..worker() };
        manifest.set_workers(vec![worker(), second], rest.clone());
        assert_eq!(Worker::of_placement(&manifest.placement, Mode::Event), worker());
        let it = &manifest.placement;
        assert_eq!((it.tgid, it.server_cpu, &it.irq_cpus, &it.text), (5, Some(1), &rest.irq_cpus, &rest.text));
        assert_eq!(manifest.workers().len(), 2);
        // Nobody ran yet: nothing is known of a worker.
        manifest.set_workers(Vec::new(), rest.clone());
        assert_eq!(manifest.placement, rest);
    }

    #[test]
    fn a_manifest_keeps_its_workers() {
        let mut manifest = Manifest::new(Run::new(Operation::Send, Mode::Event));
        manifest.set_workers(vec![worker()], Placement::default());
        let text = serde_json::to_string(&manifest).expect("JSON");
        let read: Manifest = serde_json::from_str(&text).expect("the same");
        assert_eq!(read.workers.as_slice(), [worker()]);
        assert_eq!(read, manifest);
    }
}
