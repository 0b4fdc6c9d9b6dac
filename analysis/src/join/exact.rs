//! The exact join: rxe shows the wr_id when it writes a CQE (R6), so the CQE of a sample is known, not guessed.
//!
//! (queue pair, wr_id) in FIFO order: a CQE that a sample has taken is not given to a later one, for programs that repeat wr_ids.
use super::window::Window;
use capture::Sample;
use ebpf_probes::{Body, CqPost};

/// State of the join over the samples: the last CQE that was given away.
#[derive(Debug, Default)]
pub struct Exact {
    taken: Option<u64>,
}

/// What the exact join knows of a sample. Positions are into the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactHit {
    /// R6 of the end CQE.
    pub cqe: usize,
    /// K5 that this CQE caused: the first handler call of the same kernel CQ at or after R6.
    pub handler: Option<usize>,
}

impl Exact {
    /// Finds the CQE that ended the sample.
    pub fn find(&mut self, window: &Window<'_>, sample: &Sample) -> Option<ExactHit> {
        let cqe = window.events.iter().enumerate().position(|(at, event)| {
            matches!(event.body, Body::CqPost(CqPost { wr_id, qpn, .. }) if wr_id == sample.end_wr_id && qpn == sample.qpn)
                && self.taken.is_none_or(|taken| window.id(at) > taken)
        })?;
        self.taken = Some(window.id(cqe));
        Some(ExactHit { cqe, handler: handler_after(window, cqe) })
    }
}

fn handler_after(window: &Window<'_>, cqe: usize) -> Option<usize> {
    let Body::CqPost(CqPost { cq, .. }) = window.events[cqe].body else { return None };
    window.after(cqe).find(|(_, event)| matches!(event.body, Body::CompHandler(body) if body.cq == cq)).map(|(at, _)| at)
}
