//! What the manifest of a run says when the run begins.
use super::peer::Peer;
use super::{Options, Target};
use crate::control::endpoint_facts;
use crate::machine::{Root, interrupts, preamble};
use crate::runner::Endpoint;
use crate::verbs::{Device, GidPair};
use capture::Manifest;
use capture::manifest::{self, InterruptName};

/// The first manifest of a run.
pub(super) fn manifest(options: &Options, device: &Device, gids: &GidPair, endpoint: &Endpoint, index: u32, peer: &Peer) -> Manifest {
    let table = interrupts::read(Root::live()).unwrap_or_default();
    let interrupts = table.into_iter().map(|row| InterruptName { irq: row.number, name: row.handlers }).collect();
    let params = endpoint.params();
    let loopback = matches!(options.target, Target::Loopback);
    let run = manifest::Run {
        index,
        server_mode: Some(params.server_mode),
        transport: Some(params.transport),
        size_bytes: params.size_bytes,
        samples: options.samples,
        depth: params.depth,
        inline_bytes: params.inline_bytes,
        cq_depth: endpoint.cq_depth(),
        level: options.level,
        ..manifest::Run::new(params.op, params.mode)
    };
    let mut manifest = Manifest {
        device: endpoint_facts::device(device, endpoint, Some(&gids.local), &gids.reason),
        notes: loopback.then(|| "loopback: both ends ran on this host, as two processes".to_owned()).into_iter().collect(),
        ..preamble::manifest(run)
    };
    manifest.host.interrupts = interrupts;
    manifest.run.same_kernel = manifest.host.boot_id == peer.facts.boot_id;
    manifest
}
