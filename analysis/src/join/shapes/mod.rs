//! The interrupt path of a hardware driver, from its completion interrupt to the completion handler: K1, the irq thread where interrupts
//! are threaded, K3, the softirq thread where the bottom half was put off, K4.
//!
//! Drivers differ in shape ([`CompletionShape`]); one file here per shape. The driver's own requests and callbacks are exact where they are
//! recorded; other drivers tell less: there the last interrupt of the driver counts.
mod direct;
mod napi;
mod path;
mod tasklet;
mod tasklet_per_cq;
mod work;

use super::joined::Joined;
use capture::CompletionShape;
use ebpf_probes::Kind;
pub(super) use path::Path;

/// Sets the milestones; true when one is missing that this path always has and that could have been recorded.
pub(super) fn join(path: &Path<'_, '_>, joined: &mut Joined) -> bool {
    // Where the shape is not known nothing is guessed: the run's warnings say so.
    let Some(shape) = path.facts.shape else { return false };
    joined.callback = path.is_in_callback();
    match shape {
        CompletionShape::TaskletPerCq if path.facts.records(Kind::DriverComp) => tasklet_per_cq::join(path, joined),
        CompletionShape::TaskletPerCq | CompletionShape::Tasklet => tasklet::join(path, joined),
        CompletionShape::Direct => direct::join(path, joined),
        CompletionShape::Napi => napi::join(path, joined),
        CompletionShape::Work => work::join(path, joined),
        CompletionShape::Anywhere => false,
    }
}
