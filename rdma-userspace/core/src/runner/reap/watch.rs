//! Watching memory: for operations that end without a completion. There is no event to wait for: it spins in every mode.
use super::CompletionMode;
use crate::runner::memory::Area;
use crate::runner::monitor::Monitor;
use crate::runner::step_error::StepError;
use crate::verbs::ffi::os::monotonic_ns;
use capture::Sample;

/// Spins until the first slot of the area holds `on_wire`, and stamps that moment.
#[inline]
pub(crate) fn watch<M: CompletionMode>(
    area: &Area,
    on_wire: u64,
    mode: &mut M,
    monitor: &Monitor,
    sample: &mut Sample,
) -> Result<(), StepError> {
    let mut looks = 0;
    let result = loop {
        if area.load(0)? == on_wire {
            sample.done_ns = monotonic_ns();
            break Ok(());
        }
        looks += 1;
        if monitor.stopped() {
            break Err(StepError::Stopped);
        }
        std::hint::spin_loop();
    };
    mode.counters().empty_polls += looks;
    result
}
