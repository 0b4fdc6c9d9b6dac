//! What the measured thread and its watchdog share: the measured loop only loads one flag and stores one counter. Everything that needs a
//! clock or a decision is done by the watchdog.
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Why a round was stopped from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    Abort,
    NoProgress,
}

/// The flag and the counter. They lie on cache lines of their own.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Monitor {
    stop: AtomicU8,
    progress: Progress,
}

#[repr(align(128))]
#[derive(Default)]
struct Progress(AtomicU64);

impl Monitor {
    /// True once the round must end.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }

    /// Says that one more operation is done.
    #[inline]
    pub fn progress(&self, done: u64) {
        self.progress.0.store(done, Ordering::Relaxed);
    }

    /// Operations done in this round.
    pub fn done(&self) -> u64 {
        self.progress.0.load(Ordering::Relaxed)
    }

    /// Why the round must end.
    pub fn reason(&self) -> Option<StopReason> {
        match self.stop.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(StopReason::Abort),
            _ => Some(StopReason::NoProgress),
        }
    }

    /// Ends the round. The first reason stays.
    pub fn stop(&self, reason: StopReason) {
        let code = if reason == StopReason::Abort { 1 } else { 2 };
        let _ = self.stop.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A round begins.
    pub fn reset(&self) {
        self.stop.store(0, Ordering::Relaxed);
        self.progress.0.store(0, Ordering::Relaxed);
    }
}
